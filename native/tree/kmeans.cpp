#include "tree/kmeans.h"

#include <algorithm>
#include <cmath>

#include "arrays/fixed_sums.h"
#include "arrays/rng.h"
#include "tree/kmeans_many.h"

namespace lw {
namespace {

struct Scratch {
  RowGatherer gatherer;
  LabelRows rows;
};

double length(const std::vector<float>& v) {
  double sum = 0;
  for (float x : v) sum += double(x) * x;
  return std::sqrt(sum);
}

struct Scored {
  float score;
  int32_t at;  // position among the segment's members, which are sorted by label
  bool operator<(const Scored& o) const { return score != o.score ? score < o.score : at < o.at; }
};

// c = z_r - z_l for a random r and the least similar of eight random others: two equal starts would leave c = 0.
void start_apart(const LabelRows& z, uint64_t k, std::vector<float>& c) {
  const uint32_t n = static_cast<uint32_t>(z.n);
  Rng rng(k);
  const uint32_t r = rng.below(n);
  z.add(r, 1, c.data());
  uint32_t l = 0;
  float least = 0;
  for (int draw = 0; draw < 8; ++draw) {
    const uint32_t other = (r + 1 + rng.below(n - 1)) % n;
    const float similarity = z.dot(other, c.data());
    if (draw == 0 || similarity < least) l = other, least = similarity;
  }
  z.add(l, -1, c.data());
}

// Balanced 2-means: the `left` members with the lowest <c, z>, c = R/|R| - L/|L|, go left (ties: smaller label).
// Members stay sorted within each side. R is the total minus L, which halves the adding.
void bisect(const LabelRows& z, int32_t* m, int64_t left, uint64_t k, int max_iter, int threads, Control& control) {
  const int64_t n = z.n;
  std::vector<float> c(z.width(), 0), total, low;
  start_apart(z, k, c);
  std::vector<uint8_t> right(n, 0), before;
  const std::vector<int64_t> blocks = sum_blocks(n, [&](int64_t i) { return z.entries(i); });
  const auto sum_left = [&](std::vector<float>& out) {
    sum_rows(blocks, z.width(), threads, control, out, [&](int64_t i, float* sum) {
      if (!right[i]) z.add(i, 1, sum);
    });
  };
  sum_left(total);
  std::vector<Scored> scored(n), order;
  for (int iter = 0; iter < max_iter; ++iter) {
    const int64_t block = 1024;
    parallel_for(threads, (n + block - 1) / block, control, [&](int64_t b, int) {
      for (int64_t i = b * block; i < std::min(n, (b + 1) * block); ++i)
        scored[i] = {z.dot(i, c.data()), static_cast<int32_t>(i)};
    });
    order = scored;
    std::nth_element(order.begin(), order.begin() + left, order.end());
    for (int64_t i = 0; i < n; ++i) right[i] = !(scored[i] < order[left]);
    if (right == before) break;
    before = right;
    if (iter + 1 == max_iter) break;
    sum_left(low);
    for (size_t f = 0; f < c.size(); ++f) c[f] = total[f] - low[f];
    const double a = length(low), b = length(c);
    const double down = a > 0 ? 1 / a : 0, up = b > 0 ? 1 / b : 0;  // in double: 1 / a may leave float's range
    for (size_t f = 0; f < c.size(); ++f) c[f] = static_cast<float>(c[f] * up - low[f] * down);
  }
  const std::vector<int32_t> members(m, m + n);
  int64_t a = 0, b = left;
  for (int64_t i = 0; i < n; ++i) m[right[i] ? b++ : a++] = members[i];
}

// Cut one segment: into two by bisect, into all its parts at once otherwise.
std::vector<Segment> cut(const LabelRows& z, int32_t* m, const Segment& s, const KMeansConfig& config, int threads,
                         Control& control) {
  const uint64_t k = key(config.seed, config.tree, config.first + s.begin, config.first + s.end, s.parts);
  if (config.cut == Cut::kway) return kway(z, m, s, k, config.max_iter, threads, control);
  if (config.cut == Cut::uneven) return uneven(z, m, s, k, config.max_iter, config.sample, threads, control);
  const int32_t parts = s.parts / 2;
  const int64_t left = s.size() * parts / s.parts;
  bisect(z, m, left, k, config.max_iter, threads, control);
  return {{s.begin, s.begin + left, parts}, {s.begin + left, s.end, s.parts - parts}};
}

// The segments still to be cut, largest first, and how many of them are more than a worker's fair share: those are cut
// one after the other with threads inside, the rest side by side.
std::vector<int64_t> still_open(const std::vector<Segment>& segments, int threads, int64_t& large) {
  std::vector<int64_t> open;
  int64_t total = 0;
  for (size_t i = 0; i < segments.size(); ++i)
    if (segments[i].parts > 1) open.push_back(static_cast<int64_t>(i)), total += segments[i].size();
  std::stable_sort(open.begin(), open.end(),
                   [&](int64_t a, int64_t b) { return segments[a].size() > segments[b].size(); });
  for (large = 0; large < static_cast<int64_t>(open.size());) {
    if (4 * threads * segments[open[large]].size() <= 5 * total) break;
    ++large;
  }
  return open;
}

}  // namespace

std::vector<Segment> split(const Features& z, std::vector<int32_t>& members, std::vector<Segment> segments,
                           const KMeansConfig& config, int threads, Control& control) {
  std::vector<Scratch> scratch(threads);
  for (const auto& s : segments) std::sort(members.begin() + s.begin, members.begin() + s.end);
  control.total = static_cast<int64_t>(members.size());
  int64_t large = 0;
  for (std::vector<int64_t> open; !(open = still_open(segments, threads, large)).empty();) {
    std::vector<std::vector<Segment>> next(segments.size());
    auto one = [&](int64_t at, int worker, int inside) {
      const Segment& s = segments[at];
      Scratch& own = scratch[worker];
      own.rows.set(z, members.data() + s.begin, s.size(), own.gatherer);
      next[at] = cut(own.rows, members.data() + s.begin, s, config, inside, control);
    };
    for (int64_t t = 0; t < large; ++t) one(open[t], 0, threads);
    parallel_for(threads, static_cast<int64_t>(open.size()) - large, control,
                 [&](int64_t t, int worker) { one(open[large + t], worker, 1); });
    std::vector<Segment> cuts;
    int64_t finished = 0;
    for (size_t i = 0; i < segments.size(); ++i) {
      if (next[i].empty()) next[i] = {segments[i]};
      for (const auto& s : next[i]) cuts.push_back(s), finished += s.parts == 1 ? s.size() : 0;
    }
    segments = std::move(cuts);
    control.done = finished;
  }
  return segments;
}

}  // namespace lw
