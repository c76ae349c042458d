#include "linear/merge.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lw {
namespace {

struct Sum {
  double value;
  int32_t id;
  float score;
};

// The labels of one document with their sums, found through an open hash table.
struct Sums {
  std::vector<Sum> list;
  std::vector<int32_t> slots;  // positions in `list`, -1 = free
  explicit Sums(int64_t most) : slots(std::bit_ceil(static_cast<uint64_t>(2 * most + 1))) { list.reserve(most); }

  void clear() {
    list.clear();
    std::fill(slots.begin(), slots.end(), -1);
  }
  double& operator[](int32_t id) {
    const uint64_t mask = slots.size() - 1;
    uint64_t at = (static_cast<uint32_t>(id) * 0x9E3779B97F4A7C15ull >> 32) & mask;
    while (slots[at] >= 0 && list[slots[at]].id != id) at = (at + 1) & mask;
    if (slots[at] < 0) {
      slots[at] = static_cast<int32_t>(list.size());
      list.push_back({0, id, 0});
    }
    return list[slots[at]].value;
  }
};

double sigmoid(double m) { return m > 0 ? 1 / (1 + std::exp(-m)) : std::exp(m) / (1 + std::exp(m)); }

// Add one member's list to the sums of a document; gives what a label that it does not name gets instead.
double add(const Ranking& member, int64_t row, Average average, double length, Sums& sums) {
  const int32_t* ids = member.ids + row * member.width;
  const float* scores = member.scores + row * member.width;
  const int64_t named = std::find(ids, ids + member.width, -1) - ids;
  if (!named) return 0;
  double scale = 0, missing = 0;
  if (average == Average::softmax)
    for (int64_t r = 0; r < named; ++r) scale += std::exp(static_cast<double>(scores[r]) - scores[0]);
  // A label outside a list of margins is no better than the last one in it.
  if (average == Average::mean) missing = std::min(0.0, static_cast<double>(scores[named - 1]));
  for (int64_t r = 0; r < named; ++r) {
    const double s = scores[r];
    double value = s - missing;
    if (average == Average::softmax) value = std::exp(s - scores[0]) / scale;
    if (average == Average::sigmoid && member.margins) value = sigmoid(s);
    if (average == Average::rank) value = (length - static_cast<double>(r)) / length;
    sums[ids[r]] += member.weight * value;
  }
  return member.weight * missing;
}

// Members take turns; each names its best label that is still unnamed.
void take_turns(const std::vector<Ranking>& members, int64_t row, double length, Sums& sums) {
  const double turns = length * static_cast<double>(members.size());
  for (size_t m = 0; m < members.size(); ++m) {
    const int32_t* ids = members[m].ids + row * members[m].width;
    for (int64_t r = 0; r < members[m].width && ids[r] >= 0; ++r) {
      double& best = sums[ids[r]];
      best = std::max(best, 1 - static_cast<double>(r * members.size() + m) / turns);
    }
  }
}

bool better(const Sum& a, const Sum& b) { return a.score != b.score ? a.score > b.score : a.id < b.id; }

}  // namespace

Found merge(const std::vector<Ranking>& members, int64_t n, Average average, int64_t length, int64_t keep, int threads,
            Control& control) {
  int64_t most = 0;
  for (const auto& member : members) most += member.width;
  Found found;
  found.ids.assign(n * keep, -1);
  found.scores.assign(n * keep, 0);
  std::vector<Sums> scratch(threads, Sums(most));
  const int64_t block = 64;
  control.total = n;
  parallel_for(threads, (n + block - 1) / block, control, [&](int64_t b, int worker) {
    Sums& sums = scratch[worker];
    const int64_t first = b * block, last = std::min(n, first + block);
    for (int64_t i = first; i < last; ++i) {
      sums.clear();
      double missing = 0;
      if (average == Average::round_robin)
        take_turns(members, i, static_cast<double>(length), sums);
      else
        for (const auto& member : members) missing += add(member, i, average, static_cast<double>(length), sums);
      auto& list = sums.list;
      for (auto& sum : list) sum.score = static_cast<float>(sum.value + missing);
      const int64_t kept = std::min<int64_t>(keep, static_cast<int64_t>(list.size()));
      std::partial_sort(list.begin(), list.begin() + kept, list.end(), better);
      for (int64_t r = 0; r < kept; ++r) {
        found.ids[i * keep + r] = list[r].id;
        found.scores[i * keep + r] = list[r].score;
      }
    }
    control.done.fetch_add(last - first, std::memory_order_relaxed);
  });
  return found;
}

}  // namespace lw
