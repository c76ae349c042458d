// The module: one bind_* function per part.
#include "bind/bind.h"
#include "linear/kernels.h"

namespace lw {
void bind_sparse(nb::module_& m);
void bind_tree(nb::module_& m);
void bind_linear(nb::module_& m);
void bind_tfidf(nb::module_& m);
void bind_merge(nb::module_& m);
void bind_names(nb::module_& m);
void bind_json(nb::module_& m);
}  // namespace lw

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // a model that lives until the interpreter ends is no leak
  m.doc() = "The native core of labelwood. Takes validated arrays, returns arrays; see native/.";
  m.def("isa", [] { return std::string(lw::kernels().name); }, "The instruction set in use: 'avx2' or 'portable'.");
  lw::bind_sparse(m);
  lw::bind_tree(m);
  lw::bind_linear(m);
  lw::bind_tfidf(m);
  lw::bind_merge(m);
  lw::bind_names(m);
  lw::bind_json(m);
}
