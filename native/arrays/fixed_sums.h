// Sums of many rows that come out in the same bits for any number of threads or machines: rows are added up in blocks
// of a fixed size, and the blocks in a fixed binary tree. Where the blocks begin depends on the rows alone.
#pragma once
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "arrays/parallel.h"

namespace lw {

constexpr int64_t SUM_ENTRIES = int64_t{1} << 20;  // numbers in a block: a millisecond of adding

// Block k is the rows [bounds[k], bounds[k + 1]): as few as hold SUM_ENTRIES numbers. `entries(i)` counts those of row
// i.
template <typename Entries>
std::vector<int64_t> sum_blocks(int64_t rows, Entries&& entries) {
  std::vector<int64_t> bounds{0};
  int64_t held = 0;
  for (int64_t i = 0; i < rows; ++i) {
    held += entries(i);
    if (held >= SUM_ENTRIES && i + 1 < rows) bounds.push_back(i + 1), held = 0;
  }
  bounds.push_back(rows);
  return bounds;
}

// Adds partial sums in a binary tree as they are finished: node i of a level is the sum of nodes 2 i and 2 i + 1 below,
// one without a partner passes up as it is. Held at once are a few partial sums for each thread, not one for each
// block.
class SumTree {
 public:
  SumTree(int64_t blocks, int64_t width) : blocks_(blocks), width_(width) {}

  // A partial sum of zeros.
  std::vector<float> fresh() {
    std::vector<float> found;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!spare_.empty()) found = std::move(spare_.back()), spare_.pop_back();
    }
    found.assign(width_, 0);
    return found;
  }

  void finish(int64_t block, std::vector<float>&& sum) {
    int64_t count = blocks_, i = block;
    for (int level = 0; count > 1; ++level, i /= 2, count = (count + 1) / 2) {
      if ((i ^ 1) >= count) continue;
      std::vector<float> other;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        const auto found = waiting_.find({level, i ^ 1});
        if (found == waiting_.end()) {
          waiting_.emplace(std::make_pair(level, i), std::move(sum));
          return;
        }
        other = std::move(found->second);
        waiting_.erase(found);
      }
      for (int64_t f = 0; f < width_; ++f) sum[f] += other[f];  // a + b and b + a have the same bits
      std::lock_guard<std::mutex> lock(mutex_);
      spare_.push_back(std::move(other));
    }
    root_ = std::move(sum);
  }

  std::vector<float>&& root() { return std::move(root_); }

 private:
  int64_t blocks_, width_;
  std::mutex mutex_;
  std::map<std::pair<int, int64_t>, std::vector<float>> waiting_;
  std::vector<std::vector<float>> spare_;
  std::vector<float> root_;
};

// The sum over all blocks into `out` (width); `add(i, sum)` adds row i.
template <typename Add>
void sum_rows(const std::vector<int64_t>& bounds, int64_t width, int threads, Control& control, std::vector<float>& out,
              Add&& add) {
  const int64_t blocks = static_cast<int64_t>(bounds.size()) - 1;
  if (blocks == 1) {  // most segments: their one partial sum is the sum
    out.assign(width, 0);
    for (int64_t i = bounds[0]; i < bounds[1]; ++i) add(i, out.data());
    return;
  }
  SumTree tree(blocks, width);
  parallel_for(threads, blocks, control, [&](int64_t b, int) {
    std::vector<float> sum = tree.fresh();
    for (int64_t i = bounds[b]; i < bounds[b + 1]; ++i) add(i, sum.data());
    tree.finish(b, std::move(sum));
  });
  out = tree.root();
}

}  // namespace lw
