// Balanced spherical k-means over label features: cuts segments of a permutation of labels into parts of equal size
// (they differ by at most one). Two ways to cut a segment into B parts:
//   bisect: recursive balanced 2-means, floor(B/2) parts to the left (exact halves when B is a power of two)
//   kway:   B centres at once, labels given to centres by descending similarity while there is room
#pragma once
#include <vector>

#include "csr.h"
#include "parallel.h"

namespace lw {

struct KMeansConfig {
  bool kway = false;
  int max_iter = 20;
  uint64_t seed = 0, tree = 0;
};

struct Segment {
  int64_t begin, end;  // into the members
  int32_t parts;
  int64_t size() const { return end - begin; }
};

// Reorders `members` in place, each final part sorted by label; returns the parts in order. size >= parts everywhere.
std::vector<Segment> split(const Features& z, std::vector<int32_t>& members, std::vector<Segment> segments,
                           const KMeansConfig& config, int threads, Control& control);

}  // namespace lw
