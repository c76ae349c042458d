#include "train_level.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <queue>

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
  std::vector<uint64_t> seen;     // bitmap over features
  std::vector<uint32_t> words;    // of the bitmap that are not 0
  std::vector<uint32_t> local;    // feature -> local number, valid where seen
  std::vector<int32_t> instance;  // instance -> local number
  std::vector<uint32_t> allowed, positive, active;
  std::vector<int64_t> cost_ptr;
  std::vector<uint8_t> cost_lane;
  std::vector<float> cost;
  std::vector<int32_t> order;
  Aligned w, alpha;
};

// The instances of one cluster with only the features that occur in them, numbered anew.
struct Local {
  std::vector<int32_t> instances;
  std::vector<uint8_t> listed;    // in the shortlist (else only a positive of some child)
  std::vector<int32_t> features;  // local -> global, ascending
  std::vector<int64_t> ptr;
  std::vector<uint32_t> idx;
  std::vector<float> val, norm;
  std::vector<const float*> dense;
};

void gather_instances(const Csr& yt, const Csr& mt, int64_t parent, int64_t first, int64_t last, Local& out) {
  const int32_t* begin = mt.idx + mt.ptr[parent];
  const int32_t* end = mt.idx + mt.ptr[parent + 1];
  std::vector<int32_t> extra;
  for (int64_t c = first; c < last; ++c)
    for (int64_t p = yt.ptr[c]; p < yt.ptr[c + 1]; ++p)
      if (!std::binary_search(begin, end, yt.idx[p])) extra.push_back(yt.idx[p]);
  std::sort(extra.begin(), extra.end());
  extra.erase(std::unique(extra.begin(), extra.end()), extra.end());
  out.instances.resize((end - begin) + extra.size());
  std::merge(begin, end, extra.begin(), extra.end(), out.instances.begin());
  out.listed.assign(out.instances.size(), 1);
  for (int32_t i : extra)
    out.listed[std::lower_bound(out.instances.begin(), out.instances.end(), i) - out.instances.begin()] = 0;
}

void gather_features(const Features& x, float bias, Scratch& s, Local& out) {
  const Csr& m = x.sparse;
  int64_t nnz = 0;
  for (int32_t i : out.instances) {
    nnz += m.size(i);
    for (int64_t p = m.ptr[i]; p < m.ptr[i + 1]; ++p) {
      uint64_t& word = s.seen[m.idx[p] >> 6];
      if (!word) s.words.push_back(static_cast<uint32_t>(m.idx[p] >> 6));
      word |= uint64_t{1} << (m.idx[p] & 63);
    }
  }
  out.features.clear();
  std::sort(s.words.begin(), s.words.end());  // the cluster's features in order, at a cost that does not grow with D
  for (size_t word : s.words) {
    for (uint64_t bits = s.seen[word]; bits; bits &= bits - 1) {
      const int32_t f = static_cast<int32_t>(word * 64 + __builtin_ctzll(bits));
      s.local[f] = static_cast<uint32_t>(out.features.size());
      out.features.push_back(f);
    }
    s.seen[word] = 0;
  }
  s.words.clear();
  out.ptr.assign(1, 0);
  out.idx.resize(nnz);
  out.val.resize(nnz);
  out.norm.clear();
  out.dense.clear();
  int64_t at = 0;
  for (int32_t i : out.instances) {
    float norm = bias * bias;
    for (int64_t p = m.ptr[i]; p < m.ptr[i + 1]; ++p, ++at) {
      out.idx[at] = s.local[m.idx[p]];
      out.val[at] = m.val[p];
      norm += m.val[p] * m.val[p];
    }
    if (x.dense_cols) {
      const float* row = x.dense_row(i);
      for (int64_t j = 0; j < x.dense_cols; ++j) norm += row[j] * row[j];
      out.dense.push_back(row);
    }
    out.ptr.push_back(at);
    out.norm.push_back(norm);
  }
}

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

// Which lanes of the block each instance trains, which it is a positive of, and at what cost.
void mark_lanes(const Csr& yt, const Local& local, int64_t first, int64_t last, Scratch& s) {
  const int64_t n = static_cast<int64_t>(local.instances.size());
  const uint32_t all = last - first == 32 ? ~0u : (1u << (last - first)) - 1;
  for (int64_t i = 0; i < n; ++i) s.instance[local.instances[i]] = static_cast<int32_t>(i);
  s.positive.assign(n, 0);
  s.cost_ptr.assign(n + 1, 0);
  for (int64_t c = first; c < last; ++c)
    for (int64_t p = yt.ptr[c]; p < yt.ptr[c + 1]; ++p) s.cost_ptr[s.instance[yt.idx[p]] + 1]++;
  std::partial_sum(s.cost_ptr.begin(), s.cost_ptr.end(), s.cost_ptr.begin());
  s.cost.resize(s.cost_ptr[n]);
  s.cost_lane.resize(s.cost_ptr[n]);
  std::vector<int64_t> at(s.cost_ptr.begin(), s.cost_ptr.end() - 1);
  for (int64_t c = first; c < last; ++c)
    for (int64_t p = yt.ptr[c]; p < yt.ptr[c + 1]; ++p) {
      const int32_t i = s.instance[yt.idx[p]];
      s.positive[i] |= 1u << (c - first);
      s.cost_lane[at[i]] = static_cast<uint8_t>(c - first);
      s.cost[at[i]++] = yt.val[p];
    }
  s.allowed.resize(n);
  for (int64_t i = 0; i < n; ++i) s.allowed[i] = local.listed[i] ? all : s.positive[i];
}

Pruned prune(const Local& local, const float* w, int lanes, int used, int64_t column, float threshold) {
  Pruned out;
  for (size_t f = 0; f < local.features.size(); ++f) {
    const size_t before = out.cols.size();
    const float* row = w + f * lanes;
    for (int l = 0; l < used; ++l)
      if (std::fabs(row[l]) >= threshold && row[l] != 0) {
        out.cols.push_back(static_cast<uint16_t>(column + l));
        out.vals.push_back(row[l]);
      }
    if (out.cols.size() > before) {
      out.rows.push_back(local.features[f]);
      out.end.push_back(static_cast<int64_t>(out.cols.size()));
    }
  }
  return out;
}

struct Gathered {
  std::mutex mutex;
  std::weak_ptr<const Local> local;
};

// A run of children [first, last) of one parent, at most 32, solved together.
struct Job {
  int64_t parent, first, last;
  int lanes;
  double cost;
};

class Trainer {
 public:
  Trainer(const Features& x, const Csr& yt, const Csr& mt, const int64_t* child_ptr, const SolverConfig& config,
          int threads, Control& control)
      : x_(x), yt_(yt), mt_(mt), child_ptr_(child_ptr), config_(config), control_(control), gathered_(mt.rows) {
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
    if (s.seen.empty()) {
      s.seen.assign((x_.sparse.cols + 63) / 64, 0);
      s.local.resize(x_.sparse.cols);
      s.instance.resize(yt_.cols);
    }
    const int64_t parent = jobs_[task.first].parent;
    const std::shared_ptr<const Local> shared = gathered(parent, s);
    const Local& local = *shared;
    for (int64_t j = task.first; j < task.second; ++j) {
      parts_[j] = solve(jobs_[j], local, s);
      control_.done.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // The parent's instances, made by the first task that asks, kept while any runs: threads share one copy.
  std::shared_ptr<const Local> gathered(int64_t parent, Scratch& s) {
    Gathered& home = gathered_[parent];
    std::lock_guard<std::mutex> lock(home.mutex);
    if (auto found = home.local.lock()) return found;
    auto made = std::make_shared<Local>();
    // All children, not one task's alone: the visiting order must not depend on how a parent was cut into tasks.
    gather_instances(yt_, mt_, parent, child_ptr_[parent], child_ptr_[parent + 1], *made);
    gather_features(x_, config_.bias, s, *made);
    home.local = made;
    return made;
  }

  Pruned solve(const Job& job, const Local& local, Scratch& s) {
    mark_lanes(yt_, local, job.first, job.last, s);
    const int64_t n = static_cast<int64_t>(local.instances.size());
    const int64_t features = static_cast<int64_t>(local.features.size());
    s.active.resize(n);
    s.order.resize(n);
    Order order{key(config_.seed, config_.tree, config_.level, job.parent), n, &control_};
    Block b;
    b.n = n;
    b.ptr = local.ptr.data();
    b.idx = local.idx.data();
    b.val = local.val.data();
    b.norm = local.norm.data();
    b.dense = x_.dense_cols ? local.dense.data() : nullptr;
    b.sparse_cols = features;
    b.dense_cols = x_.dense_cols;
    b.bias = config_.bias;
    b.lanes = job.lanes;
    b.allowed = s.allowed.data();
    b.positive = s.positive.data();
    b.cost_ptr = s.cost_ptr.data();
    b.cost_lane = s.cost_lane.data();
    b.cost = s.cost.data();
    b.loss = config_.loss;
    b.cp = config_.cp;
    b.cn = config_.cn;
    b.eps = config_.eps;
    b.max_iter = config_.max_iter;
    b.w = s.w.zeros((features + x_.dense_cols + 1) * job.lanes);
    b.alpha = s.alpha.zeros(n * job.lanes);
    b.active = s.active.data();
    b.order = s.order.data();
    b.context = &order;
    b.visit_order = visit_order;
    b.cancelled = cancelled;
    if (kernels().solve(b) < 0) throw Cancelled();
    keep_dense(job, b.w + features * job.lanes);
    return prune(local, b.w, job.lanes, static_cast<int>(job.last - job.first), job.first - child_ptr_[job.parent],
                 config_.threshold);
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

Chunks train_level(const Features& x, const Csr& yt, const Csr& mt, const int64_t* child_ptr,
                   const SolverConfig& config, int threads, Control& control) {
  return Trainer(x, yt, mt, child_ptr, config, threads, control).run(threads);
}

}  // namespace lw
