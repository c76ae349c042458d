#include "kmeans.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels.h"
#include "local_rows.h"
#include "rng.h"

namespace lw {
namespace {

struct Scratch {
  RowGatherer gatherer;
  LocalRows rows;
};

void add(const LocalRows& z, int64_t i, float scale, float* out) {
  for (int64_t p = z.ptr[i]; p < z.ptr[i + 1]; ++p) out[z.idx[p]] += scale * z.val[p];
  for (int64_t j = 0; j < z.dense_cols; ++j) out[z.sparse_cols() + j] += scale * z.dense[i][j];
}

float dot(const LocalRows& z, int64_t i, const float* c) {
  float a = 0, b = 0;
  int64_t p = z.ptr[i];
  for (; p + 2 <= z.ptr[i + 1]; p += 2) a += z.val[p] * c[z.idx[p]], b += z.val[p + 1] * c[z.idx[p + 1]];
  if (p < z.ptr[i + 1]) a += z.val[p] * c[z.idx[p]];
  for (int64_t j = 0; j < z.dense_cols; ++j) b += z.dense[i][j] * c[z.sparse_cols() + j];
  return a + b;
}

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

// The sum of the rows with side[i] == 0, in two partial sums of fixed ranges: the same bits for any thread count.
void sum_left(const LocalRows& z, const std::vector<uint8_t>& right, std::vector<float> (&part)[2], int threads,
              Control& control) {
  parallel_for(threads, 2, control, [&](int64_t h, int) {
    part[h].assign(z.width(), 0);
    for (int64_t i = h ? z.n / 2 : 0; i < (h ? z.n : z.n / 2); ++i)
      if (!right[i]) add(z, i, 1, part[h].data());
  });
  for (size_t f = 0; f < part[0].size(); ++f) part[0][f] += part[1][f];
}

// c = z_r - z_l for a random r and the least similar of eight random others: two equal starts would leave c = 0.
void start_apart(const LocalRows& z, uint64_t k, std::vector<float>& c) {
  const uint32_t n = static_cast<uint32_t>(z.n);
  Rng rng(k);
  const uint32_t r = rng.below(n);
  add(z, r, 1, c.data());
  uint32_t l = 0;
  float least = 0;
  for (int draw = 0; draw < 8; ++draw) {
    const uint32_t other = (r + 1 + rng.below(n - 1)) % n;
    const float similarity = dot(z, other, c.data());
    if (draw == 0 || similarity < least) l = other, least = similarity;
  }
  add(z, l, -1, c.data());
}

// Balanced 2-means: the `left` members with the lowest <c, z>, c = R/|R| - L/|L|, go left (ties: smaller label).
// Members stay sorted within each side. R is the total minus L, which halves the adding.
void bisect(const LocalRows& z, int32_t* m, int64_t left, uint64_t k, int max_iter, int threads, Control& control) {
  const int64_t n = z.n;
  std::vector<float> c(z.width(), 0), total, part[2];
  start_apart(z, k, c);
  std::vector<uint8_t> right(n, 0), before;
  sum_left(z, right, part, threads, control);
  total = part[0];
  std::vector<Scored> scored(n), order;
  for (int iter = 0; iter < max_iter; ++iter) {
    const int64_t block = 1024;
    parallel_for(threads, (n + block - 1) / block, control, [&](int64_t b, int) {
      for (int64_t i = b * block; i < std::min(n, (b + 1) * block); ++i)
        scored[i] = {dot(z, i, c.data()), static_cast<int32_t>(i)};
    });
    order = scored;
    std::nth_element(order.begin(), order.begin() + left, order.end());
    for (int64_t i = 0; i < n; ++i) right[i] = !(scored[i] < order[left]);
    if (right == before) break;
    before = right;
    if (iter + 1 == max_iter) break;
    sum_left(z, right, part, threads, control);
    const std::vector<float>& low = part[0];
    std::vector<float>& high = part[1];
    for (size_t f = 0; f < c.size(); ++f) high[f] = total[f] - low[f];
    const double a = length(low), b = length(high);
    const double down = a > 0 ? 1 / a : 0, up = b > 0 ? 1 / b : 0;  // in double: 1 / a may leave float's range
    for (size_t f = 0; f < c.size(); ++f) c[f] = static_cast<float>(high[f] * up - low[f] * down);
  }
  const std::vector<int32_t> members(m, m + n);
  int64_t a = 0, b = left;
  for (int64_t i = 0; i < n; ++i) m[right[i] ? b++ : a++] = members[i];
}

// Give each element to the centre it likes best among those with room, most similar pairs first. floor(n/B) places
// each, and one more for the first n mod B centres that ask.
std::vector<int32_t> assign_balanced(const std::vector<float>& sim, int64_t n, int32_t parts, const Control& control) {
  std::vector<int64_t> pairs(n * parts);
  std::iota(pairs.begin(), pairs.end(), 0);
  std::sort(pairs.begin(), pairs.end(), [&](int64_t a, int64_t b) {
    control.check();
    return sim[a] != sim[b] ? sim[a] > sim[b] : a < b;
  });
  std::vector<int32_t> choice(n, -1);
  std::vector<int64_t> used(parts, 0);
  int64_t spare = n % parts;
  for (int64_t p : pairs) {
    const int64_t i = p / parts;
    const int32_t c = static_cast<int32_t>(p % parts);
    if (choice[i] >= 0 || used[c] > n / parts || (used[c] == n / parts && spare == 0)) continue;
    if (used[c] == n / parts) --spare;
    choice[i] = c;
    ++used[c];
  }
  return choice;
}

// centres (features, B): normalised sums of the members of each part.
void recentre(const LocalRows& z, int32_t parts, const std::vector<int32_t>& choice, std::vector<float>& centres,
              const Control& control) {
  centres.assign(z.width() * parts, 0);
  for (int64_t i = 0; i < z.n; ++i) {
    control.check();
    if (choice[i] < 0) continue;
    for (int64_t p = z.ptr[i]; p < z.ptr[i + 1]; ++p) centres[int64_t{z.idx[p]} * parts + choice[i]] += z.val[p];
    for (int64_t j = 0; j < z.dense_cols; ++j) centres[(z.sparse_cols() + j) * parts + choice[i]] += z.dense[i][j];
  }
  std::vector<double> norm(parts, 0);
  for (int64_t f = 0; f < z.width(); ++f)
    for (int32_t c = 0; c < parts; ++c) norm[c] += double(centres[f * parts + c]) * centres[f * parts + c];
  for (auto& v : norm) v = v > 0 ? 1 / std::sqrt(v) : 0;
  for (int64_t f = 0; f < z.width(); ++f)
    for (int32_t c = 0; c < parts; ++c) centres[f * parts + c] = static_cast<float>(centres[f * parts + c] * norm[c]);
}

void similarities(const LocalRows& z, int32_t parts, const std::vector<float>& centres, std::vector<float>& sim,
                  const Control& control) {
  sim.assign(z.n * parts, 0);
  const auto axpy = kernels().axpy;
  for (int64_t i = 0; i < z.n; ++i) {
    control.check();
    float* out = sim.data() + i * parts;
    for (int64_t p = z.ptr[i]; p < z.ptr[i + 1]; ++p)
      axpy(z.val[p], centres.data() + int64_t{z.idx[p]} * parts, out, parts);
    for (int64_t j = 0; j < z.dense_cols; ++j)
      axpy(z.dense[i][j], centres.data() + (z.sparse_cols() + j) * parts, out, parts);
  }
}

std::vector<Segment> kway(const LocalRows& z, int32_t* m, const Segment& segment, uint64_t k, int max_iter,
                          Control& control) {
  const int64_t n = z.n;
  const int32_t parts = segment.parts;
  std::vector<int32_t> start(n), choice(n, -1), before;
  std::iota(start.begin(), start.end(), 0);
  shuffle(start.data(), n, k);
  for (int32_t c = 0; c < parts; ++c) choice[start[c]] = c;
  std::vector<float> centres, sim;
  for (int iter = 0; iter < max_iter && choice != before; ++iter) {
    control.check();
    before = choice;
    recentre(z, parts, choice, centres, control);
    similarities(z, parts, centres, sim, control);
    choice = assign_balanced(sim, n, parts, control);
  }
  std::vector<int32_t> moved;
  std::vector<Segment> out;
  for (int32_t c = 0; c < parts; ++c) {
    const int64_t begin = segment.begin + static_cast<int64_t>(moved.size());
    for (int64_t i = 0; i < n; ++i)
      if (choice[i] == c) moved.push_back(m[i]);
    out.push_back({begin, segment.begin + static_cast<int64_t>(moved.size()), 1});
  }
  std::copy(moved.begin(), moved.end(), m);
  return out;
}

}  // namespace

std::vector<Segment> split(const Features& z, std::vector<int32_t>& members, std::vector<Segment> segments,
                           const KMeansConfig& config, int threads, Control& control) {
  std::vector<Scratch> scratch(threads);
  for (const auto& s : segments) std::sort(members.begin() + s.begin, members.begin() + s.end);
  control.total = static_cast<int64_t>(members.size());
  for (bool more = true; more;) {
    std::vector<std::vector<Segment>> next(segments.size());
    std::vector<int64_t> open;
    for (size_t i = 0; i < segments.size(); ++i) {
      if (segments[i].parts > 1)
        open.push_back(static_cast<int64_t>(i));
      else
        next[i] = {segments[i]};
    }
    const bool inside = static_cast<int>(open.size()) < threads && !config.kway;  // few segments: threads within each
    parallel_for(inside ? 1 : threads, static_cast<int64_t>(open.size()), control, [&](int64_t t, int worker) {
      const Segment& s = segments[open[t]];
      const uint64_t k = key(config.seed, config.tree, s.begin, s.end, s.parts);
      int32_t* m = members.data() + s.begin;
      scratch[worker].gatherer.gather(z, m, s.size(), scratch[worker].rows);
      if (config.kway) {
        next[open[t]] = kway(scratch[worker].rows, m, s, k, config.max_iter, control);
        return;
      }
      const int32_t parts = s.parts / 2;
      const int64_t left = s.size() * parts / s.parts;
      bisect(scratch[worker].rows, m, left, k, config.max_iter, inside ? threads : 1, control);
      next[open[t]] = {{s.begin, s.begin + left, parts}, {s.begin + left, s.end, s.parts - parts}};
    });
    more = !open.empty();
    segments.clear();
    int64_t finished = 0;
    for (auto& list : next)
      for (auto& s : list) {
        segments.push_back(s);
        if (s.parts == 1) finished += s.size();
      }
    control.done = finished;
  }
  return segments;
}

}  // namespace lw
