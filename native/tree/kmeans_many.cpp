#include "tree/kmeans_many.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "arrays/fixed_sums.h"
#include "arrays/rng.h"
#include "linear/kernels.h"

namespace lw {
namespace {

constexpr int64_t BLOCK = 1024;  // rows of one task
constexpr double GAIN = 1e-4;    // Bonsai's rule: stop when the mean similarity rises by less

struct Means {
  const LabelRows& z;
  int32_t parts;
  int threads;
  Control& control;
  std::vector<float> centres;   // (features, parts)
  std::vector<int32_t> choice;  // (n) centre of each row; -1: none yet
  std::vector<int32_t> rows;    // those looked at, ascending

  // B different rows are the first centres; a random `sample` of rows, those among them, is looked at.
  void start(uint64_t k, int64_t sample) {
    std::vector<int32_t> order = all();
    shuffle(order.data(), z.n, k);
    choice.assign(z.n, -1);
    for (int32_t c = 0; c < parts; ++c) choice[order[c]] = c;
    rows.assign(order.begin(), order.begin() + std::min(sample, z.n));
    std::sort(rows.begin(), rows.end());
  }

  std::vector<int32_t> all() const {
    std::vector<int32_t> found(z.n);
    std::iota(found.begin(), found.end(), 0);
    return found;
  }

  std::vector<int64_t> counts() const {
    std::vector<int64_t> found(parts, 0);
    for (int32_t c : choice)
      if (c >= 0) ++found[c];
    return found;
  }

  // Row numbers grouped by centre, ascending within each; ptr (parts + 1).
  std::vector<int32_t> grouped(std::vector<int64_t>& ptr) const {
    const std::vector<int64_t> sizes = counts();
    ptr.assign(parts + 1, 0);
    for (int32_t c = 0; c < parts; ++c) ptr[c + 1] = ptr[c] + sizes[c];
    std::vector<int32_t> order(ptr[parts]);
    std::vector<int64_t> at(ptr.begin(), ptr.end() - 1);
    for (int64_t i = 0; i < z.n; ++i)
      if (choice[i] >= 0) order[at[choice[i]]++] = static_cast<int32_t>(i);
    return order;
  }

  // Centres are the normalised sums of their rows, in fixed blocks. Those of one block are tasks side by side; a centre
  // of several has all threads for itself.
  void recentre() {
    std::vector<int64_t> ptr;
    const std::vector<int32_t> order = grouped(ptr);
    centres.resize(z.width() * parts);
    std::vector<std::vector<int64_t>> blocks(parts);
    std::vector<int64_t> large, small;
    for (int32_t c = 0; c < parts; ++c) {
      const int32_t* rows = order.data() + ptr[c];
      blocks[c] = sum_blocks(ptr[c + 1] - ptr[c], [&](int64_t i) { return z.entries(rows[i]); });
      (blocks[c].size() > 2 ? large : small).push_back(c);
    }
    std::vector<std::vector<float>> sums(threads);
    auto one = [&](int64_t c, int worker, int inside) {
      const int32_t* rows = order.data() + ptr[c];
      sum_rows(blocks[c], z.width(), inside, control, sums[worker],
               [&](int64_t i, float* sum) { z.add(rows[i], 1, sum); });
      store(c, sums[worker]);
    };
    for (int64_t c : large) one(c, 0, threads);
    parallel_for(threads, static_cast<int64_t>(small.size()), control,
                 [&](int64_t t, int worker) { one(small[t], worker, 1); });
  }

  // A sum of rows, normalised, as centre c.
  void store(int64_t c, const std::vector<float>& sum) {
    double norm = 0;
    for (float v : sum) norm += double(v) * v;
    const double scale = norm > 0 ? 1 / std::sqrt(norm) : 0;
    for (size_t f = 0; f < sum.size(); ++f) centres[f * parts + c] = static_cast<float>(sum[f] * scale);
  }

  void score(int64_t i, std::vector<float>& out) const {
    out.assign(parts, 0);
    const auto axpy = kernels().axpy;
    z.each(i, [&](int64_t f, float v) { axpy(v, centres.data() + f * parts, out.data(), parts); });
  }

  // f(row, similarities to the B centres, block) for every row looked at, in blocks over the threads.
  template <typename Visit>
  void each_scored(Visit&& f) {
    std::vector<std::vector<float>> scores(threads);
    parallel_for(threads, blocks(), control, [&](int64_t b, int worker) {
      for (int64_t i = b * BLOCK; i < std::min(size(), (b + 1) * BLOCK); ++i) {
        score(rows[i], scores[worker]);
        f(rows[i], scores[worker], b);
      }
    });
  }
  int64_t size() const { return static_cast<int64_t>(rows.size()); }
  int64_t blocks() const { return (size() + BLOCK - 1) / BLOCK; }

  // Members by part, in the order of the centres.
  std::vector<Segment> reorder(int32_t* m, int64_t begin) const {
    std::vector<int64_t> ptr;
    const std::vector<int32_t> order = grouped(ptr), members(m, m + z.n);
    for (int64_t i = 0; i < z.n; ++i) m[i] = members[order[i]];
    std::vector<Segment> out;
    for (int32_t c = 0; c < parts; ++c)
      if (ptr[c] < ptr[c + 1]) out.push_back({begin + ptr[c], begin + ptr[c + 1], 1});
    return out;
  }
};

// The best allowed centre (ties: the smaller), or -1.
template <typename Allowed>
int32_t best(const std::vector<float>& scores, Allowed&& allowed) {
  int32_t found = -1;
  for (int32_t c = 0; c < static_cast<int32_t>(scores.size()); ++c)
    if (allowed(c) && (found < 0 || scores[c] > scores[found])) found = c;
  return found;
}

// A row and the centre it asks for; the most similar pair is served first (ties: smaller row, then smaller centre).
struct Wish {
  float score;
  int32_t row, centre;
  bool operator<(const Wish& o) const {
    if (score != o.score) return score < o.score;
    return row != o.row ? row > o.row : centre > o.centre;
  }
};

// Give each row to the centre it likes best among those with room, most similar pairs first. floor(n/B) places each,
// and one more for the first n mod B centres that ask. A centre that is full stays full, so a row turned away asks for
// the best one still open: a heap of n wishes visits the n x B pairs in their order without listing them.
void assign_balanced(Means& means) {
  const int64_t n = means.z.n, places = n / means.parts;
  int64_t spare = n % means.parts;
  std::vector<Wish> heap(n);
  means.each_scored([&](int64_t i, const std::vector<float>& scores, int64_t) {
    const int32_t c = best(scores, [](int32_t) { return true; });
    heap[i] = {scores[c], static_cast<int32_t>(i), c};
  });
  std::make_heap(heap.begin(), heap.end());
  std::vector<int64_t> used(means.parts, 0);
  std::vector<float> scores;
  auto open = [&](int32_t c) { return used[c] < places || (used[c] == places && spare > 0); };
  while (!heap.empty()) {
    means.control.check();
    std::pop_heap(heap.begin(), heap.end());
    Wish& wish = heap.back();
    if (open(wish.centre)) {
      if (used[wish.centre] == places) --spare;
      ++used[wish.centre];
      means.choice[wish.row] = wish.centre;
      heap.pop_back();
    } else {
      means.score(wish.row, scores);
      wish.centre = best(scores, open);
      wish.score = scores[wish.centre];
      std::push_heap(heap.begin(), heap.end());
    }
  }
}

// Every row looked at to its nearest centre; returns the sum of the similarities, block by block.
double assign_nearest(Means& means) {
  std::vector<double> sums(means.blocks(), 0);
  means.each_scored([&](int64_t i, const std::vector<float>& scores, int64_t block) {
    means.choice[i] = best(scores, [](int32_t) { return true; });
    sums[block] += scores[means.choice[i]];
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// Rows that are alone at their centre move to the nearest one with company.
void dissolve_singles(Means& means) {
  const std::vector<int64_t> counts = means.counts();
  std::vector<float> scores;
  for (int64_t i = 0; i < means.z.n; ++i) {
    if (counts[means.choice[i]] != 1) continue;
    means.score(i, scores);
    const int32_t c = best(scores, [&](int32_t other) { return counts[other] > 1; });
    means.choice[i] = c < 0 ? 0 : c;  // nobody has company: all stay together
  }
}

}  // namespace

std::vector<Segment> kway(const LabelRows& z, int32_t* m, const Segment& segment, uint64_t k, int max_iter, int threads,
                          Control& control) {
  Means means{z, segment.parts, threads, control, {}, {}, {}};
  means.start(k, z.n);
  std::vector<int32_t> before;
  for (int iter = 0; iter < max_iter && means.choice != before; ++iter) {
    before = means.choice;
    means.recentre();
    assign_balanced(means);
  }
  return means.reorder(m, segment.begin);
}

std::vector<Segment> uneven(const LabelRows& z, int32_t* m, const Segment& segment, uint64_t k, int max_iter,
                            int64_t sample, int threads, Control& control) {
  Means means{z, segment.parts, threads, control, {}, {}, {}};
  means.start(k, std::max<int64_t>(1, sample) * segment.parts);
  std::vector<int32_t> before;
  double last = 0;
  for (int iter = 0; iter < max_iter && means.choice != before; ++iter) {
    before = means.choice;
    means.recentre();
    const double sum = assign_nearest(means);
    if (iter > 0 && sum - last < GAIN * static_cast<double>(means.size())) break;
    last = sum;
  }
  if (means.size() < z.n) {  // the others join, then the centres move once more
    means.rows = means.all();
    for (int pass = 0; pass < 2; ++pass) {
      means.recentre();
      assign_nearest(means);
    }
  }
  dissolve_singles(means);
  return means.reorder(m, segment.begin);
}

}  // namespace lw
