// The training problem of one parent cluster: its instances with their features numbered anew, and, for a run of its
// children solved together, who takes part in which child's problem.
#pragma once
#include <cstdint>
#include <vector>

#include "arrays/csr.h"
#include "arrays/local_rows.h"

namespace lw {

struct Cluster {
  std::vector<int32_t> instances;  // ascending
  std::vector<uint8_t> listed;     // in the shortlist (else only a positive of some child)
  LocalRows rows;
  std::vector<float> norm;  // |x_i|^2 including the bias feature
  int64_t size() const { return static_cast<int64_t>(instances.size()); }
};

// Instances in the parent's shortlist Mt, and all positives Yt of its children [first, last).
Cluster gather_cluster(const Features& x, const Csr& yt, const Csr& mt, int64_t parent, int64_t first, int64_t last,
                       float bias, RowGatherer& gatherer);

// For up to 16 children, one bit each: which an instance trains, which it is a positive of, and at what cost.
struct LaneMarks {
  std::vector<uint32_t> allowed, positive;
  std::vector<int64_t> cost_ptr;  // (n + 1) into cost_lane and cost
  std::vector<uint8_t> cost_lane;
  std::vector<float> cost;
  void mark(const Csr& yt, const Cluster& cluster, int64_t first, int64_t last);

 private:
  std::vector<int32_t> local_;  // instance -> its number in the cluster
};

}  // namespace lw
