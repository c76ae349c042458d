// The label features of one segment, for k-means. A small segment is gathered with its features numbered anew, so that
// centres are short; a large one is read where it stands in Z, so that Z is not copied. Both give the same bits:
// features keep their order, and a feature that never occurs adds zeros.
#pragma once
#include "arrays/local_rows.h"

namespace lw {

struct LabelRows {
  int64_t n = 0, dense_cols = 0;

  void set(const Features& z, const int32_t* members, int64_t count, RowGatherer& gatherer) {
    z_ = &z;
    members_ = members;
    n = count;
    dense_cols = z.dense_cols;
    int64_t entries = 0;
    for (int64_t i = 0; i < n; ++i) entries += z.sparse.size(members[i]);
    in_place_ = entries > 4 * z.sparse.cols;
    if (!in_place_) gatherer.gather(z, members, n, local_);
    idx_ = in_place_ ? reinterpret_cast<const uint32_t*>(z.sparse.idx) : local_.idx.data();
    val_ = in_place_ ? z.sparse.val : local_.val.data();
  }

  int64_t sparse_cols() const { return in_place_ ? z_->sparse.cols : local_.sparse_cols(); }
  int64_t width() const { return sparse_cols() + dense_cols; }
  int64_t entries(int64_t i) const { return bounds(i)[1] - bounds(i)[0] + dense_cols; }

  // f(column, value) for every entry of a row, the dense block last.
  template <typename Visit>
  void each(int64_t i, Visit&& f) const {
    const int64_t* ptr = bounds(i);
    for (int64_t p = ptr[0]; p < ptr[1]; ++p) f(static_cast<int64_t>(idx_[p]), val_[p]);
    const float* row = dense_cols ? z_->dense_row(members_[i]) : nullptr;
    for (int64_t j = 0; j < dense_cols; ++j) f(sparse_cols() + j, row[j]);
  }

  void add(int64_t i, float scale, float* out) const {
    each(i, [&](int64_t f, float v) { out[f] += scale * v; });
  }

  float dot(int64_t i, const float* c) const {
    const int64_t* ptr = bounds(i);
    float a = 0, b = 0;  // two chains of additions run side by side
    int64_t p = ptr[0];
    for (; p + 2 <= ptr[1]; p += 2) a += val_[p] * c[idx_[p]], b += val_[p + 1] * c[idx_[p + 1]];
    if (p < ptr[1]) a += val_[p] * c[idx_[p]];
    const float* row = dense_cols ? z_->dense_row(members_[i]) : nullptr;
    for (int64_t j = 0; j < dense_cols; ++j) b += row[j] * c[sparse_cols() + j];
    return a + b;
  }

 private:
  const int64_t* bounds(int64_t i) const { return in_place_ ? z_->sparse.ptr + members_[i] : local_.ptr.data() + i; }
  const Features* z_ = nullptr;
  const int32_t* members_ = nullptr;
  bool in_place_ = false;
  LocalRows local_;
  const uint32_t* idx_ = nullptr;
  const float* val_ = nullptr;
};

}  // namespace lw
