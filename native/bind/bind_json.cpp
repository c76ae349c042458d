// JSON lines: bytes in, rows as arrays out.
#include "bind/bind.h"
#include "text/json_lines.h"
#include "text/terms.h"

namespace lw {
namespace {

nb::object text_of(std::string_view text) {
  nb::object made = nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr));
  if (!made.is_valid()) nb::raise_python_error();
  return made;
}

nb::list texts_of(const Buffer<uint8_t>& arena, const Buffer<int64_t>& ends, int64_t rows) {
  nb::list out;
  for (int64_t i = 0; i < rows; ++i) {
    const auto* first = reinterpret_cast<const char*>(arena.data() + ends[i]);
    out.append(text_of({first, static_cast<size_t>(ends[i + 1] - ends[i])}));
  }
  return out;
}

nb::list odd_lines(const std::vector<OddLine>& odd) {
  nb::list out;
  for (const OddLine& line : odd) out.append(nb::make_tuple(line.row, line.line, line.begin, line.end, line.fresh));
  return out;
}

bool learn(JsonLines& self, std::vector<std::string> names, std::vector<int32_t> texts, int32_t labels, int32_t id,
           bool refused) {
  const auto size = static_cast<int64_t>(names.size());
  const auto out_of_range = [&](int32_t place) { return place < -1 || place >= size; };
  bool wrong = static_cast<int64_t>(texts.size()) != self.fields() || out_of_range(labels) || out_of_range(id);
  for (const int32_t place : texts) wrong |= out_of_range(place);
  if (wrong) throw nb::value_error("no such field");
  return self.learn({std::move(names), std::move(texts), labels, id, refused});
}

// Whole lines of about `size` bytes from `begin` on. The bytes cannot change, so that the GIL is not needed.
nb::tuple read(JsonLines& self, nb::bytes data, int64_t begin, int64_t size, bool ids, int threads) {
  const auto all = static_cast<int64_t>(data.size());
  if (begin < 0 || begin > all || size < 1) throw nb::value_error("there are no such bytes");
  const auto* bytes = static_cast<const uint8_t*>(data.data());
  JsonRows rows;
  {
    nb::gil_scoped_release release;
    int64_t end = all;
    if (size < all - begin) {
      const void* feed = std::memchr(bytes + begin + size, '\n', static_cast<size_t>(all - begin - size));
      if (feed) end = static_cast<const uint8_t*>(feed) - bytes + 1;
    }
    rows = self.read(bytes, begin, end, threads);
  }
  nb::object names = nb::none();
  if (ids) names = texts_of(rows.ids, rows.id_ends, rows.rows);
  nb::tuple arrays = nb::make_tuple(to_numpy(std::move(rows.texts)), to_numpy(std::move(rows.text_ends)),
                                    to_numpy(std::move(rows.cuts)), to_numpy(std::move(rows.counts)),
                                    to_numpy(std::move(rows.duplicates)), to_numpy(std::move(rows.labels)),
                                    to_numpy(std::move(rows.shapes)), names);
  return nb::make_tuple(arrays, odd_lines(rows.odd), rows.lines, rows.end);
}

nb::list some_names(const JsonLines& self, int64_t begin) {
  if (begin < 0) throw nb::index_error("no such name");
  nb::list out;
  for (int64_t i = begin; i < self.names().size(); ++i) out.append(text_of(self.names()[i]));
  return out;
}

}  // namespace

void bind_json(nb::module_& m) {
  nb::class_<JsonLines>(m, "JsonLines")
      .def(
          "__init__",
          [](JsonLines* self, int64_t fields, bool need_labels, int64_t label_bytes) {
            if (fields < 1 || label_bytes < 1) throw nb::value_error("there must be a field, and a label of a byte");
            new (self) JsonLines(fields, need_labels, label_bytes, hash_seed());
          },
          nb::kw_only(), nb::arg("fields"), nb::arg("need_labels"), nb::arg("label_bytes"))
      .def("learn", &learn, nb::arg("names"), nb::arg("texts"), nb::arg("labels"), nb::arg("id"), nb::arg("refused"),
           "Which of an object's names hold what (-1: none). False: there are too many shapes.")
      .def("read", &read, nb::arg("data"), nb::arg("begin"), nb::arg("size"), nb::arg("ids"), nb::arg("threads"),
           "(columns of the rows, odd lines, number of lines, end of what was read).")
      .def("names", &some_names, nb::arg("begin"), "The names of labels from the number `begin` on.");
}

}  // namespace lw
