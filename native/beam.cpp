#include "beam.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels.h"

namespace lw {
namespace {

struct Candidate {
  float score;  // log space, or a margin after a noop level
  int32_t id;
};

bool better(const Candidate& a, const Candidate& b) { return a.score != b.score ? a.score > b.score : a.id < b.id; }

// First position in [from, end) with rows[position] >= f, by doubling steps then bisection.
int64_t gallop(const int32_t* rows, int64_t from, int64_t end, int32_t f) {
  int64_t step = 1, low = from;
  while (low + step < end && rows[low + step] < f) low += step, step *= 2;
  return std::lower_bound(rows + low, rows + std::min(end, low + step + 1), f) - rows;
}

// out[0..width) = margins of the chunk's children for row i of x.
void score_chunk(const Features& x, int64_t i, const Level& level, int64_t parent, float* out) {
  const int64_t begin = level.child_ptr[parent], width = level.child_ptr[parent + 1] - begin;
  std::copy(level.bias + begin, level.bias + begin + width, out);
  int64_t at = level.chunk_ptr[parent];
  const int64_t end = level.chunk_ptr[parent + 1];
  const Csr& m = x.sparse;
  for (int64_t p = m.ptr[i]; p < m.ptr[i + 1] && at < end; ++p) {
    at = gallop(level.rows, at, end, m.idx[p]);
    if (at == end || level.rows[at] != m.idx[p]) continue;
    const float v = m.val[p];
    for (int64_t e = level.row_ptr[at]; e < level.row_ptr[at + 1]; ++e) out[level.cols[e]] += v * level.vals[e];
  }
  const float* dense = level.dense + x.dense_cols * begin;
  for (int64_t j = 0; j < x.dense_cols; ++j) kernels().axpy(x.dense_row(i)[j], dense + j * width, out, width);
}

// Sums of float32 products may leave its range; whatever comes out, scores stay comparable.
float finite(float margin) {
  const float most = std::numeric_limits<float>::max();
  return margin > -most ? std::min(margin, most) : -most;  // NaN too is the worst there is
}

float combine(const Level& level, float parent, float margin) {
  if (level.combiner == Combiner::noop) return margin;
  if (level.combiner == Combiner::sigmoid)
    return parent - (margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin);
  const float gap = margin < 1 ? 1 - margin : 0;
  float power = gap;
  for (int p = 1; p < level.power; ++p) power *= gap;
  return parent - power;
}

struct Scratch {
  std::vector<Candidate> beam, next;
  std::vector<float> margins;
};

void keep_best(std::vector<Candidate>& list, int64_t keep) {
  if (static_cast<int64_t>(list.size()) > keep) {
    std::nth_element(list.begin(), list.begin() + keep, list.end(), better);
    list.resize(keep);
  }
}

void search_one(const Features& x, int64_t i, const std::vector<Level>& levels, const int32_t* names, Scratch& s,
                const Control& control) {
  s.beam.assign(1, {0, 0});
  for (size_t t = 0; t < levels.size(); ++t) {
    const Level& level = levels[t];
    const bool last = t + 1 == levels.size();
    s.next.clear();
    // Visit parents in order of id: chunks are read forwards and the result does not depend on how they were ranked.
    std::sort(s.beam.begin(), s.beam.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
    for (const Candidate& parent : s.beam) {
      control.check();
      const int64_t begin = level.child_ptr[parent.id], width = level.child_ptr[parent.id + 1] - begin;
      s.margins.resize(width);
      score_chunk(x, i, level, parent.id, s.margins.data());
      for (int64_t c = 0; c < width; ++c) {
        const int32_t node = static_cast<int32_t>(begin + c);
        s.next.push_back({combine(level, parent.score, finite(s.margins[c])), last && names ? names[node] : node});
      }
      if (static_cast<int64_t>(s.next.size()) > 4 * level.keep + 4096) keep_best(s.next, level.keep);  // bounded memory
    }
    keep_best(s.next, level.keep);
    s.beam.swap(s.next);
    if (!last && level.combiner == Combiner::noop)
      for (auto& c : s.beam) c.score = 0;  // a plain margin chooses the beam and is not carried on
  }
  std::sort(s.beam.begin(), s.beam.end(), better);
}

}  // namespace

Found beam_search(const Features& x, const std::vector<Level>& levels, const int32_t* names, int threads,
                  Control& control) {
  const int64_t n = x.rows(), k = levels.back().keep, block = 64;
  const bool plain = levels.back().combiner == Combiner::noop;
  Found found;
  found.ids.assign(n * k, -1);
  found.scores.assign(n * k, 0);
  std::vector<Scratch> scratch(threads);
  control.total = n;
  parallel_for(threads, (n + block - 1) / block, control, [&](int64_t b, int worker) {
    for (int64_t i = b * block; i < std::min(n, (b + 1) * block); ++i) {
      Scratch& s = scratch[worker];
      search_one(x, i, levels, names, s, control);
      for (size_t r = 0; r < s.beam.size(); ++r) {
        found.ids[i * k + r] = s.beam[r].id;
        found.scores[i * k + r] = plain ? s.beam[r].score : std::exp(s.beam[r].score);
      }
    }
    control.done.fetch_add(block, std::memory_order_relaxed);
  });
  return found;
}

}  // namespace lw
