#include "train_level.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <queue>

#include "cluster.h"
#include "rng.h"

namespace lw {
namespace {

// 64-byte aligned floats: a row of 16 lanes is one cache line.
struct Aligned {
  std::unique_ptr<float[]> raw;
  float* data = nullptr;
  size_t capacity = 0;
  float* zeros(size_t n) {
    if (n > capacity) {
      raw.reset();
      raw.reset(new float[n + 16]);
      capacity = n;
      data = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(raw.get()) + 63) & ~uintptr_t{63});
    }
    std::memset(data, 0, n * sizeof(float));
    return data;
  }
};

// Scratch of one worker, sized once: O(features + instances), never O(that) per label.
struct Scratch {
  RowGatherer gatherer;
  LaneMarks marks;
  std::vector<uint32_t> active;
  std::vector<int32_t> order;
  Aligned w, alpha, work;
};

// What one blocked solve leaves after pruning: entries by feature row, columns within the chunk.
struct Pruned {
  std::vector<int32_t> rows;
  std::vector<int64_t> end;  // entries up to and including the row
  std::vector<uint16_t> cols;
  std::vector<float> vals;
};

struct Order {  // context of the kernel's callbacks
  uint64_t key;
  int64_t n;
  Control* control;
};

void visit_order(void* context, int pass, int32_t* order) {
  const Order& o = *static_cast<Order*>(context);
  std::iota(order, order + o.n, 0);
  shuffle(order, o.n, key(o.key, pass));
}

bool cancelled(void* context) { return static_cast<Order*>(context)->control->cancel.load(std::memory_order_relaxed); }

Pruned prune(const std::vector<int32_t>& features, const float* w, int lanes, int used, int64_t column,
             float threshold) {
  Pruned out;
  for (size_t f = 0; f < features.size(); ++f) {
    const size_t before = out.cols.size();
    const float* row = w + f * lanes;
    for (int l = 0; l < used; ++l)
      if (std::fabs(row[l]) >= threshold && row[l] != 0) {
        out.cols.push_back(static_cast<uint16_t>(column + l));
        out.vals.push_back(row[l]);
      }
    if (out.cols.size() > before) {
      out.rows.push_back(features[f]);
      out.end.push_back(static_cast<int64_t>(out.cols.size()));
    }
  }
  return out;
}

struct Gathered {
  std::mutex mutex;
  std::weak_ptr<const Cluster> cluster;
};

// A run of children [first, last) of one parent, at most 32, solved together.
struct Job {
  int64_t parent, first, last;
  int lanes;
  double cost;
};

class Trainer {
 public:
  Trainer(const Features& x, const Csr& yt, const Csr& mt, const int64_t* child_ptr, const float* negative,
          const SolverConfig& config, int threads, Control& control)
      : x_(x),
        yt_(yt),
        mt_(mt),
        child_ptr_(child_ptr),
        negative_(negative),
        config_(config),
        control_(control),
        gathered_(mt.rows) {
    plan(threads);
    scratch_.resize(threads);
    chunks_.bias.assign(yt.rows, 0);
    chunks_.dense.assign(yt.rows * x.dense_cols, 0);
    parts_.resize(jobs_.size());
  }

  Chunks run(int threads) {
    // Largest first; a task is all jobs of one parent unless the parent is large, so the gathering is shared.
    std::vector<int64_t> by_cost(tasks_.size());
    std::iota(by_cost.begin(), by_cost.end(), 0);
    std::stable_sort(by_cost.begin(), by_cost.end(), [&](int64_t a, int64_t b) { return cost(a) > cost(b); });
    control_.total = static_cast<int64_t>(jobs_.size());
    parallel_for(threads, static_cast<int64_t>(tasks_.size()), control_,
                 [&](int64_t t, int worker) { run_task(tasks_[by_cost[t]], scratch_[worker]); });
    return collect();
  }

 private:
  using Task = std::pair<int64_t, int64_t>;  // jobs [first, second)

  double cost(int64_t task) const {
    double sum = 0;
    for (int64_t j = tasks_[task].first; j < tasks_[task].second; ++j) sum += jobs_[j].cost;
    return sum;
  }

  void plan(int threads) {
    double total = 0;
    std::vector<int64_t> first_job{0};
    for (int64_t parent = 0; parent < mt_.rows; ++parent) {
      const int64_t begin = child_ptr_[parent], end = child_ptr_[parent + 1];
      for (int64_t c = begin; c < end;) {
        const int lanes = lanes_for(end - begin, end - c, threads, mt_.rows);
        const int64_t last = std::min<int64_t>(end, c + lanes);
        jobs_.push_back({parent, c, last, lanes, double(mt_.size(parent) + 1)});
        total += jobs_.back().cost;
        c = last;
      }
      first_job.push_back(static_cast<int64_t>(jobs_.size()));
    }
    for (int64_t parent = 0; parent < mt_.rows; ++parent) {
      const int64_t a = first_job[parent], b = first_job[parent + 1];
      if (a == b) continue;
      const double share = jobs_[a].cost * double(b - a) * threads * 4 / total;
      const int64_t pieces = std::clamp<int64_t>(static_cast<int64_t>(share), 1, b - a);
      for (int64_t k = 0; k < pieces; ++k) tasks_.push_back({a + (b - a) * k / pieces, a + (b - a) * (k + 1) / pieces});
    }
  }

  // 16 lanes fill a cache line per feature; a lone parent with few children gives every thread a narrower block.
  static int lanes_for(int64_t children, int64_t left, int threads, int64_t parents) {
    if (left <= 8 || (parents < threads && children <= 8 * threads)) return 8;
    return 16;
  }

  void run_task(const Task& task, Scratch& s) {
    const std::shared_ptr<const Cluster> cluster = gathered(jobs_[task.first].parent, s);
    for (int64_t j = task.first; j < task.second; ++j) {
      parts_[j] = solve(jobs_[j], *cluster, s);
      control_.done.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // The parent's instances, made by the first task that asks, kept while any runs: threads share one copy. Of all its
  // children, not one task's alone: the visiting order must not depend on how a parent was cut into tasks.
  std::shared_ptr<const Cluster> gathered(int64_t parent, Scratch& s) {
    Gathered& home = gathered_[parent];
    std::lock_guard<std::mutex> lock(home.mutex);
    if (auto found = home.cluster.lock()) return found;
    const int64_t first = child_ptr_[parent], last = child_ptr_[parent + 1];
    auto made =
        std::make_shared<const Cluster>(gather_cluster(x_, yt_, mt_, parent, first, last, config_.bias, s.gatherer));
    home.cluster = made;
    return made;
  }

  Pruned solve(const Job& job, const Cluster& cluster, Scratch& s) {
    s.marks.mark(yt_, cluster, job.first, job.last);
    const LocalRows& rows = cluster.rows;
    s.active.resize(rows.n);
    s.order.resize(rows.n);
    Order order{key(config_.seed, config_.tree, config_.level, job.parent), rows.n, &control_};
    Block b;
    b.n = rows.n;
    b.ptr = rows.ptr.data();
    b.idx = rows.idx.data();
    b.val = rows.val.data();
    b.norm = cluster.norm.data();
    b.dense = rows.dense_cols ? rows.dense.data() : nullptr;
    b.sparse_cols = rows.sparse_cols();
    b.dense_cols = rows.dense_cols;
    b.bias = config_.bias;
    b.lanes = job.lanes;
    b.allowed = s.marks.allowed.data();
    b.positive = s.marks.positive.data();
    b.cost_ptr = s.marks.cost_ptr.data();
    b.cost_lane = s.marks.cost_lane.data();
    b.cost = s.marks.cost.data();
    b.loss = config_.loss;
    b.solver = config_.solver;
    b.mean_start = config_.mean_start;
    b.l1 = config_.l1;
    b.cp = config_.cp;
    for (int64_t l = 0; l < 32; ++l) b.cn[l] = config_.cn * negative_[std::min(job.first + l, job.last - 1)];
    b.eps = config_.eps;
    b.max_iter = config_.max_iter;
    b.w = s.w.zeros((rows.width() + 1) * job.lanes);
    b.alpha = s.alpha.zeros(rows.n * job.lanes);
    b.work = s.work.zeros(work_floats(b));
    b.active = s.active.data();
    b.order = s.order.data();
    b.context = &order;
    b.visit_order = visit_order;
    b.cancelled = cancelled;
    if (kernels().solve(b) < 0) throw Cancelled();
    keep_dense(job, b.w + rows.sparse_cols() * job.lanes);
    return prune(rows.features, b.w, job.lanes, static_cast<int>(job.last - job.first),
                 job.first - child_ptr_[job.parent], config_.threshold);
  }

  // Dense rows and bias go straight to their place; entries below the threshold become zero.
  void keep_dense(const Job& job, const float* w) {
    const auto kept = [&](float v) { return std::fabs(v) >= config_.threshold ? v : 0.0f; };
    const int64_t begin = child_ptr_[job.parent], width = child_ptr_[job.parent + 1] - begin;
    for (int64_t c = job.first; c < job.last; ++c) {
      float* out = chunks_.dense.data() + x_.dense_cols * begin + (c - begin);
      for (int64_t j = 0; j < x_.dense_cols; ++j) out[j * width] = kept(w[j * job.lanes + (c - job.first)]);
      chunks_.bias[c] = kept(w[x_.dense_cols * job.lanes + (c - job.first)]) * config_.bias;
    }
  }

  // Merge the blocks of each parent by feature row, in the order of parents.
  Chunks collect() {
    chunks_.chunk_ptr.assign(1, 0);
    chunks_.row_ptr.assign(1, 0);
    size_t entries = 0;
    for (const auto& p : parts_) entries += p.cols.size();
    chunks_.cols.reserve(entries);
    chunks_.vals.reserve(entries);
    for (size_t j = 0; j < jobs_.size();) {
      size_t end = j;
      while (end < jobs_.size() && jobs_[end].parent == jobs_[j].parent) ++end;
      while (static_cast<int64_t>(chunks_.chunk_ptr.size()) <= jobs_[j].parent) close_chunk();  // childless parents
      merge(j, end);
      close_chunk();
      j = end;
    }
    while (static_cast<int64_t>(chunks_.chunk_ptr.size()) <= mt_.rows) close_chunk();
    return std::move(chunks_);
  }

  void close_chunk() { chunks_.chunk_ptr.push_back(static_cast<int64_t>(chunks_.rows.size())); }

  // Blocks wait in a heap by (next row, block): a row's entries come out in the order of its children.
  void merge(size_t first, size_t last) {
    using Head = std::pair<int32_t, size_t>;
    std::priority_queue<Head, std::vector<Head>, std::greater<Head>> heads;
    std::vector<size_t> at(last - first, 0);
    for (size_t j = first; j < last; ++j)
      if (!parts_[j].rows.empty()) heads.push({parts_[j].rows[0], j});
    for (int32_t open = -1; !heads.empty();) {
      control_.check();
      const auto [row, j] = heads.top();
      heads.pop();
      const Pruned& p = parts_[j];
      size_t& k = at[j - first];
      const int64_t begin = k ? p.end[k - 1] : 0;
      if (row != open) chunks_.rows.push_back(open = row), chunks_.row_ptr.push_back(0);
      chunks_.cols.insert(chunks_.cols.end(), p.cols.begin() + begin, p.cols.begin() + p.end[k]);
      chunks_.vals.insert(chunks_.vals.end(), p.vals.begin() + begin, p.vals.begin() + p.end[k]);
      chunks_.row_ptr.back() = static_cast<int64_t>(chunks_.cols.size());
      if (++k < p.rows.size()) heads.push({p.rows[k], j});
    }
    for (size_t j = first; j < last; ++j) parts_[j] = Pruned();
  }

  const Features& x_;
  const Csr& yt_;
  const Csr& mt_;
  const int64_t* child_ptr_;
  const float* negative_;
  const SolverConfig& config_;
  Control& control_;
  std::vector<Gathered> gathered_;  // by parent
  std::vector<Job> jobs_;
  std::vector<Task> tasks_;
  std::vector<Scratch> scratch_;
  std::vector<Pruned> parts_;
  Chunks chunks_;
};

}  // namespace

Chunks train_level(const Features& x, const Csr& yt, const Csr& mt, const int64_t* child_ptr, const float* negative,
                   const SolverConfig& config, int threads, Control& control) {
  return Trainer(x, yt, mt, child_ptr, negative, config, threads, control).run(threads);
}

}  // namespace lw
