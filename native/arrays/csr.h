// Views of matrices that the Python side has checked: rows by int64 pointers, int32 columns, float32 values.
// Nothing here owns memory. `validate` is the wall: no other native code sees a matrix that has not passed it.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>

namespace lw {

struct Csr {
  int64_t rows = 0;
  int64_t cols = 0;
  const int64_t* ptr = nullptr;  // (rows + 1)
  const int32_t* idx = nullptr;  // (ptr[rows])
  const float* val = nullptr;    // (ptr[rows])
  int64_t nnz() const { return rows ? ptr[rows] : 0; }
  int64_t size(int64_t row) const { return ptr[row + 1] - ptr[row]; }
  // Are there far more columns than entries? Scratch memory then has the columns that occur, not one place for each.
  // Both ways give the same numbers; `Sizes.scratch` in pipeline/costs.py knows this rule.
  bool wide() const { return cols > int64_t{1} << 22 && cols / 8 > nnz(); }
};

// [sparse ; dense]: the only feature type that k-means, solver and beam take. An absent block has 0 columns
// (and, if sparse, no entries).
struct Features {
  Csr sparse;
  const float* dense = nullptr;  // (rows, dense_cols), row-major
  int64_t dense_cols = 0;
  int64_t rows() const { return sparse.rows; }
  const float* dense_row(int64_t row) const { return dense + row * dense_cols; }
};

// What is wrong with a matrix: empty text means it is sound; `row` and `position` say where.
struct Fault {
  std::string what;
  int64_t row = -1;
  int64_t position = -1;
};

// Columns in range, sorted, unique, |values| up to `largest`; pointers start at 0, never fall, end at the arrays'
// length.
Fault validate(const Csr& m, int64_t index_length, int64_t value_length, double largest, int threads);

}  // namespace lw
