#include "arrays/csr.h"

#include <algorithm>
#include <vector>

#include "arrays/parallel.h"

namespace lw {
namespace {

Fault check_rows(const Csr& m, double largest, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    int64_t last = -1;
    for (int64_t p = m.ptr[r]; p < m.ptr[r + 1]; ++p) {
      const int64_t c = m.idx[p];
      if (c < 0 || c >= m.cols)
        return {"column " + std::to_string(c) + " is outside 0.." + std::to_string(m.cols - 1), r, p};
      if (c == last) return {"column " + std::to_string(c) + " stands twice", r, p};
      if (c < last) return {"columns are not sorted", r, p};
      if (!(std::fabs(m.val[p]) <= largest))  // NaN too
        return {"the value in column " + std::to_string(c) + " is not a number within ±" +
                    std::to_string(static_cast<int64_t>(largest)),
                r, p};
      last = c;
    }
  }
  return {};
}

}  // namespace

Fault validate(const Csr& m, int64_t index_length, int64_t value_length, double largest, int threads) {
  if (m.ptr[0] != 0) return {"row pointers must start at 0, but start at " + std::to_string(m.ptr[0]), 0, -1};
  for (int64_t r = 0; r < m.rows; ++r)
    if (m.ptr[r + 1] < m.ptr[r])
      return {"row pointers fall from " + std::to_string(m.ptr[r]) + " to " + std::to_string(m.ptr[r + 1]), r, -1};
  if (m.ptr[m.rows] != index_length || index_length != value_length)
    return {"row pointers end at " + std::to_string(m.ptr[m.rows]) + " but there are " + std::to_string(index_length) +
                " columns and " + std::to_string(value_length) + " values",
            m.rows - 1, -1};
  const int64_t block = 4096, blocks = (m.rows + block - 1) / block;
  std::vector<Fault> faults(blocks);
  Control control;
  parallel_for(threads, blocks, control, [&](int64_t b, int) {
    faults[b] = check_rows(m, largest, b * block, std::min(m.rows, (b + 1) * block));
  });
  for (auto& f : faults)
    if (!f.what.empty()) return f;
  return {};
}

}  // namespace lw
