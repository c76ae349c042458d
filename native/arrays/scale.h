// Rows of [sparse ; dense] scaled to length one; a row of zeros stays. Sums run in double, in the order of columns.
#pragma once
#include <algorithm>
#include <cmath>

#include "arrays/csr.h"
#include "arrays/parallel.h"

namespace lw {

inline void unit_rows(const Features& x, float* sparse, float* dense, int threads, Control& control) {
  const int64_t block = 1024, d = x.dense_cols;
  parallel_for(threads, (x.rows() + block - 1) / block, control, [&](int64_t b, int) {
    for (int64_t r = b * block; r < std::min(x.rows(), (b + 1) * block); ++r) {
      const int64_t begin = x.sparse.ptr[r], end = x.sparse.ptr[r + 1];
      double squares = 0, of_dense = 0;
      for (int64_t p = begin; p < end; ++p) squares += static_cast<double>(x.sparse.val[p]) * x.sparse.val[p];
      for (int64_t p = r * d; p < (r + 1) * d; ++p) of_dense += static_cast<double>(x.dense[p]) * x.dense[p];
      squares += of_dense;
      const double scale = squares > 0 ? 1 / std::sqrt(squares) : 1;
      for (int64_t p = begin; p < end; ++p) sparse[p] = static_cast<float>(x.sparse.val[p] * scale);
      for (int64_t p = r * d; p < (r + 1) * d; ++p) dense[p] = static_cast<float>(x.dense[p] * scale);
    }
  });
}

}  // namespace lw
