#include "tree/pifa.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lw {
namespace {

// A dense accumulator with a bitmap of what was touched: adding is O(1), draining in column order costs a scan of the
// bitmap or a sort of the touched list, whichever is less. The entries of a wide matrix are listed and sorted instead.
class Accumulator {
 public:
  void add(float scale, const Csr& m, int64_t row) {
    if (m.wide()) {
      for (int64_t p = m.ptr[row]; p < m.ptr[row + 1]; ++p) listed_.push_back({m.idx[p], scale * m.val[p]});
      return;
    }
    if (sum_.empty()) sum_.assign(m.cols, 0), seen_.assign((m.cols + 63) / 64, 0);
    for (int64_t p = m.ptr[row]; p < m.ptr[row + 1]; ++p) {
      const int32_t f = m.idx[p];
      const uint64_t bit = uint64_t{1} << (f & 63);
      if (!(seen_[f >> 6] & bit)) seen_[f >> 6] |= bit, touched_.push_back(f);
      sum_[f] += scale * m.val[p];
    }
  }
  void drain(std::vector<int32_t>& idx, std::vector<float>& val) {
    drain_listed(idx, val);
    if (touched_.size() * 8 > seen_.size())
      scan();
    else
      std::sort(touched_.begin(), touched_.end());
    for (int32_t f : touched_) {
      if (sum_[f] != 0) idx.push_back(f), val.push_back(sum_[f]);
      sum_[f] = 0;
      seen_[f >> 6] = 0;
    }
    touched_.clear();
  }

 private:
  void scan() {
    touched_.clear();
    for (size_t word = 0; word < seen_.size(); ++word)
      for (uint64_t bits = seen_[word]; bits; bits &= bits - 1)
        touched_.push_back(static_cast<int32_t>(word * 64 + __builtin_ctzll(bits)));
  }
  // Equal columns are summed in the order in which they came, as in the dense accumulator.
  void drain_listed(std::vector<int32_t>& idx, std::vector<float>& val) {
    std::stable_sort(listed_.begin(), listed_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < listed_.size();) {
      const int32_t f = listed_[i].first;
      float sum = 0;
      for (; i < listed_.size() && listed_[i].first == f; ++i) sum += listed_[i].second;
      if (sum != 0) idx.push_back(f), val.push_back(sum);
    }
    listed_.clear();
  }
  std::vector<std::pair<int32_t, float>> listed_;
  std::vector<float> sum_;
  std::vector<uint64_t> seen_;
  std::vector<int32_t> touched_;
};

// Keep the `top` largest |values| of the row that starts at `begin`; ties go to the smaller column.
void truncate(std::vector<int32_t>& idx, std::vector<float>& val, size_t begin, size_t top) {
  const size_t n = idx.size() - begin;
  if (n <= top) return;
  std::vector<size_t> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = begin + i;
  std::nth_element(order.begin(), order.begin() + top, order.end(), [&](size_t a, size_t b) {
    const float x = std::fabs(val[a]), y = std::fabs(val[b]);
    return x != y ? x > y : idx[a] < idx[b];
  });
  std::sort(order.begin(), order.begin() + top);
  for (size_t i = 0; i < top; ++i) idx[begin + i] = idx[order[i]], val[begin + i] = val[order[i]];
  idx.resize(begin + top);
  val.resize(begin + top);
}

struct Rows {
  std::vector<int64_t> size;
  std::vector<int32_t> idx;
  std::vector<float> val;
  void clear() { size.clear(), idx.clear(), val.clear(); }
};

// Entries that Z could have: a label's row has no more than its positives' rows together, nor than there are features.
int64_t most_entries(const Csr& yt, const Csr& x) {
  int64_t total = 0;
  for (int64_t l = 0; l < yt.rows; ++l) {
    int64_t row = 0;
    for (int64_t p = yt.ptr[l]; p < yt.ptr[l + 1] && row < x.cols; ++p) row += x.size(yt.idx[p]);
    total += std::min(row, x.cols);
  }
  return total;
}

// One row: sum, cut, normalise; the sparse part is appended to `out`.
void sum_row(const Csr& yt, int64_t l, const Features& x, int64_t top, Accumulator& sums, Rows& out, float* dense) {
  const size_t begin = out.idx.size();
  for (int64_t p = yt.ptr[l]; p < yt.ptr[l + 1]; ++p) {
    if (x.sparse.cols) sums.add(yt.val[p], x.sparse, yt.idx[p]);
    for (int64_t j = 0; j < x.dense_cols; ++j) dense[j] += yt.val[p] * x.dense_row(yt.idx[p])[j];
  }
  sums.drain(out.idx, out.val);
  if (top > 0) truncate(out.idx, out.val, begin, static_cast<size_t>(top));
  double norm = 0;
  for (size_t i = begin; i < out.val.size(); ++i) norm += double(out.val[i]) * out.val[i];
  for (int64_t j = 0; j < x.dense_cols; ++j) norm += double(dense[j]) * dense[j];
  const double scale = norm > 0 ? 1 / std::sqrt(norm) : 0;
  for (size_t i = begin; i < out.val.size(); ++i) out.val[i] = static_cast<float>(out.val[i] * scale);
  for (int64_t j = 0; j < x.dense_cols; ++j) dense[j] = static_cast<float>(dense[j] * scale);
  out.size.push_back(static_cast<int64_t>(out.idx.size() - begin));
}

}  // namespace

LabelFeatures pifa(const Csr& yt, const Features& x, int64_t top, int64_t most, int threads, Control& control) {
  constexpr int64_t BLOCK = 16, WAVE = 64;  // labels of a task; tasks whose rows are held until they are appended
  if (top == 0 && most_entries(yt, x.sparse) > most) top = std::max<int64_t>(1, most / yt.rows);
  std::vector<Rows> parts(WAVE);
  std::vector<Accumulator> sums(threads);
  LabelFeatures z;
  z.dense.assign(yt.rows * x.dense_cols, 0);
  z.ptr.assign(1, 0);
  z.ptr.reserve(yt.rows + 1);
  control.total = yt.rows;
  for (int64_t from = 0; from < yt.rows; from += BLOCK * WAVE) {
    const int64_t until = std::min(yt.rows, from + BLOCK * WAVE);
    parallel_for(threads, (until - from + BLOCK - 1) / BLOCK, control, [&](int64_t b, int worker) {
      parts[b].clear();
      for (int64_t l = from + b * BLOCK; l < std::min(until, from + (b + 1) * BLOCK); ++l) {
        control.check();
        sum_row(yt, l, x, top, sums[worker], parts[b], z.dense.data() + l * x.dense_cols);
      }
    });
    for (int64_t b = 0; b * BLOCK < until - from; ++b) {
      for (int64_t size : parts[b].size) z.ptr.push_back(z.ptr.back() + size);
      z.idx.append(parts[b].idx.data(), static_cast<int64_t>(parts[b].idx.size()));
      z.val.append(parts[b].val.data(), static_cast<int64_t>(parts[b].val.size()));
    }
    control.done = until;
  }
  return z;
}

}  // namespace lw
