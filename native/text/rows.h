// The last step of tf-idf for one document: counts by term to a row, sorted, weighted and normalised.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace lw {

// A stored count, and later the weight in its place.
struct Entry {
  uint32_t id;
  union {
    uint32_t count;
    float weight;
  };
};

// 1 + ln tf, or tf.
class TermWeight {
 public:
  explicit TermWeight(bool sublinear) : sublinear_(sublinear), known_(256) {
    for (uint32_t tf = 1; tf < known_.size(); ++tf) known_[tf] = weigh(tf);
  }
  double operator()(uint32_t tf) const { return tf < known_.size() ? known_[tf] : weigh(tf); }

 private:
  double weigh(uint32_t tf) const { return sublinear_ ? 1.0 + std::log(static_cast<double>(tf)) : tf; }
  bool sublinear_;
  std::vector<double> known_;
};

// One per worker. Many documents: counts in an array over all terms, sorted by walking a bit map of the touched ones.
// Few documents (`sparse`): no array of that size is made; the ids themselves are sorted.
class RowMaker {
 public:
  RowMaker(const std::vector<float>& idf, const TermWeight& weight, bool l2, bool sparse)
      : idf_(idf), weight_(weight), l2_(l2), sparse_(sparse), touched_(64) {
    if (sparse) return;
    counts_.resize(idf.size());
    bits_.resize(idf.size() / 64 + 1);
    summary_.resize(bits_.size() / 64 + 1);
  }

  // Room for `more` calls of add.
  void expect(size_t more) {
    if (used_ + more > touched_.size()) touched_.resize(2 * (used_ + more));
  }
  void add(uint32_t id) {
    touched_[used_] = id;
    used_ += sparse_ ? 1 : counts_[id]++ == 0;
  }
  void add(uint32_t id, uint32_t count) {  // each id once; not when sparse
    touched_[used_++] = id;
    counts_[id] = count;
  }

  // Write the row to `out`, which has room for `used()` entries, and start afresh.
  int64_t finish(Entry* out) {
    Entry* end = sparse_ ? by_sorting(out) : used_ <= 24 ? by_short_sort(out) : by_bits(out);
    used_ = 0;
    weigh(out, end);
    return end - out;
  }
  size_t used() const { return used_; }

 private:
  Entry* by_sorting(Entry* out) {
    std::sort(touched_.begin(), touched_.begin() + static_cast<int64_t>(used_));
    for (size_t i = 0, j; i < used_; i = j) {
      for (j = i + 1; j < used_ && touched_[j] == touched_[i]; ++j) {
      }
      *out++ = {touched_[i], {static_cast<uint32_t>(j - i)}};
    }
    return out;
  }
  Entry* by_short_sort(Entry* out) {
    std::sort(touched_.begin(), touched_.begin() + static_cast<int64_t>(used_));
    for (size_t i = 0; i < used_; ++i) out = take(touched_[i], out);
    return out;
  }
  Entry* by_bits(Entry* out) {
    for (size_t i = 0; i < used_; ++i) {
      const uint32_t id = touched_[i];
      bits_[id >> 6] |= 1ull << (id & 63);
      summary_[id >> 12] |= 1ull << (id >> 6 & 63);
    }
    for (size_t s = 0; s < summary_.size(); ++s) {
      for (uint64_t words = summary_[s]; words; words &= words - 1) {
        const size_t w = s << 6 | static_cast<size_t>(std::countr_zero(words));
        for (uint64_t set = bits_[w]; set; set &= set - 1)
          out = take(static_cast<uint32_t>(w << 6 | static_cast<size_t>(std::countr_zero(set))), out);
        bits_[w] = 0;
      }
      summary_[s] = 0;
    }
    return out;
  }
  Entry* take(uint32_t id, Entry* out) {
    *out = {id, {counts_[id]}};
    counts_[id] = 0;
    return out + 1;
  }
  // In double until the end, so that the floats are the same everywhere.
  void weigh(Entry* begin, Entry* end) {
    values_.resize(std::max(values_.size(), static_cast<size_t>(end - begin)));
    double squares = 0;
    double* value = values_.data();
    for (const Entry* e = begin; e < end; ++e, ++value) {
      *value = weight_(e->count) * static_cast<double>(idf_[e->id]);
      squares += *value * *value;
    }
    const double scale = l2_ && squares > 0 ? 1.0 / std::sqrt(squares) : 1.0;
    value = values_.data();
    for (Entry* e = begin; e < end; ++e, ++value) e->weight = static_cast<float>(*value * scale);
  }

  const std::vector<float>& idf_;
  const TermWeight& weight_;
  bool l2_, sparse_;
  size_t used_ = 0;
  std::vector<uint32_t> touched_, counts_;
  std::vector<uint64_t> bits_, summary_;
  std::vector<double> values_;
};

}  // namespace lw
