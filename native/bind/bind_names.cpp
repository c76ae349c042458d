// Label names: Python strings are made of the few that are asked for.
#include "bind/bind.h"
#include "text/names.h"

namespace lw {
namespace {

// The arrays are held while this lives.
struct NameArrays {
  In<uint8_t> arena;
  In<int64_t> offsets;

  Names view() const { return {arena.data(), offsets.data(), static_cast<int64_t>(offsets.shape(0)) - 1}; }

  nb::object text(int64_t i) const {
    const std::string_view found = view()[i];
    return nb::steal(PyUnicode_DecodeUTF8(found.data(), static_cast<Py_ssize_t>(found.size()), nullptr));
  }
};

NameArrays make_names(In<uint8_t> arena, In<int64_t> offsets) {
  if (!offsets.shape(0) || offsets.shape(0) > size_t{1} << 31) throw nb::value_error("there must be 1 to 2^31 offsets");
  NameArrays names{arena, offsets};
  if (!in_order(names.view(), static_cast<int64_t>(arena.shape(0)))) throw nb::value_error("offsets are out of order");
  return names;
}

nb::object checked(nb::object&& made) {
  if (!made.is_valid()) nb::raise_python_error();
  return std::move(made);
}

nb::list some(const NameArrays& names, int64_t begin, int64_t end) {
  if (begin < 0 || end > names.view().size) throw nb::index_error("no such name");
  nb::list out;
  for (int64_t i = begin; i < end; ++i) out.append(checked(names.text(i)));
  return out;
}

nb::list pairs(const NameArrays& names, In2<int32_t> ids, In2<float> scores) {
  if (ids.shape(0) != scores.shape(0) || ids.shape(1) != scores.shape(1))
    throw nb::value_error("each id needs a score");
  const int64_t size = names.view().size;
  nb::list rows;
  for (size_t r = 0; r < ids.shape(0); ++r) {
    nb::list row;
    for (size_t p = r * ids.shape(1); p < (r + 1) * ids.shape(1); ++p) {
      const int32_t id = ids.data()[p];
      if (id < 0) continue;
      if (id >= size) throw nb::index_error("no such name");
      row.append(nb::make_tuple(checked(names.text(id)), static_cast<double>(scores.data()[p])));
    }
    rows.append(row);
  }
  return rows;
}

}  // namespace

void bind_names(nb::module_& m) {
  nb::class_<NameArrays>(m, "Names")
      .def(nb::new_(&make_names), nb::arg("arena"), nb::arg("offsets"))
      .def("some", &some, nb::arg("begin"), nb::arg("end"), "The names begin..end as a list of str.")
      .def("pairs", &pairs, nb::arg("ids"), nb::arg("scores"), "A list of (name, score) for each row; id -1 is none.")
      .def(
          "repeated", [](const NameArrays& names) { return repeated(names.view()); },
          nb::call_guard<nb::gil_scoped_release>(), "A name that an earlier one equals, or -1.");
}

}  // namespace lw
