// A few rows of a matrix with only the features that occur in them, numbered anew in ascending order, so that weights
// and centres over them are short dense arrays. The cost depends on those rows alone, not on the matrix's width.
#pragma once
#include <algorithm>
#include <vector>

#include "arrays/csr.h"

namespace lw {

struct LocalRows {
  int64_t n = 0, dense_cols = 0;
  std::vector<int32_t> features;  // local -> global, ascending
  std::vector<int64_t> ptr;       // (n + 1)
  std::vector<uint32_t> idx;      // local feature numbers
  std::vector<float> val;
  std::vector<const float*> dense;  // (n) dense rows; empty when there are none
  int64_t sparse_cols() const { return static_cast<int64_t>(features.size()); }
  int64_t width() const { return sparse_cols() + dense_cols; }
};

// Scratch of one worker, O(features) once; of a wide matrix, the features that occur are sorted instead.
class RowGatherer {
 public:
  void gather(const Features& x, const int32_t* rows, int64_t n, LocalRows& out) {
    const Csr& m = x.sparse;
    out.n = n;
    out.dense_cols = x.dense_cols;
    out.ptr.assign(1, 0);
    out.dense.clear();
    for (int64_t i = 0; i < n; ++i) {
      out.ptr.push_back(out.ptr.back() + m.size(rows[i]));
      if (x.dense_cols) out.dense.push_back(x.dense_row(rows[i]));
    }
    out.idx.resize(out.ptr.back());
    out.val.resize(out.ptr.back());
    if (m.wide())
      by_sorting(m, rows, out);
    else
      by_marking(m, rows, out);
  }

 private:
  template <typename Visit>
  static void each(const Csr& m, const int32_t* rows, int64_t n, Visit&& f) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t p = m.ptr[rows[i]]; p < m.ptr[rows[i] + 1]; ++p) f(p);
  }

  void by_marking(const Csr& m, const int32_t* rows, LocalRows& out) {
    if (number_.empty()) number_.resize(m.cols), seen_.assign((m.cols + 63) / 64, 0);
    each(m, rows, out.n, [&](int64_t p) { mark(m.idx[p]); });
    number(out.features);
    int64_t at = 0;
    each(m, rows, out.n, [&](int64_t p) { out.idx[at] = number_[m.idx[p]], out.val[at++] = m.val[p]; });
  }

  static void by_sorting(const Csr& m, const int32_t* rows, LocalRows& out) {
    std::vector<int32_t>& features = out.features;
    features.clear();
    each(m, rows, out.n, [&](int64_t p) { features.push_back(m.idx[p]); });
    std::sort(features.begin(), features.end());
    features.erase(std::unique(features.begin(), features.end()), features.end());
    int64_t at = 0;
    each(m, rows, out.n, [&](int64_t p) {
      const auto place = std::lower_bound(features.begin(), features.end(), m.idx[p]);
      out.idx[at] = static_cast<uint32_t>(place - features.begin()), out.val[at++] = m.val[p];
    });
  }

  void mark(int32_t feature) {
    uint64_t& word = seen_[feature >> 6];
    if (!word) words_.push_back(static_cast<uint32_t>(feature >> 6));
    word |= uint64_t{1} << (feature & 63);
  }

  void number(std::vector<int32_t>& features) {
    features.clear();
    std::sort(words_.begin(), words_.end());
    for (size_t word : words_) {
      for (uint64_t bits = seen_[word]; bits; bits &= bits - 1) {
        const int32_t f = static_cast<int32_t>(word * 64 + __builtin_ctzll(bits));
        number_[f] = static_cast<uint32_t>(features.size());
        features.push_back(f);
      }
      seen_[word] = 0;
    }
    words_.clear();
  }

  std::vector<uint64_t> seen_;    // bitmap over features
  std::vector<uint32_t> words_;   // of the bitmap that are not 0
  std::vector<uint32_t> number_;  // global -> local, valid for the features of the last call
};

}  // namespace lw
