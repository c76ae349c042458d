// Level training and tree search.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "bind/bind.h"
#include "linear/beam.h"
#include "linear/train_level.h"

namespace lw {
namespace {

template <typename T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A level as Python keeps it; the arrays are held while this lives. Records are checked one by one, at once by
// `check` or on first use through `verify`.
struct LevelArrays {
  In<int64_t> child_ptr;
  In<uint8_t> records;
  In2<int64_t> places;
  int64_t sparse_cols, dense_cols;
  std::optional<Out<uint8_t>> ready;
  nb::object verify;

  int64_t parents() const { return static_cast<int64_t>(child_ptr.shape(0)) - 1; }
  int64_t width(int64_t parent) const { return child_ptr.data()[parent + 1] - child_ptr.data()[parent]; }
  const uint8_t* record(int64_t parent) const { return records.data() + places.data()[2 * parent]; }

  // Makes a record ready, where records are verified on first use. Works with and without the GIL.
  void ensure(int64_t parent) const {
    if (!ready || std::atomic_ref(ready->data()[parent]).load(std::memory_order_acquire)) return;
    nb::gil_scoped_acquire acquire;
    verify(parent);
  }

  // What is wrong with one record, empty if nothing is.
  std::string fault(int64_t parent) const {
    return check_chunk(record(parent), places.data()[2 * parent + 1], width(parent), sparse_cols, dense_cols);
  }

  Level view(int combiner, int power, float discount, int64_t keep) const {
    Level l;
    l.parents = parents();
    l.children = child_ptr.data()[l.parents];
    l.dense_cols = dense_cols;
    l.child_ptr = child_ptr.data();
    l.records = records.data();
    l.places = places.data();
    l.combiner = static_cast<Combiner>(combiner);
    l.power = power;
    l.discount = discount;
    l.keep = keep;
    if (ready) {
      static_assert(sizeof(std::atomic<uint8_t>) == 1);
      l.ready = reinterpret_cast<std::atomic<uint8_t>*>(ready->data());
      const nb::handle call = verify;
      l.verify = [call](int64_t parent) {
        nb::gil_scoped_acquire acquire;
        call(parent);
      };
    }
    return l;
  }
};

LevelArrays make_level(In<int64_t> child_ptr, In<uint8_t> records, In2<int64_t> places, int64_t sparse_cols,
                       int64_t dense_cols, std::optional<Out<uint8_t>> ready, nb::object verify) {
  LevelArrays level{child_ptr, records, places, sparse_cols, dense_cols, ready, verify};
  const int64_t parents = level.parents(), size = static_cast<int64_t>(records.shape(0));
  if (parents < 1 || static_cast<int64_t>(places.shape(0)) != parents || places.shape(1) != 2)
    throw nb::value_error("each parent needs the place of its record");
  if (ready && static_cast<int64_t>(ready->shape(0)) != parents) throw nb::value_error("each parent needs a flag");
  if (reinterpret_cast<uintptr_t>(records.data()) % 8) throw nb::value_error("records must be aligned to 8 bytes");
  for (int64_t p = 0; p < parents; ++p) {
    const int64_t begin = places.data()[2 * p], bytes = places.data()[2 * p + 1];
    if (begin < 0 || bytes < 0 || begin % 8 || bytes > size || begin > size - bytes)
      throw nb::value_error("a record lies outside the file");
  }
  return level;
}

// What a search needs besides the features. Holds the levels and the names, so it may be kept and used by many threads.
struct Searcher {
  std::vector<nb::object> held;
  In<int32_t> names;
  int64_t sparse_cols = 0, dense_cols = 0;
  SearchPlan plan;

  void check(const Features& x) const {
    if (x.sparse.cols != sparse_cols || x.dense_cols != dense_cols)
      throw nb::value_error("the levels do not fit the features or each other");
  }
};

Searcher make_searcher(nb::list levels, std::vector<int> combiner, std::vector<int> power, std::vector<float> discount,
                       std::vector<int64_t> keep, std::vector<int64_t> begin, int64_t sparse_cols, int64_t dense_cols,
                       In<int32_t> names, bool exact, bool logs) {
  const size_t depth = nb::len(levels);
  if (!depth) throw nb::value_error("a model needs at least one level");
  if (combiner.size() != depth || power.size() != depth || discount.size() != depth || keep.size() != depth ||
      begin.size() != depth)
    throw nb::value_error("each level needs a combiner, a power, a discount, a width and a first column");
  Searcher s{{}, names, sparse_cols, dense_cols, {}};
  for (size_t t = 0; t < depth; ++t) {
    s.held.push_back(levels[t]);
    const auto& arrays = nb::cast<const LevelArrays&>(s.held.back());
    s.plan.levels.push_back(arrays.view(combiner[t], power[t], discount[t], keep[t]));
    Level& level = s.plan.levels.back();
    level.dense_begin = begin[t];
    level.reads_sparse = arrays.sparse_cols > 0;
    const bool words = arrays.sparse_cols == sparse_cols || !arrays.sparse_cols;
    const bool dense = begin[t] >= 0 && begin[t] <= dense_cols && level.dense_cols <= dense_cols - begin[t];
    if (keep[t] < 1 || !words || !dense || (t && level.parents != s.plan.levels[t - 1].children))
      throw nb::value_error("the levels do not fit the features or each other");
  }
  if (names.shape(0)) {
    if (static_cast<int64_t>(names.shape(0)) != s.plan.levels.back().children)
      throw nb::value_error("names do not fit the last level");
    s.plan.names = names.data();
  }
  s.plan.exact = exact;
  s.plan.logs = logs;
  return s;
}

nb::tuple run_search(const Features& x, const SearchPlan& plan, int threads, nb::handle progress) {
  if (!plan.start.ids && plan.levels[0].parents != 1)
    throw nb::value_error("a search without a start begins at a single root");
  const size_t n = static_cast<size_t>(x.rows()), k = static_cast<size_t>(plan.levels.back().keep);
  int64_t widest = 0;
  for (const Level& level : plan.levels) widest = std::max(widest, level.keep);
  Control control;
  Found found;
  // A few documents and a narrow beam: inline, no thread is woken.
  if (static_cast<int64_t>(n) * widest <= 1024) {
    nb::gil_scoped_release release;
    found = search_tree(x, plan, 1, control);
  } else {
    run_polled(control, progress, [&] { found = search_tree(x, plan, threads, control); });
  }
  return nb::make_tuple(to_numpy(std::move(found.ids), {n, k}), to_numpy(std::move(found.scores), {n, k}));
}

// Records on their way to Python: workers put them here, the waiting thread takes them out.
class Outbox {
 public:
  explicit Outbox(Control& control) : control_(control) {}
  void put(int64_t parent, std::vector<uint8_t>&& record) {
    std::lock_guard<std::mutex> lock(mutex_);
    bytes_ += record.size();
    box_.emplace_back(parent, std::move(record));
  }
  // Returns when little enough is waiting to be written, or nobody would take it out.
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (bytes_ > kMost && !control_.alone) {
      control_.check();
      taken_.wait_for(lock, std::chrono::milliseconds(20));
    }
  }
  void drain(nb::handle write) {
    for (;;) {
      std::pair<int64_t, std::vector<uint8_t>> item;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (box_.empty()) return;
        item = std::move(box_.front());
        box_.pop_front();
        bytes_ -= item.second.size();
        taken_.notify_all();
      }
      write(item.first, to_numpy(std::move(item.second)));
    }
  }

 private:
  static constexpr size_t kMost = size_t{64} << 20;
  Control& control_;
  std::mutex mutex_;
  std::condition_variable taken_;
  std::deque<std::pair<int64_t, std::vector<uint8_t>>> box_;
  size_t bytes_ = 0;
};

}  // namespace

void bind_linear(nb::module_& m) {
  m.def(
      "train_level",
      [](In<int64_t> xp, In<int32_t> xi, In<float> xv, int64_t cols, In2<float> dense, In<int64_t> yp, In<int32_t> yi,
         In<float> yv, In<int64_t> mp, In<int32_t> mi, In<float> mv, In<int64_t> child_ptr, In<float> negative,
         std::optional<In2<float>> first, int loss, int solver, bool mean_start, float l1, float cp, float cn,
         float eps, int max_iter, float bias, float threshold, int weight, uint64_t seed, uint64_t tree, uint64_t level,
         uint64_t first_parent, nb::object write, int threads, nb::object progress) {
        const Features x = features_view(xp, xi, xv, cols, dense);
        const Csr yt = csr_view(yp, yi, yv, x.rows()), mt = csr_view(mp, mi, mv, x.rows());
        if (static_cast<int64_t>(child_ptr.shape(0)) != mt.rows + 1 || child_ptr.data()[mt.rows] != yt.rows)
          throw nb::value_error("children do not fit their parents");
        if (static_cast<int64_t>(negative.shape(0)) != yt.rows) throw nb::value_error("one weight for each child");
        if (first && (static_cast<int64_t>(first->shape(0)) != yt.rows ||
                      static_cast<int64_t>(first->shape(1)) != x.dense_cols + 1))
          throw nb::value_error("first weights do not fit the children and the dense features");
        const SolverConfig config{.loss = static_cast<Loss>(loss),
                                  .solver = static_cast<Solver>(solver),
                                  .mean_start = mean_start,
                                  .l1 = l1,
                                  .negative = negative.data(),
                                  .first = first ? first->data() : nullptr,
                                  .cp = cp,
                                  .cn = cn,
                                  .eps = eps,
                                  .bias = bias,
                                  .threshold = threshold,
                                  .max_iter = max_iter,
                                  .weight = static_cast<Weight>(weight),
                                  .seed = seed,
                                  .tree = tree,
                                  .level = level,
                                  .first_parent = first_parent};
        Control control;
        Outbox outbox(control);
        const Sink sink{[&](int64_t parent, std::vector<uint8_t>&& r) { outbox.put(parent, std::move(r)); },
                        [&] { outbox.wait(); }};
        run_polled(
            control, progress, [&] { train_level(x, yt, mt, child_ptr.data(), config, sink, threads, control); },
            [&] { outbox.drain(write); });
      },
      nb::arg("x_ptr"), nb::arg("x_idx"), nb::arg("x_val"), nb::arg("x_cols"), nb::arg("x_dense"), nb::arg("yt_ptr"),
      nb::arg("yt_idx"), nb::arg("yt_val"), nb::arg("mt_ptr"), nb::arg("mt_idx"), nb::arg("mt_val"),
      nb::arg("child_ptr"), nb::arg("negative"), nb::arg("first").none(), nb::arg("loss"), nb::arg("solver"),
      nb::arg("mean_start"), nb::arg("l1"), nb::arg("cp"), nb::arg("cn"), nb::arg("eps"), nb::arg("max_iter"),
      nb::arg("bias"), nb::arg("threshold"), nb::arg("weight"), nb::arg("seed"), nb::arg("tree"), nb::arg("level"),
      nb::arg("first_parent"), nb::arg("write"), nb::arg("threads"), nb::arg("progress").none(),
      "Train the classifiers of one level; write(parent, record) gets each chunk in a fixed order.");

  m.def(
      "encode_chunk",
      [](In<int32_t> rows, In<int64_t> end, In<uint32_t> cols, In<float> vals, In<float> bias, In<float> dense,
         int64_t sparse_cols, int64_t dense_cols, int weight) {
        const size_t entries = cols.shape(0);
        bool sound = rows.shape(0) == end.shape(0) && vals.shape(0) == entries && sparse_cols >= 0 && weight >= 0 &&
                     weight <= 2 && dense_cols >= 0 && dense.shape(0) == dense_cols * bias.shape(0) &&
                     (rows.shape(0) ? end.data()[end.shape(0) - 1] : 0) == static_cast<int64_t>(entries);
        for (size_t r = 0; sound && r < rows.shape(0); ++r)
          sound = (r ? rows.data()[r - 1] : -1) < rows.data()[r] && rows.data()[r] < sparse_cols &&
                  (r ? end.data()[r - 1] : 0) < end.data()[r];
        for (size_t e = 0, r = 0; sound && e < entries; ++e) {
          const bool first = e == 0 || static_cast<int64_t>(e) == end.data()[r];
          r += first && e > 0;
          sound = cols.data()[e] < bias.shape(0) && (first || cols.data()[e - 1] < cols.data()[e]);
        }
        if (!sound) throw nb::value_error("the parts of the chunk do not fit each other");
        ChunkRows c;
        c.rows.assign(rows.data(), rows.data() + rows.shape(0));
        c.end.assign(end.data(), end.data() + end.shape(0));
        c.cols.assign(cols.data(), cols.data() + cols.shape(0));
        c.vals.assign(vals.data(), vals.data() + vals.shape(0));
        c.bias.assign(bias.data(), bias.data() + bias.shape(0));
        c.dense.assign(dense.data(), dense.data() + dense.shape(0));
        return to_numpy(encode_chunk(std::move(c), sparse_cols, dense_cols, static_cast<Weight>(weight)));
      },
      nb::arg("rows"), nb::arg("end"), nb::arg("cols"), nb::arg("vals"), nb::arg("bias"), nb::arg("dense"),
      nb::arg("sparse_cols"), nb::arg("dense_cols"), nb::arg("weight"),
      "The record of a chunk, from its weights by feature row.");

  nb::class_<LevelArrays>(m, "Level")
      .def(nb::new_(&make_level), nb::arg("child_ptr"), nb::arg("records"), nb::arg("places"), nb::arg("sparse_cols"),
           nb::arg("dense_cols"), nb::arg("ready").none(), nb::arg("verify").none())
      .def("fault", &LevelArrays::fault, nb::arg("parent"), "What is wrong with a parent's record; empty if nothing.")
      .def(
          "faults",
          [](const LevelArrays& l) {
            for (int64_t p = 0; p < l.parents(); ++p)
              if (const std::string what = l.fault(p); !what.empty()) return what;
            return std::string();
          },
          nb::call_guard<nb::gil_scoped_release>(), "What is wrong with the first unsound record; empty if none is.")
      .def(
          "nonzeros",
          [](const LevelArrays& l) {
            int64_t count = 0;
            for (int64_t p = 0; p < l.parents(); ++p) {
              l.ensure(p);
              const ChunkRows c = decode_chunk(l.record(p), l.width(p), l.dense_cols);
              count += static_cast<int64_t>(c.vals.size()) +
                       std::count_if(c.dense.begin(), c.dense.end(), [](float w) { return w != 0; });
            }
            return count;
          },
          nb::call_guard<nb::gil_scoped_release>(), "Weights that are not zero, in a sound level.")
      .def(
          "decode",
          [](const LevelArrays& l, int64_t parent) {
            l.ensure(parent);
            ChunkRows c = decode_chunk(l.record(parent), l.width(parent), l.dense_cols);
            return nb::make_tuple(to_numpy(std::move(c.rows)), to_numpy(std::move(c.end)), to_numpy(std::move(c.cols)),
                                  to_numpy(std::move(c.vals)), to_numpy(std::move(c.bias)),
                                  to_numpy(std::move(c.dense)));
          },
          nb::arg("parent"), "The weights of a sound record: (rows, end, cols, vals, bias, dense).");

  nb::class_<Searcher>(m, "Searcher")
      .def(nb::new_(&make_searcher), nb::arg("levels"), nb::arg("combiner"), nb::arg("power"), nb::arg("discount"),
           nb::arg("keep"), nb::arg("begin"), nb::arg("sparse_cols"), nb::arg("dense_cols"), nb::arg("names"),
           nb::arg("exact"), nb::arg("logs"))
      .def(
          "__call__",
          [](const Searcher& self, In<int64_t> xp, In<int32_t> xi, In<float> xv, int64_t cols, In2<float> dense,
             int threads, nb::object progress) {
            const Features x = features_view(xp, xi, xv, cols, dense);
            self.check(x);
            return run_search(x, self.plan, threads, progress);
          },
          nb::arg("x_ptr"), nb::arg("x_idx"), nb::arg("x_val"), nb::arg("x_cols"), nb::arg("x_dense"),
          nb::arg("threads"), nb::arg("progress").none(),
          "The best nodes of the last level for each row: (ids (n, k), scores (n, k)).")
      .def(
          "resume",
          [](const Searcher& self, In<int64_t> xp, In<int32_t> xi, In<float> xv, int64_t cols, In2<float> dense,
             In2<int32_t> ids, In2<float> scores, int threads, nb::object progress) {
            const Features x = features_view(xp, xi, xv, cols, dense);
            self.check(x);
            const size_t n = static_cast<size_t>(x.rows());
            if (ids.shape(0) != n || scores.shape(0) != n || ids.shape(1) != scores.shape(1) || !ids.shape(1))
              throw nb::value_error("the start does not fit the features");
            SearchPlan plan = self.plan;
            plan.start = {ids.data(), scores.data(), static_cast<int64_t>(ids.shape(1))};
            for (size_t p = 0; p < n * ids.shape(1); ++p)
              if (ids.data()[p] >= plan.levels[0].parents) throw nb::value_error("the start names a node that is not");
            return run_search(x, plan, threads, progress);
          },
          nb::arg("x_ptr"), nb::arg("x_idx"), nb::arg("x_val"), nb::arg("x_cols"), nb::arg("x_dense"),
          nb::arg("start_ids"), nb::arg("start_scores"), nb::arg("threads"), nb::arg("progress").none(),
          "The same, from nodes and log scores that a search of the levels above ended with.");
}

}  // namespace lw
