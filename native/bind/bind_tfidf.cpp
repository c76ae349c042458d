#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include "bind/bind.h"
#include "text/pack.h"
#include "text/sketch.h"
#include "text/tfidf.h"

namespace lw {
namespace {

constexpr int32_t ONE = 1;

TextView checked(const TextView& texts, const In<uint8_t>& arena) {
  const int64_t bad = bad_document(texts, static_cast<int64_t>(arena.shape(0)));
  if (bad >= 0) throw nb::value_error(("the offsets of document " + std::to_string(bad) + " are out of order").c_str());
  return texts;
}

// Documents of one field that counts once.
TextView view_of(const In<uint8_t>& arena, const In<int64_t>& offsets) {
  if (offsets.shape(0) == 0) throw nb::value_error("the texts have no offsets");
  const auto docs = static_cast<int64_t>(offsets.shape(0)) - 1;
  return checked({arena.data(), offsets.data(), docs, nullptr, &ONE, 1}, arena);
}

// Documents of fields: (arena, offsets, cuts (docs · (fields - 1)), weights (fields)).
using Fields = std::tuple<In<uint8_t>, In<int64_t>, In<int64_t>, In<int32_t>>;
TextView view_of(const Fields& given) {
  const auto& [arena, offsets, cuts, weights] = given;
  TextView texts = view_of(arena, offsets);
  texts.cuts = cuts.data();
  texts.weights = weights.data();
  texts.fields = static_cast<int64_t>(weights.shape(0));
  if (texts.fields < 1 || static_cast<int64_t>(cuts.shape(0)) != texts.docs * (texts.fields - 1))
    throw nb::value_error("the texts' fields do not fit their weights");
  for (int64_t field = 0; field < texts.fields; ++field)
    if (texts.weights[field] < 1 || texts.weights[field] > MAX_FIELD_WEIGHT)
      throw nb::value_error("the weight of a field is out of range");
  return checked(texts, arena);
}

// Short work (one document) is not worth a thread of its own.
template <typename Work>
void run(const TextView& texts, nb::handle progress, Work&& work) {
  Control control;
  if (texts.bytes() > (1 << 16)) {
    run_polled(control, progress, [&] { work(control); });
  } else {
    nb::gil_scoped_release release;
    work(control);
  }
}

nb::tuple matrix_parts(Matrix&& m) {
  return nb::make_tuple(to_numpy(std::move(m.ptr)), to_numpy(std::move(m.idx)), to_numpy(std::move(m.val)));
}

nb::tuple fit(const Fields& given, const TfidfOptions& options, const Words* words, int threads, nb::handle progress) {
  const TextView texts = view_of(given);
  Fitted fitted;
  run(texts, progress, [&](Control& control) { fitted = fit_tfidf(texts, options, words, threads, control); });
  return nb::make_tuple(
      nb::make_tuple(to_numpy(std::move(fitted.terms.bytes)), to_numpy(std::move(fitted.terms.offsets)),
                     to_numpy(std::move(fitted.terms.idf))),
      matrix_parts(std::move(fitted.matrix)), fitted.distinct);
}

nb::tuple transform(const Vectoriser& self, const Fields& given, const Words* words, int threads, nb::handle progress) {
  const TextView texts = view_of(given);
  Matrix matrix;
  run(texts, progress, [&](Control& control) { matrix = self.transform(texts, words, threads, control); });
  return matrix_parts(std::move(matrix));
}

nb::tuple count(const Fields& given, const TfidfOptions& options, const Words* words, int threads,
                nb::handle progress) {
  const TextView texts = view_of(given);
  CountedWords found;
  run(texts, progress, [&](Control& control) { found = count_words(texts, options, words, threads, control); });
  return nb::make_tuple(to_numpy(std::move(found.terms.bytes)), to_numpy(std::move(found.terms.offsets)),
                        to_numpy(std::move(found.counts)));
}

WordList words_of(const In<uint8_t>& bytes, const In<int64_t>& offsets) {
  const TextView view = view_of(bytes, offsets);
  for (int64_t i = 0; i < view.docs; ++i)
    if (view.size(i) < 1 || view.size(i) > MAX_TOKEN_BYTES) throw nb::value_error("a word is empty or too long");
  return {view.arena, view.offsets, view.docs};
}

// Python strings to one UTF-8 arena. The GIL is kept, so the strings cannot go away. Returns (arena, offsets, row): row
// is the first that is no valid text, or -1.
nb::tuple pack(nb::list strings, int threads) {
  std::vector<StringView> views;
  const size_t count = nb::len(strings);
  views.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    PyObject* text = PyList_GET_ITEM(strings.ptr(), static_cast<Py_ssize_t>(i));
    if (!PyUnicode_Check(text)) break;
    views.push_back({PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text), static_cast<int>(PyUnicode_KIND(text)),
                     PyUnicode_IS_ASCII(text) != 0});
  }
  Packed packed = pack_strings(views, threads);
  if (packed.bad < 0 && views.size() < count) packed.bad = static_cast<int64_t>(views.size());
  return nb::make_tuple(to_numpy(std::move(packed.arena)), to_numpy(std::move(packed.offsets)), packed.bad);
}

// Of each document: words, characters, signs of damage, digest of its words, slots (docs · SLOTS).
nb::tuple sketch_texts(In<uint8_t> arena, In<int64_t> offsets, int threads, nb::handle progress) {
  const TextView texts = view_of(arena, offsets);
  Sketches found;
  run(texts, progress, [&](Control& control) { found = sketch(texts, threads, control); });
  return nb::make_tuple(to_numpy(std::move(found.words)), to_numpy(std::move(found.characters)),
                        to_numpy(std::move(found.signs)), to_numpy(std::move(found.digests)),
                        to_numpy(std::move(found.slots)));
}

}  // namespace

void bind_tfidf(nb::module_& m) {
  m.attr("TOKENISER_VERSION") = TOKENISER_VERSION;
  nb::class_<TfidfOptions>(m, "TfidfOptions")
      .def(
          "__init__",
          [](TfidfOptions* self, bool lowercase, bool strip, uint32_t min_chars, std::pair<uint32_t, uint32_t> words,
             std::pair<uint32_t, uint32_t> chars, int64_t min_df, double max_df, int64_t max_features, bool sublinear,
             int idf, bool l2) {
            if (words.second > MAX_WORDS || chars.second > MAX_CHARS) throw nb::value_error("n-grams are too long");
            const Rules rules{lowercase, strip, min_chars};
            const Grams grams{words.first, words.second, chars.first, chars.second};
            new (self) TfidfOptions{rules, grams, min_df, max_df, max_features, sublinear, idf, l2};
          },
          nb::kw_only(), nb::arg("lowercase"), nb::arg("strip"), nb::arg("min_chars"), nb::arg("words"),
          nb::arg("chars"), nb::arg("min_df"), nb::arg("max_df"), nb::arg("max_features"), nb::arg("sublinear"),
          nb::arg("idf"), nb::arg("l2"));
  nb::class_<Words>(m, "Words")
      .def(nb::init<>())
      .def(
          "add_stems",
          [](Words& self, In<uint8_t> bytes, In<int64_t> offsets, In<uint8_t> stem_bytes, In<int64_t> stem_offsets) {
            const WordList words = words_of(bytes, offsets), stems = words_of(stem_bytes, stem_offsets);
            if (words.size != stems.size) throw nb::value_error("each word needs one stem");
            self.add_stems(words, stems);
          },
          nb::arg("bytes"), nb::arg("offsets"), nb::arg("stem_bytes"), nb::arg("stem_offsets"),
          "Let stems take the places of words.")
      .def(
          "keep_whole",
          [](Words& self, In<uint8_t> bytes, In<int64_t> offsets) { self.keep_whole(words_of(bytes, offsets)); },
          nb::arg("bytes"), nb::arg("offsets"), "Leave these words out of the slicing.")
      .def(
          "knows",
          [](const Words& self, In<uint8_t> bytes, In<int64_t> offsets) {
            return to_numpy(self.known(words_of(bytes, offsets)));
          },
          nb::arg("bytes"), nb::arg("offsets"), "For each word whether it has a stem (n, uint8).");
  nb::class_<Vectoriser>(m, "Vectoriser")
      .def(
          "__init__",
          [](Vectoriser* self, const TfidfOptions& options, In<uint8_t> bytes, In<int64_t> offsets, In<float> idf) {
            view_of(bytes, offsets);
            if (idf.shape(0) + 1 != offsets.shape(0)) throw nb::value_error("one idf per term is needed");
            new (self)
                Vectoriser(options, bytes.data(), offsets.data(), idf.data(), static_cast<int64_t>(idf.shape(0)));
          },
          nb::arg("options"), nb::arg("bytes"), nb::arg("offsets"), nb::arg("idf"))
      .def("transform", &transform, nb::arg("texts"), nb::arg("words").none(), nb::arg("threads"),
           nb::arg("progress").none(), "(ptr, idx, val) of the texts' matrix.");
  m.def("count_words", &count, nb::arg("texts"), nb::arg("options"), nb::arg("words").none(), nb::arg("threads"),
        nb::arg("progress").none(), "(bytes, offsets, documents) of the single words, the most frequent first.");
  m.def("tfidf_fit", &fit, nb::arg("texts"), nb::arg("options"), nb::arg("words").none(), nb::arg("threads"),
        nb::arg("progress").none(), "((bytes, offsets, idf), (ptr, idx, val), distinct terms before pruning).");
  m.def("sketch_texts", &sketch_texts, nb::arg("arena"), nb::arg("offsets"), nb::arg("threads"),
        nb::arg("progress").none(), "(words, characters, signs, digests, slots) of each document.");
  m.def("pack_strings", &pack, nb::arg("strings"), nb::arg("threads"),
        "(arena, offsets, bad row or -1) of a list of str.");
}

}  // namespace lw
