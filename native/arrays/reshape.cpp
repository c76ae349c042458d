#include "arrays/reshape.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace lw {
namespace {

OwnedCsr with_pointers(Buffer<int64_t> ptr) {
  ptr[0] = 0;
  for (int64_t i = 1; i < ptr.size; ++i) ptr[i] += ptr[i - 1];
  const int64_t total = ptr[ptr.size - 1];
  return {std::move(ptr), Buffer<int32_t>(total), Buffer<float>(total)};
}

// One row with its columns replaced by their groups and equal ones summed, in the order they stood.
class Summed {
 public:
  std::vector<std::pair<int32_t, float>> row;
  void set(const Csr& m, int64_t r, const int32_t* group) {
    entries_.clear();
    row.clear();
    for (int64_t p = m.ptr[r]; p < m.ptr[r + 1]; ++p)
      if (group[m.idx[p]] >= 0) entries_.push_back({group[m.idx[p]], p});
    std::sort(entries_.begin(), entries_.end());
    double sum = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const auto [column, at] = entries_[i];
      sum += m.val[at];
      if (i + 1 < entries_.size() && entries_[i + 1].first == column) continue;
      row.push_back({column, static_cast<float>(sum)});
      sum = 0;
    }
  }

 private:
  std::vector<std::pair<int32_t, int64_t>> entries_;
};

}  // namespace

OwnedCsr transpose(const Csr& m) {
  Buffer<int64_t> counts(m.cols + 1);
  std::fill(counts.data(), counts.data() + counts.size, 0);
  for (int64_t p = 0; p < m.nnz(); ++p) ++counts[m.idx[p] + 1];
  OwnedCsr out = with_pointers(std::move(counts));
  std::vector<int64_t> at(out.ptr.data(), out.ptr.data() + m.cols);
  for (int64_t r = 0; r < m.rows; ++r)
    for (int64_t p = m.ptr[r]; p < m.ptr[r + 1]; ++p) {
      const int64_t to = at[m.idx[p]]++;
      out.idx[to] = static_cast<int32_t>(r);
      out.val[to] = m.val[p];
    }
  return out;
}

OwnedCsr sum_columns(const Csr& m, const int32_t* group, int threads, Control& control) {
  constexpr int64_t BLOCK = 4096;
  std::vector<Summed> summed(threads);
  auto each_row = [&](auto&& visit) {
    parallel_for(threads, (m.rows + BLOCK - 1) / BLOCK, control, [&](int64_t b, int worker) {
      for (int64_t r = b * BLOCK; r < std::min(m.rows, (b + 1) * BLOCK); ++r) {
        summed[worker].set(m, r, group);
        visit(r, summed[worker].row);
      }
    });
  };
  Buffer<int64_t> sizes(m.rows + 1);
  each_row([&](int64_t r, const auto& row) { sizes[r + 1] = static_cast<int64_t>(row.size()); });
  OwnedCsr out = with_pointers(std::move(sizes));
  each_row([&](int64_t r, const auto& row) {
    int64_t to = out.ptr[r];
    for (const auto& [column, value] : row) out.idx[to] = column, out.val[to++] = value;
  });
  return out;
}

}  // namespace lw
