#include "text/tfidf.h"

#include "text/blocks.h"

namespace lw {
namespace {

// What one worker needs to turn texts into rows.
struct Transformer {
  Analyser analyser;
  RowMaker rows;
  Scratch scratch;

  int64_t row(const TextView& texts, int64_t doc, const Terms& terms, const Control& control) {
    texts.each_field(doc, [&](const uint8_t* text, int64_t size, uint32_t weight) {
      analyser.run(text, size, terms, [&](const Probe* probes, uint32_t count) {
        control.check();  // a document may be of any size
        rows.expect(size_t{count} * weight);
        for (uint32_t i = 0; i < count; ++i)
          if (const Slot* slot = terms.find(probes[i]))
            for (uint32_t time = 0; time < weight; ++time) rows.add(slot->id);
      });
    });
    Entry* out = scratch.room(static_cast<int64_t>(rows.used())) + scratch.size;
    const int64_t entries = rows.finish(out);
    scratch.size += entries;
    return entries;
  }
};

}  // namespace

int64_t bad_document(const TextView& texts, int64_t arena_size) {
  for (int64_t doc = 0; doc <= texts.docs; ++doc) {
    const int64_t before = doc ? texts.offsets[doc - 1] : 0;
    if (texts.offsets[doc] < before || texts.offsets[doc] > arena_size) return std::max<int64_t>(doc - 1, 0);
  }
  for (int64_t doc = 0; doc < texts.docs; ++doc) {
    int64_t before = texts.offsets[doc];
    for (int64_t cut = doc * (texts.fields - 1); cut < (doc + 1) * (texts.fields - 1); ++cut) {
      if (texts.cuts[cut] < before || texts.cuts[cut] > texts.offsets[doc + 1]) return doc;
      before = texts.cuts[cut];
    }
  }
  return -1;
}

Vectoriser::Vectoriser(const TfidfOptions& options, const uint8_t* bytes, const int64_t* offsets, const float* idf,
                       int64_t size)
    : options_(options),
      characters_(options.rules.lowercase, options.rules.strip),
      terms_(hash_seed(), size),
      weight_(options.sublinear),
      idf_(idf, idf + size) {
  std::vector<uint8_t> padded(bytes, bytes + offsets[size]);
  padded.resize(padded.size() + 16);
  for (int64_t i = 0; i < size; ++i) {
    terms_.at(terms_.probe(padded.data() + offsets[i], static_cast<uint32_t>(offsets[i + 1] - offsets[i])));
    if (terms_.size() != i + 1) throw std::invalid_argument("term " + std::to_string(i) + " stands twice");
  }
}

Matrix Vectoriser::transform(const TextView& texts, const Words* words, int threads, Control& control) const {
  std::vector<DocBlock> blocks = cut(texts);
  std::vector<std::unique_ptr<Transformer>> workers(static_cast<size_t>(threads));
  const bool few = texts.bytes() < static_cast<int64_t>(idf_.size());
  Buffer<int64_t> sizes(texts.docs + 1);
  control.total = texts.bytes();
  parallel_for(threads, static_cast<int64_t>(blocks.size()), control, [&](int64_t b, int w) {
    auto& worker = workers[static_cast<size_t>(w)];
    if (!worker)
      worker.reset(new Transformer{Analyser(options_.rules, characters_, options_.grams, words),
                                   RowMaker(idf_, weight_, options_.l2, few), Scratch()});
    DocBlock& block = blocks[static_cast<size_t>(b)];
    for (int64_t doc = block.begin; doc < block.end; ++doc) sizes[doc + 1] = worker->row(texts, doc, terms_, control);
    block.entries = worker->scratch.take();
    control.done += bytes_of(texts, block);
  });
  return assemble(blocks, std::move(sizes), threads, control);
}

}  // namespace lw
