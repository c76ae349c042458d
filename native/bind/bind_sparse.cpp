#include <nanobind/stl/tuple.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "arrays/pairs.h"
#include "arrays/reshape.h"
#include "arrays/scale.h"
#include "bind/bind.h"

namespace lw {

namespace {

nb::tuple parts_of(OwnedCsr&& m) {
  return nb::make_tuple(to_numpy(std::move(m.ptr)), to_numpy(std::move(m.idx)), to_numpy(std::move(m.val)));
}

}  // namespace

void bind_sparse(nb::module_& m) {
  m.def(
      "validate",
      [](In<int64_t> ptr, In<int32_t> idx, In<float> val, int64_t cols, double largest, int threads) {
        const Csr view = csr_view(ptr, idx, val, cols);
        Fault fault;
        {
          nb::gil_scoped_release release;
          fault = validate(view, idx.shape(0), val.shape(0), largest, threads);
        }
        return std::make_tuple(fault.what, fault.row, fault.position);
      },
      nb::arg("ptr"), nb::arg("idx"), nb::arg("val"), nb::arg("cols"), nb::arg("largest"), nb::arg("threads"),
      "(what, row, position) of the first fault of a CSR matrix; what is '' when it is sound.");

  m.def(
      "pair_distances",
      [](In<int64_t> xp, In<int32_t> xi, In<float> xv, int64_t cols, In2<float> dense, In<int64_t> zp, In<int32_t> zi,
         In<float> zv, In2<float> z_dense, In2<int32_t> ids, int threads) {
        const Features x = features_view(xp, xi, xv, cols, dense), z = features_view(zp, zi, zv, cols, z_dense);
        if (z.dense_cols != x.dense_cols || static_cast<int64_t>(ids.shape(0)) != x.rows())
          throw nb::value_error("the pairs do not fit the features");
        const size_t k = ids.shape(1), count = ids.shape(0) * k;
        for (size_t r = 0; r < count; ++r)
          if (ids.data()[r] >= z.rows()) throw nb::value_error("a pair names a row that is not there");
        Control control;
        std::vector<float> out;
        {
          nb::gil_scoped_release release;
          out = pair_distances(x, z, ids.data(), static_cast<int64_t>(k), threads, control);
        }
        return to_numpy(std::move(out), {ids.shape(0), k});
      },
      nb::arg("x_ptr"), nb::arg("x_idx"), nb::arg("x_val"), nb::arg("x_cols"), nb::arg("x_dense"), nb::arg("z_ptr"),
      nb::arg("z_idx"), nb::arg("z_val"), nb::arg("z_dense"), nb::arg("ids"), nb::arg("threads"),
      "|x - z|^2 (n, k) between each row of X and the rows of Z that `ids` (n, k) names; 0 for -1.");

  m.def(
      "transpose",
      [](In<int64_t> ptr, In<int32_t> idx, In<float> val, int64_t cols) {
        const Csr view = csr_view(ptr, idx, val, cols);
        OwnedCsr out;
        {
          nb::gil_scoped_release release;
          out = transpose(view);
        }
        return parts_of(std::move(out));
      },
      nb::arg("ptr"), nb::arg("idx"), nb::arg("val"), nb::arg("cols"), "(ptr, idx, val) of the transposed matrix.");

  m.def(
      "sum_columns",
      [](In<int64_t> ptr, In<int32_t> idx, In<float> val, In<int32_t> group, int threads) {
        const Csr view = csr_view(ptr, idx, val, static_cast<int64_t>(group.shape(0)));
        OwnedCsr out;
        Control control;
        run_polled(control, nb::none(), [&] { out = sum_columns(view, group.data(), threads, control); });
        return parts_of(std::move(out));
      },
      nb::arg("ptr"), nb::arg("idx"), nb::arg("val"), nb::arg("group"), nb::arg("threads"),
      "(ptr, idx, val) of the matrix whose column g is the sum of the columns c with group[c] = g; -1 is left out.");

  m.def(
      "unit_rows",
      [](In<int64_t> ptr, In<int32_t> idx, In<float> val, int64_t cols, In2<float> dense, int threads) {
        const Features x = features_view(ptr, idx, val, cols, dense);
        if (ptr.data()[0] != 0 || ptr.data()[x.rows()] != static_cast<int64_t>(val.shape(0)))
          throw nb::value_error("row pointers do not fit the values");
        std::vector<float> sparse_out(val.shape(0)), dense_out(dense.size());
        Control control;
        {
          nb::gil_scoped_release release;
          unit_rows(x, sparse_out.data(), dense_out.data(), threads, control);
        }
        return nb::make_tuple(to_numpy(std::move(sparse_out)),
                              to_numpy(std::move(dense_out), {dense.shape(0), dense.shape(1)}));
      },
      nb::arg("ptr"), nb::arg("idx"), nb::arg("val"), nb::arg("cols"), nb::arg("dense"), nb::arg("threads"),
      "(values, dense) of the rows scaled to length one; a row of zeros stays.");

  m.def(
      "give_back_memory",
      [] {
#if defined(__GLIBC__)
        malloc_trim(0);
#endif
      },
      nb::call_guard<nb::gil_scoped_release>(), "Hand freed memory back to the system, where its library keeps it.");
}

}  // namespace lw
