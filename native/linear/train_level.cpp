#include "linear/train_level.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <queue>

#include "arrays/rng.h"
#include "linear/cluster.h"

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
    if (n) std::memset(data, 0, n * sizeof(float));  // data is null before the first float is asked for
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
  std::vector<uint32_t> cols;
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
        out.cols.push_back(static_cast<uint32_t>(column + l));
        out.vals.push_back(row[l]);
      }
    if (out.cols.size() > before) {
      out.rows.push_back(features[f]);
      out.end.push_back(static_cast<int64_t>(out.cols.size()));
    }
  }
  return out;
}

// A parent at work: its instances while any task needs them, its chunk until it is finished.
struct Home {
  std::mutex mutex;
  std::weak_ptr<const Cluster> cluster;
  ChunkRows chunk;
  std::vector<Pruned> parts;  // by job
  std::atomic<int64_t> left{0};
};

// Finished records wait here for their turn.
class Turns {
 public:
  Turns(std::vector<int64_t> order, const Sink& sink) : order_(std::move(order)), rank_(order_.size()), sink_(sink) {
    for (size_t r = 0; r < order_.size(); ++r) rank_[order_[r]] = static_cast<int64_t>(r);
  }
  void finish(int64_t parent, std::vector<uint8_t>&& record) {
    std::lock_guard<std::mutex> lock(mutex_);
    waiting_.emplace(rank_[parent], std::move(record));
    for (; !waiting_.empty() && waiting_.begin()->first == next_; ++next_) {
      sink_.put(order_[next_], std::move(waiting_.begin()->second));
      waiting_.erase(waiting_.begin());
    }
  }
  const std::vector<int64_t>& order() const { return order_; }

 private:
  std::vector<int64_t> order_, rank_;
  const Sink& sink_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<uint8_t>> waiting_;
  int64_t next_ = 0;
};

// A run of children [first, last) of one parent, at most 16, solved together.
struct Job {
  int64_t parent, first, last;
  int lanes;
  int64_t part;  // of its parent's jobs
};

class Trainer {
 public:
  Trainer(const Features& x, const Csr& yt, const Csr& mt, const int64_t* child_ptr, const SolverConfig& config,
          const Sink& sink, int threads, Control& control)
      : x_(x),
        yt_(yt),
        mt_(mt),
        child_ptr_(child_ptr),
        config_(config),
        sink_(sink),
        control_(control),
        homes_(mt.rows),
        turns_(by_cost(), sink) {
    plan(threads);
    scratch_.resize(threads);
  }

  void run(int threads) {
    control_.total = static_cast<int64_t>(jobs_.size());
    parallel_for(threads, static_cast<int64_t>(tasks_.size()), control_, [&](int64_t t, int worker) {
      sink_.wait();
      run_task(tasks_[t], scratch_[worker]);
    });
  }

 private:
  using Task = std::pair<int64_t, int64_t>;  // jobs [first, second)

  int64_t width(int64_t parent) const { return child_ptr_[parent + 1] - child_ptr_[parent]; }
  double cost(int64_t parent) const { return double(mt_.size(parent) + 1) * double(width(parent)); }

  // Largest first, so that no thread is left alone with a large one at the end.
  std::vector<int64_t> by_cost() const {
    std::vector<int64_t> order(mt_.rows);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return cost(a) > cost(b); });
    return order;
  }

  // A task is all jobs of one parent unless the parent is large, so that the gathering is shared.
  void plan(int threads) {
    double total = 0;
    for (int64_t parent = 0; parent < mt_.rows; ++parent) total += cost(parent);
    for (const int64_t parent : turns_.order()) {
      const int64_t begin = child_ptr_[parent], end = child_ptr_[parent + 1];
      const int64_t a = static_cast<int64_t>(jobs_.size());
      for (int64_t c = begin; c < end;) {
        const int lanes = lanes_for(end - begin, end - c, threads, mt_.rows);
        const int64_t last = std::min<int64_t>(end, c + lanes);
        jobs_.push_back({parent, c, last, lanes, static_cast<int64_t>(jobs_.size()) - a});
        c = last;
      }
      const int64_t b = static_cast<int64_t>(jobs_.size());
      homes_[parent].left = b - a;
      if (a == b) {
        finish(parent);
        continue;
      }
      const double share = cost(parent) * threads * 4 / total;
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
    const int64_t parent = jobs_[task.first].parent;
    const std::shared_ptr<const Cluster> cluster = enter(parent, s);
    for (int64_t j = task.first; j < task.second; ++j) {
      homes_[parent].parts[jobs_[j].part] = solve(jobs_[j], *cluster, s);
      control_.done.fetch_add(1, std::memory_order_relaxed);
    }
    if (homes_[parent].left.fetch_sub(task.second - task.first) == task.second - task.first) finish(parent);
  }

  // The parent's instances, made by the first task that asks, kept while any runs: threads share one copy. Of all its
  // children, not one task's alone: the visiting order must not depend on how a parent was cut into tasks.
  std::shared_ptr<const Cluster> enter(int64_t parent, Scratch& s) {
    Home& home = homes_[parent];
    std::lock_guard<std::mutex> lock(home.mutex);
    if (home.parts.empty()) {
      home.parts.resize(home.left);
      home.chunk.bias.assign(width(parent), 0);
      home.chunk.dense.assign(width(parent) * x_.dense_cols, 0);
    }
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
    Order order{key(config_.seed, config_.tree, config_.level, config_.first_parent + job.parent), rows.n, &control_};
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
    for (int64_t l = 0; l < 16; ++l) b.cn[l] = config_.cn * config_.negative[std::min(job.first + l, job.last - 1)];
    b.eps = config_.eps;
    b.max_iter = config_.max_iter;
    b.w = s.w.zeros((rows.width() + 1) * job.lanes);
    b.given_start = config_.first != nullptr;
    if (b.given_start) start_at(job, b.w + rows.sparse_cols() * job.lanes);
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

  // First weights of the dense features and the bias.
  void start_at(const Job& job, float* w) const {
    const int64_t cols = x_.dense_cols;
    for (int64_t c = job.first; c < job.last; ++c) {
      const float* first = config_.first + c * (cols + 1);
      for (int64_t j = 0; j < cols; ++j) w[j * job.lanes + (c - job.first)] = first[j];
      if (config_.bias > 0) w[cols * job.lanes + (c - job.first)] = first[cols] / config_.bias;
    }
  }

  // Dense rows and bias go straight to their place; entries below the threshold become zero.
  void keep_dense(const Job& job, const float* w) {
    const auto kept = [&](float v) { return std::fabs(v) >= config_.threshold ? v : 0.0f; };
    const int64_t begin = child_ptr_[job.parent], wide = width(job.parent);
    ChunkRows& chunk = homes_[job.parent].chunk;
    for (int64_t c = job.first; c < job.last; ++c) {
      float* out = chunk.dense.data() + (c - begin);
      for (int64_t j = 0; j < x_.dense_cols; ++j) out[j * wide] = kept(w[j * job.lanes + (c - job.first)]);
      chunk.bias[c - begin] = kept(w[x_.dense_cols * job.lanes + (c - job.first)]) * config_.bias;
    }
  }

  void finish(int64_t parent) {
    Home& home = homes_[parent];
    merge(home);
    turns_.finish(parent, encode_chunk(std::move(home.chunk), x_.sparse.cols, x_.dense_cols, config_.weight));
    home.chunk = ChunkRows();
  }

  // The blocks of a parent as one chunk. They wait in a heap by (next row, block): a row's entries come out in the
  // order of its children.
  void merge(Home& home) {
    using Head = std::pair<int32_t, size_t>;
    std::priority_queue<Head, std::vector<Head>, std::greater<Head>> heads;
    std::vector<size_t> at(home.parts.size(), 0);
    ChunkRows& out = home.chunk;
    for (size_t j = 0; j < home.parts.size(); ++j)
      if (!home.parts[j].rows.empty()) heads.push({home.parts[j].rows[0], j});
    for (int32_t open = -1; !heads.empty();) {
      control_.check();
      const auto [row, j] = heads.top();
      heads.pop();
      const Pruned& p = home.parts[j];
      size_t& k = at[j];
      const int64_t begin = k ? p.end[k - 1] : 0;
      if (row != open) out.rows.push_back(open = row), out.end.push_back(0);
      out.cols.insert(out.cols.end(), p.cols.begin() + begin, p.cols.begin() + p.end[k]);
      out.vals.insert(out.vals.end(), p.vals.begin() + begin, p.vals.begin() + p.end[k]);
      out.end.back() = static_cast<int64_t>(out.cols.size());
      if (++k < p.rows.size()) heads.push({p.rows[k], j});
    }
    home.parts = std::vector<Pruned>();
  }

  const Features& x_;
  const Csr& yt_;
  const Csr& mt_;
  const int64_t* child_ptr_;
  const SolverConfig& config_;
  const Sink& sink_;
  Control& control_;
  std::vector<Home> homes_;  // by parent
  Turns turns_;
  std::vector<Job> jobs_;
  std::vector<Task> tasks_;
  std::vector<Scratch> scratch_;
};

}  // namespace

void train_level(const Features& x, const Csr& yt, const Csr& mt, const int64_t* child_ptr, const SolverConfig& config,
                 const Sink& sink, int threads, Control& control) {
  Trainer(x, yt, mt, child_ptr, config, sink, threads, control).run(threads);
}

}  // namespace lw
