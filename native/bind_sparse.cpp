#include <nanobind/stl/tuple.h>

#include "bind.h"

namespace lw {

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
}

}  // namespace lw
