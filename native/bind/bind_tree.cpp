// Label features and clustering.
#include <nanobind/stl/tuple.h>

#include "bind/bind.h"
#include "tree/kmeans.h"
#include "tree/pifa.h"

namespace lw {

void bind_tree(nb::module_& m) {
  m.def(
      "pifa",
      [](In<int64_t> yp, In<int32_t> yi, In<float> yv, int64_t n, In<int64_t> xp, In<int32_t> xi, In<float> xv,
         int64_t cols, In2<float> dense, int64_t top, int64_t most, int threads, nb::object progress) {
        const Csr yt = csr_view(yp, yi, yv, n);
        const Features x = features_view(xp, xi, xv, cols, dense);
        if (n != x.rows()) throw nb::value_error("labels and features differ in rows");
        LabelFeatures z;
        Control control;
        run_polled(control, progress, [&] { z = pifa(yt, x, top, most, threads, control); });
        const size_t rows = static_cast<size_t>(yt.rows), width = static_cast<size_t>(x.dense_cols);
        return nb::make_tuple(to_numpy(std::move(z.ptr)), to_numpy(std::move(z.idx)), to_numpy(std::move(z.val)),
                              to_numpy(std::move(z.dense), {rows, width}));
      },
      nb::arg("yt_ptr"), nb::arg("yt_idx"), nb::arg("yt_val"), nb::arg("n"), nb::arg("x_ptr"), nb::arg("x_idx"),
      nb::arg("x_val"), nb::arg("x_cols"), nb::arg("x_dense"), nb::arg("top"), nb::arg("most"), nb::arg("threads"),
      nb::arg("progress").none(), "Label features: (ptr, idx, val, dense) of Z (L, D).");

  m.def(
      "split",
      [](In<int64_t> zp, In<int32_t> zi, In<float> zv, int64_t cols, In2<float> dense, In<int32_t> members,
         In<int64_t> node_ptr, In<int32_t> parts, int cut, int max_iter, int64_t sample, uint64_t seed, uint64_t tree,
         int64_t first, int threads, nb::object progress) {
        const Features z = features_view(zp, zi, zv, cols, dense);
        if (node_ptr.shape(0) != parts.shape(0) + 1 ||
            node_ptr.data()[parts.shape(0)] != static_cast<int64_t>(members.shape(0)))
          throw nb::value_error("nodes do not fit their members");
        std::vector<int32_t> order(members.data(), members.data() + members.shape(0));
        std::vector<Segment> segments;
        for (size_t i = 0; i < parts.shape(0); ++i)
          segments.push_back({node_ptr.data()[i], node_ptr.data()[i + 1], parts.data()[i]});
        Control control;
        run_polled(control, progress, [&] {
          segments = split(z, order, std::move(segments), {static_cast<Cut>(cut), max_iter, sample, seed, tree, first},
                           threads, control);
        });
        std::vector<int64_t> ptr{0};
        for (const auto& s : segments) ptr.push_back(s.end);
        return nb::make_tuple(to_numpy(std::move(order)), to_numpy(std::move(ptr)));
      },
      nb::arg("z_ptr"), nb::arg("z_idx"), nb::arg("z_val"), nb::arg("z_cols"), nb::arg("z_dense"), nb::arg("members"),
      nb::arg("node_ptr"), nb::arg("parts"), nb::arg("cut"), nb::arg("max_iter"), nb::arg("sample"), nb::arg("seed"),
      nb::arg("tree"), nb::arg("first"), nb::arg("threads"), nb::arg("progress").none(),
      "Cut node i of a permutation of labels into (up to) parts[i] parts: (new permutation, part pointers).");
}

}  // namespace lw
