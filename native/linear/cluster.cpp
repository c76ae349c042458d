#include "linear/cluster.h"

#include <algorithm>
#include <numeric>

namespace lw {

Cluster gather_cluster(const Features& x, const Csr& yt, const Csr& mt, int64_t parent, int64_t first, int64_t last,
                       float bias, RowGatherer& gatherer) {
  Cluster out;
  const int32_t* begin = mt.idx + mt.ptr[parent];
  const int32_t* end = mt.idx + mt.ptr[parent + 1];
  std::vector<int32_t> extra;
  for (int64_t c = first; c < last; ++c)
    for (int64_t p = yt.ptr[c]; p < yt.ptr[c + 1]; ++p)
      if (!std::binary_search(begin, end, yt.idx[p])) extra.push_back(yt.idx[p]);
  std::sort(extra.begin(), extra.end());
  extra.erase(std::unique(extra.begin(), extra.end()), extra.end());
  out.instances.resize((end - begin) + extra.size());
  std::merge(begin, end, extra.begin(), extra.end(), out.instances.begin());
  out.listed.assign(out.instances.size(), 1);
  for (int32_t i : extra)
    out.listed[std::lower_bound(out.instances.begin(), out.instances.end(), i) - out.instances.begin()] = 0;
  gatherer.gather(x, out.instances.data(), out.size(), out.rows);
  const LocalRows& rows = out.rows;
  for (int64_t i = 0; i < rows.n; ++i) {
    float norm = bias * bias;
    for (int64_t p = rows.ptr[i]; p < rows.ptr[i + 1]; ++p) norm += rows.val[p] * rows.val[p];
    for (int64_t j = 0; j < rows.dense_cols; ++j) norm += rows.dense[i][j] * rows.dense[i][j];
    out.norm.push_back(norm);
  }
  return out;
}

void LaneMarks::mark(const Csr& yt, const Cluster& cluster, int64_t first, int64_t last) {
  const int64_t n = cluster.size();
  const uint32_t all = (1u << (last - first)) - 1;
  local_.resize(yt.cols);
  for (int64_t i = 0; i < n; ++i) local_[cluster.instances[i]] = static_cast<int32_t>(i);
  positive.assign(n, 0);
  cost_ptr.assign(n + 1, 0);
  for (int64_t c = first; c < last; ++c)
    for (int64_t p = yt.ptr[c]; p < yt.ptr[c + 1]; ++p) cost_ptr[local_[yt.idx[p]] + 1]++;
  std::partial_sum(cost_ptr.begin(), cost_ptr.end(), cost_ptr.begin());
  cost.resize(cost_ptr[n]);
  cost_lane.resize(cost_ptr[n]);
  std::vector<int64_t> at(cost_ptr.begin(), cost_ptr.end() - 1);
  for (int64_t c = first; c < last; ++c)
    for (int64_t p = yt.ptr[c]; p < yt.ptr[c + 1]; ++p) {
      const int32_t i = local_[yt.idx[p]];
      positive[i] |= 1u << (c - first);
      cost_lane[at[i]] = static_cast<uint8_t>(c - first);
      cost[at[i]++] = yt.val[p];
    }
  allowed.resize(n);
  for (int64_t i = 0; i < n; ++i) allowed[i] = cluster.listed[i] ? all : positive[i];
}

}  // namespace lw
