// The best `keep` candidates of one query, in a buffer that is cut down whenever it is full: amortised O(1) a push.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

namespace lw {

struct Candidate {
  float score;  // log space, or a margin after a noop level
  int32_t id;
};

inline bool better(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.id < b.id;
}

class Best {
 public:
  static int64_t room(int64_t keep) { return 2 * keep + 16; }  // candidates its buffer must hold
  Best(Candidate* buffer, int64_t keep) : list_(buffer), keep_(keep) {}

  void push(float score, int32_t id) {
    if (score < bar_) return;
    list_[size_++] = {score, id};
    if (size_ == room(keep_)) cut();
  }
  // From now on `bar` is as high as it can be.
  void cut() {
    if (size_ < keep_) return;
    std::nth_element(list_, list_ + keep_ - 1, list_ + size_, better);
    size_ = keep_;
    bar_ = list_[keep_ - 1].score;
  }
  void sort() {
    cut();
    std::sort(list_, list_ + size_, better);
  }
  float bar() const { return bar_; }  // nothing below this can be among the best
  Candidate* begin() { return list_; }
  Candidate* end() { return list_ + size_; }
  int64_t size() const { return size_; }

 private:
  Candidate* list_;
  int64_t keep_, size_ = 0;
  float bar_ = -std::numeric_limits<float>::infinity();
};

}  // namespace lw
