#include "linear/beam.h"

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "linear/best.h"
#include "linear/kernels.h"

namespace lw {
namespace {

// Sums of float32 products may leave its range; whatever comes out, scores stay comparable.
inline float finite(float margin) {
  const float most = std::numeric_limits<float>::max();
  return margin > -most ? std::min(margin, most) : -most;  // NaN too is the worst there is
}

float log_sigmoid(float m) { return m > 0 ? -std::log1p(std::exp(-m)) : m - std::log1p(std::exp(m)); }

// Margins become scores, in place. An only child above the labels is there because its tree is uneven: it is its
// parent.
void combine(const Level& level, float parent, float* m, int64_t width, bool last) {
  if (width == 1 && !last && level.bounded()) {
    m[0] = parent;
    return;
  }
  const float above = parent * level.discount;
  for (int64_t c = 0; c < width; ++c) m[c] = finite(m[c]);
  if (level.combiner == Combiner::noop) return;
  if (level.combiner == Combiner::sigmoid) {
    for (int64_t c = 0; c < width; ++c) m[c] = above + log_sigmoid(m[c]);
    return;
  }
  for (int64_t c = 0; c < width; ++c) {
    const float gap = m[c] < 1 ? 1 - m[c] : 0;
    float power = gap;
    for (int p = 1; p < level.power; ++p) power *= gap;
    m[c] = above - power;
  }
}

// Zeroed memory for the feature map and room for a chunk's rows, made when a chunk with many queries asks for it. Above
// 2^26 features (256 MB for each thread), and for far fewer entries than features, there is no map.
class Bench {
 public:
  explicit Bench(const Csr& x) : features_(x.cols), mapped_(x.cols <= int64_t{1} << 26 && !x.wide()) {}
  Workbench view() {
    return {this, [](void* b) { return static_cast<Bench*>(b)->map(); },
            [](void* b, size_t bytes) { return static_cast<Bench*>(b)->rows(bytes); }};
  }

 private:
  void* map() {
    if (!mapped_) return nullptr;
    if (map_.empty()) map_.assign(features_, 0);
    return map_.data();
  }
  void* rows(size_t bytes) {
    if (rows_.size() < bytes) rows_.resize(bytes);
    return rows_.data();
  }
  int64_t features_;
  bool mapped_;
  std::vector<uint32_t> map_;
  std::vector<uint8_t> rows_;
};

struct Pair {
  int32_t parent, row;  // row within the block
  float score;
};

// The search of one worker.
class Searcher {
 public:
  Searcher(const Features& x, const SearchPlan& plan, const Control& control)
      : x_(x), plan_(plan), control_(control), bench_(x.sparse) {}

  // Rows [first, last): the beam goes down level by level for all of them, queries grouped by chunk.
  void beam(int64_t first, int64_t last, Found& found) {
    first_ = first, rows_ = last - first;
    begin_beam();
    for (size_t t = 0; t < plan_.levels.size(); ++t) descend(plan_.levels[t], t + 1 == plan_.levels.size());
    for (int64_t r = 0; r < rows_; ++r) hand_over(beams_[r], first_ + r, found);
  }

  // One row, best node first: a node is opened only while a leaf below it can still beat the k-th found.
  void exact(int64_t row, Found& found) {
    first_ = row, rows_ = 1;
    const Level& last = plan_.levels.back();
    leaves_.resize(Best::room(last.keep));
    Best best(leaves_.data(), last.keep);
    heap_.clear();
    begin_beam();
    for (const Candidate& c : beams_[0]) heap_.push_back({reach(c.score, 0), c.score, 0, c.id});
    std::make_heap(heap_.begin(), heap_.end());
    while (!heap_.empty()) {
      control_.check();
      std::pop_heap(heap_.begin(), heap_.end());
      const Node node = heap_.back();
      heap_.pop_back();
      best.cut();
      if (node.reach < best.bar()) break;
      open(node, best);
    }
    best.sort();
    hand_over(best, row, found);
  }

 private:
  struct Node {
    float reach, score;
    int32_t level, id;
    bool operator<(const Node& o) const {  // the heap's top: highest reach, then deepest, then smallest id
      if (reach != o.reach) return reach < o.reach;
      return level != o.level ? level < o.level : id > o.id;
    }
  };

  Query query(const Level& level, int64_t row, float* out) const {
    const int64_t i = first_ + row, p = x_.sparse.ptr[i];
    const int64_t entries = level.reads_sparse ? x_.sparse.size(i) : 0;
    return {x_.sparse.idx + p, x_.sparse.val + p, entries, x_.dense_row(i) + level.dense_begin, out};
  }

  void begin_beam() {
    const Start& start = plan_.start;
    const int64_t room = Best::room(std::max<int64_t>(1, start.width));
    now_.resize(rows_ * room);
    beams_.clear();
    for (int64_t r = 0; r < rows_; ++r) {
      Best beam(now_.data() + r * room, std::max<int64_t>(1, start.width));
      if (!start.ids) beam.push(0, 0);
      for (int64_t k = 0; k < start.width; ++k)
        if (const int64_t at = (first_ + r) * start.width + k; start.ids[at] >= 0)
          beam.push(start.scores[at], start.ids[at]);
      beam.sort();
      beams_.push_back(beam);
    }
  }

  void descend(const Level& level, bool last) {
    const int64_t room = Best::room(level.keep);
    next_.resize(rows_ * room);
    best_.clear();
    for (int64_t r = 0; r < rows_; ++r) best_.emplace_back(next_.data() + r * room, level.keep);
    int64_t widest = 0;
    for (auto& beam : beams_) widest = std::max(widest, beam.size());
    // The best parents first, in rounds: what they yield tells which of the others cannot matter.
    for (int64_t from = 0, to = 1; from < widest; from = to, to = rows_ == 1 ? to + 1 : 2 * to + 1) {
      if (!level.bounded()) to = widest;
      gather(level, from, to);
      for (size_t a = 0, b; a < pairs_.size(); a = b) {
        for (b = a + 1; b < pairs_.size() && pairs_[b].parent == pairs_[a].parent; ++b) {
        }
        visit(level, a, b, last);
      }
    }
    for (auto& best : best_) {
      best.sort();
      if (!last && level.combiner == Combiner::noop)
        for (Candidate& c : best) c.score = 0;  // a plain margin chooses the beam and is not carried on
    }
    now_.swap(next_);
    beams_.swap(best_);
  }

  // Pairs of the parents ranked [from, to) that can still yield a candidate, grouped by parent.
  void gather(const Level& level, int64_t from, int64_t to) {
    pairs_.clear();
    for (int64_t r = 0; r < rows_; ++r) {
      best_[r].cut();
      for (int64_t k = from; k < std::min(to, beams_[r].size()); ++k) {
        const Candidate& parent = beams_[r].begin()[k];
        if (level.bounded() && parent.score * level.discount < best_[r].bar()) break;
        pairs_.push_back({parent.id, static_cast<int32_t>(r), parent.score});
      }
    }
    if (rows_ > 1)
      std::sort(pairs_.begin(), pairs_.end(), [](const Pair& a, const Pair& b) {
        return a.parent != b.parent ? a.parent < b.parent : a.row < b.row;
      });
  }

  // One chunk and the rows that ask for it, as many at a time as have their margins in the cache.
  void visit(const Level& level, size_t a, size_t b, bool last) {
    const int32_t* names = last ? plan_.names : nullptr;
    const int64_t parent = pairs_[a].parent, begin = level.child_ptr[parent], width = level.width(parent);
    const Chunk chunk = level.chunk(parent);
    const int64_t stride = padded_width(width);
    const size_t many = static_cast<size_t>(std::clamp<int64_t>((int64_t{1} << 16) / stride, 1, 1024));
    for (; a < b; a = std::min(b, a + many)) {
      control_.check();
      const size_t some = std::min(b - a, many);
      margins_.resize(some * stride);
      queries_.clear();
      for (size_t k = 0; k < some; ++k)
        queries_.push_back(query(level, pairs_[a + k].row, margins_.data() + k * stride));
      kernels().score(chunk, queries_.data(), static_cast<int64_t>(some), bench_.view());
      for (size_t k = 0; k < some; ++k) {
        float* m = margins_.data() + k * stride;
        combine(level, pairs_[a + k].score, m, width, last);
        Best& best = best_[pairs_[a + k].row];
        for (int64_t c = 0; c < width; ++c)
          if (m[c] >= best.bar()) best.push(m[c], names ? names[begin + c] : static_cast<int32_t>(begin + c));
      }
    }
  }

  // The most that a leaf below can score: log scores are <= 0, so that each discount on the way down lifts them.
  float reach(float score, int32_t level) const {
    for (size_t t = static_cast<size_t>(level); t < plan_.levels.size(); ++t) score *= plan_.levels[t].discount;
    return score;
  }

  void open(const Node& node, Best& best) {
    const Level& level = plan_.levels[node.level];
    const bool last = node.level + 1 == static_cast<int32_t>(plan_.levels.size());
    const int64_t begin = level.child_ptr[node.id], width = level.width(node.id);
    margins_.resize(padded_width(width));
    const Query q = query(level, 0, margins_.data());
    kernels().score(level.chunk(node.id), &q, 1, bench_.view());
    combine(level, node.score, margins_.data(), width, last);
    for (int64_t c = 0; c < width; ++c) {
      const int32_t id = static_cast<int32_t>(begin + c);
      if (last) {
        best.push(margins_[c], plan_.names ? plan_.names[id] : id);
      } else if (const float most = reach(margins_[c], node.level + 1); most >= best.bar()) {
        heap_.push_back({most, margins_[c], node.level + 1, id});
        std::push_heap(heap_.begin(), heap_.end());
      }
    }
  }

  void hand_over(Best& best, int64_t row, Found& found) const {
    const int64_t k = plan_.levels.back().keep;
    const bool plain = plan_.logs || plan_.levels.back().combiner == Combiner::noop;
    int64_t at = row * k;
    for (const Candidate& c : best) {
      found.ids[at] = c.id;
      found.scores[at++] = plain ? c.score : std::exp(c.score);
    }
  }

  const Features& x_;
  const SearchPlan& plan_;
  const Control& control_;
  Bench bench_;
  int64_t first_ = 0, rows_ = 0;
  std::vector<Candidate> now_, next_, leaves_;
  std::vector<Best> beams_, best_;
  std::vector<Pair> pairs_;
  std::vector<Query> queries_;
  std::vector<float> margins_;
  std::vector<Node> heap_;
};

// Rows searched together: many, so that they share chunks, but few enough that their candidates take ~16 MB.
int64_t block_size(const SearchPlan& plan, int64_t rows, int threads) {
  if (plan.exact) return 64;
  int64_t most = plan.start.width;
  for (const Level& level : plan.levels) most = std::max(most, level.keep);
  const int64_t room = std::clamp<int64_t>((int64_t{1} << 20) / Best::room(most), 1, 8192);
  return std::clamp<int64_t>((rows + threads - 1) / threads, 1, room);
}

}  // namespace

Found search_tree(const Features& x, const SearchPlan& plan, int threads, Control& control) {
  const int64_t n = x.rows(), k = plan.levels.back().keep, block = block_size(plan, n, threads);
  Found found;
  found.ids.assign(n * k, -1);
  found.scores.assign(n * k, 0);
  std::vector<std::unique_ptr<Searcher>> workers(threads);
  control.total = n;
  parallel_for(threads, (n + block - 1) / block, control, [&](int64_t b, int worker) {
    if (!workers[worker]) workers[worker] = std::make_unique<Searcher>(x, plan, control);
    const int64_t first = b * block, last = std::min(n, first + block);
    if (plan.exact)
      for (int64_t i = first; i < last; ++i) workers[worker]->exact(i, found);
    else
      workers[worker]->beam(first, last, found);
    control.done.fetch_add(last - first, std::memory_order_relaxed);
  });
  return found;
}

}  // namespace lw
