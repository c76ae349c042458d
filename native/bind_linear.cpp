// Level training and beam search.
#include <nanobind/stl/tuple.h>

#include <algorithm>

#include "beam.h"
#include "bind.h"
#include "train_level.h"

namespace lw {
namespace {

nb::dict chunks_to_dict(Chunks&& c) {
  nb::dict d;
  d["chunk_ptr"] = to_numpy(std::move(c.chunk_ptr));
  d["rows"] = to_numpy(std::move(c.rows));
  d["row_ptr"] = to_numpy(std::move(c.row_ptr));
  d["cols"] = to_numpy(std::move(c.cols));
  d["vals"] = to_numpy(std::move(c.vals));
  d["bias"] = to_numpy(std::move(c.bias));
  d["dense"] = to_numpy(std::move(c.dense));
  return d;
}

// A level as Python keeps it: the arrays of Chunks plus child_ptr; held by reference while the search runs.
struct LevelArrays {
  In<int64_t> child_ptr, chunk_ptr;
  In<int32_t> rows;
  In<int64_t> row_ptr;
  In<uint16_t> cols;
  In<float> vals, bias, dense;
  Level view(int combiner, int power, int64_t keep) const {
    Level l;
    l.parents = static_cast<int64_t>(child_ptr.shape(0)) - 1;
    l.children = static_cast<int64_t>(bias.shape(0));
    l.child_ptr = child_ptr.data();
    l.chunk_ptr = chunk_ptr.data();
    l.rows = rows.data();
    l.row_ptr = row_ptr.data();
    l.cols = cols.data();
    l.vals = vals.data();
    l.bias = bias.data();
    l.dense = dense.data();
    l.combiner = static_cast<Combiner>(combiner);
    l.power = power;
    l.keep = keep;
    return l;
  }
};

}  // namespace

void bind_linear(nb::module_& m) {
  m.def(
      "train_level",
      [](In<int64_t> xp, In<int32_t> xi, In<float> xv, int64_t cols, In2<float> dense, In<int64_t> yp, In<int32_t> yi,
         In<float> yv, In<int64_t> mp, In<int32_t> mi, In<float> mv, In<int64_t> child_ptr, In<float> negative,
         int loss, int solver, bool mean_start, float l1, float cp, float cn, float eps, int max_iter, float bias,
         float threshold, uint64_t seed, uint64_t tree, uint64_t level, int threads, nb::object progress) {
        const Features x = features_view(xp, xi, xv, cols, dense);
        const Csr yt = csr_view(yp, yi, yv, x.rows()), mt = csr_view(mp, mi, mv, x.rows());
        if (static_cast<int64_t>(child_ptr.shape(0)) != mt.rows + 1 || child_ptr.data()[mt.rows] != yt.rows)
          throw nb::value_error("children do not fit their parents");
        if (static_cast<int64_t>(negative.shape(0)) != yt.rows) throw nb::value_error("one weight for each child");
        const SolverConfig config{static_cast<Loss>(loss),
                                  static_cast<Solver>(solver),
                                  mean_start,
                                  l1,
                                  cp,
                                  cn,
                                  eps,
                                  bias,
                                  threshold,
                                  max_iter,
                                  seed,
                                  tree,
                                  level};
        Control control;
        Chunks chunks;
        run_polled(control, progress, [&] {
          chunks = train_level(x, yt, mt, child_ptr.data(), negative.data(), config, threads, control);
        });
        return chunks_to_dict(std::move(chunks));
      },
      nb::arg("x_ptr"), nb::arg("x_idx"), nb::arg("x_val"), nb::arg("x_cols"), nb::arg("x_dense"), nb::arg("yt_ptr"),
      nb::arg("yt_idx"), nb::arg("yt_val"), nb::arg("mt_ptr"), nb::arg("mt_idx"), nb::arg("mt_val"),
      nb::arg("child_ptr"), nb::arg("negative"), nb::arg("loss"), nb::arg("solver"), nb::arg("mean_start"),
      nb::arg("l1"), nb::arg("cp"), nb::arg("cn"), nb::arg("eps"), nb::arg("max_iter"), nb::arg("bias"),
      nb::arg("threshold"), nb::arg("seed"), nb::arg("tree"), nb::arg("level"), nb::arg("threads"),
      nb::arg("progress").none(), "Train the classifiers of one level; the arrays of its chunks.");

  nb::class_<LevelArrays>(m, "Level")
      .def(
          nb::init<In<int64_t>, In<int64_t>, In<int32_t>, In<int64_t>, In<uint16_t>, In<float>, In<float>, In<float>>(),
          nb::arg("child_ptr"), nb::arg("chunk_ptr"), nb::arg("rows"), nb::arg("row_ptr"), nb::arg("cols"),
          nb::arg("vals"), nb::arg("bias"), nb::arg("dense"));

  m.def(
      "beam_search",
      [](In<int64_t> xp, In<int32_t> xi, In<float> xv, int64_t cols, In2<float> dense,
         std::vector<const LevelArrays*> levels, std::vector<int> combiner, std::vector<int> power,
         std::vector<int64_t> keep, In<int32_t> names, int threads, nb::object progress) {
        const Features x = features_view(xp, xi, xv, cols, dense);
        if (levels.empty()) throw nb::value_error("a model needs at least one level");
        if (combiner.size() != levels.size() || power.size() != levels.size() || keep.size() != levels.size())
          throw nb::value_error("each level needs a combiner, a power and a width");
        if (names.shape(0) && names.shape(0) != levels.back()->bias.shape(0))
          throw nb::value_error("names do not fit the last level");
        std::vector<Level> views;
        for (size_t t = 0; t < levels.size(); ++t) views.push_back(levels[t]->view(combiner[t], power[t], keep[t]));
        const int32_t* map = names.shape(0) ? names.data() : nullptr;
        const size_t n = static_cast<size_t>(x.rows()), k = static_cast<size_t>(keep.back());
        Control control;
        Found found;
        // A few documents and a narrow beam: inline, no thread is woken.
        if (static_cast<int64_t>(n) * *std::max_element(keep.begin(), keep.end()) <= 1024) {
          nb::gil_scoped_release release;
          found = beam_search(x, views, map, 1, control);
        } else {
          run_polled(control, progress, [&] { found = beam_search(x, views, map, threads, control); });
        }
        return nb::make_tuple(to_numpy(std::move(found.ids), {n, k}), to_numpy(std::move(found.scores), {n, k}));
      },
      nb::arg("x_ptr"), nb::arg("x_idx"), nb::arg("x_val"), nb::arg("x_cols"), nb::arg("x_dense"), nb::arg("levels"),
      nb::arg("combiner"), nb::arg("power"), nb::arg("keep"), nb::arg("names"), nb::arg("threads"),
      nb::arg("progress").none(), "The best nodes of the last level for each row: (ids (n, k), scores (n, k)).");
}

}  // namespace lw
