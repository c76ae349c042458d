#include "arrays/pairs.h"

#include <algorithm>
#include <vector>

namespace lw {
namespace {

float squares(const float* v, int64_t n) {
  float sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += v[j] * v[j];
  return sum;
}

float norm(const Features& m, int64_t row) {
  const Csr& s = m.sparse;
  return squares(s.val + s.ptr[row], s.size(row)) + squares(m.dense_row(row), m.dense_cols);
}

// The sparse part of x.z, both in ascending columns.
float merged(const Csr& x, int64_t i, const Csr& z, int64_t l) {
  float sum = 0;
  int64_t at = x.ptr[i];
  for (int64_t p = z.ptr[l]; p < z.ptr[l + 1]; ++p) {
    at = std::lower_bound(x.idx + at, x.idx + x.ptr[i + 1], z.idx[p]) - x.idx;
    if (at == x.ptr[i + 1]) break;
    if (x.idx[at] == z.idx[p]) sum += z.val[p] * x.val[at];
  }
  return sum;
}

// x.z with the sparse part of x spread out in `spread`, if it is.
float product(const std::vector<float>& spread, const Features& x, int64_t i, const Features& z, int64_t l) {
  float sum = spread.empty() ? merged(x.sparse, i, z.sparse, l) : 0;
  for (int64_t p = z.sparse.ptr[l]; !spread.empty() && p < z.sparse.ptr[l + 1]; ++p)
    sum += z.sparse.val[p] * spread[z.sparse.idx[p]];
  for (int64_t j = 0; j < x.dense_cols; ++j) sum += x.dense_row(i)[j] * z.dense_row(l)[j];
  return sum;
}

}  // namespace

std::vector<float> pair_distances(const Features& x, const Features& z, const int32_t* ids, int64_t k, int threads,
                                  Control& control) {
  const int64_t n = x.rows(), block = 64;
  std::vector<float> out(n * k, 0);
  std::vector<std::vector<float>> scratch(threads);
  const bool spreads = !x.sparse.wide();
  parallel_for(threads, (n + block - 1) / block, control, [&](int64_t b, int worker) {
    std::vector<float>& spread = scratch[worker];
    if (spreads && spread.empty()) spread.assign(x.sparse.cols, 0);
    for (int64_t i = b * block; i < n && i < (b + 1) * block; ++i) {
      const int64_t begin = x.sparse.ptr[i], end = spreads ? x.sparse.ptr[i + 1] : begin;
      for (int64_t p = begin; p < end; ++p) spread[x.sparse.idx[p]] = x.sparse.val[p];
      const float own = norm(x, i);
      for (int64_t r = i * k; r < (i + 1) * k; ++r)
        if (ids[r] >= 0) out[r] = own + norm(z, ids[r]) - 2 * product(spread, x, i, z, ids[r]);
      for (int64_t p = begin; p < end; ++p) spread[x.sparse.idx[p]] = 0;
    }
  });
  return out;
}

}  // namespace lw
