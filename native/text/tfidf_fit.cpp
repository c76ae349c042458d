#include <cmath>

#include "text/blocks.h"

namespace lw {
namespace {

// Fitting, first half: one worker's terms and the counts of the documents it got.
class Counter {
 public:
  Counter(const TfidfOptions& options, const Characters& characters, const Words* words)
      : terms(hash_seed()), analyser_(options.rules, characters, options.grams, words) {}

  // Counts per document go to sizes[doc + 1].
  void count(const TextView& texts, DocBlock& block, int64_t* sizes, const Control& control) {
    for (int64_t doc = block.begin; doc < block.end; ++doc) {
      const int64_t before = scratch_.size;
      first_ = total_ + static_cast<uint64_t>(before);
      texts.each_field(doc,
                       [&](const uint8_t* text, int64_t size, uint32_t weight) { count(text, size, weight, control); });
      sizes[doc + 1] = scratch_.size - before;
    }
    total_ += static_cast<uint64_t>(scratch_.size);
    block.entries = scratch_.take();
  }
  Terms terms;

 private:
  // A slot remembers where its term's last entry is; one that lies in this document is counted on. No branches.
  void count(const uint8_t* text, int64_t size, uint32_t weight, const Control& control) {
    const uint64_t base = total_, first = first_;
    analyser_.run(text, size, terms, [&](const Probe* probes, uint32_t count) {
      control.check();  // a document may be of any size
      Entry* const entries = scratch_.room(count);
      uint64_t next = base + static_cast<uint64_t>(scratch_.size);
      for (uint32_t i = 0; i < count; ++i) {
        Slot& slot = terms.at(probes[i]);
        const bool fresh = slot.last < first;
        const uint64_t at = fresh ? next : slot.last;
        Entry& entry = entries[at - base];
        const uint32_t before = fresh ? 0 : entry.count;
        entry.id = slot.id;
        entry.count = before + weight;
        slot.last = at;
        slot.count += fresh;
        next += fresh;
      }
      scratch_.size = static_cast<int64_t>(next - base);
    });
  }
  Analyser analyser_;
  Scratch scratch_;
  uint64_t first_ = 1;  // where the entries of the document at hand begin, among those of all blocks
  uint64_t total_ = 1;  // entries of earlier blocks; a new slot's 0 is before all of them
};

// Second half: which terms stay, under which number.
struct Ranked {
  uint64_t prefix;  // the first bytes as a number that sorts as they do
  uint32_t count, id;
  std::string_view text;
};

uint64_t sorting_prefix(std::string_view text) {
  uint64_t word = 0;
  std::memcpy(&word, text.data(), std::min<size_t>(8, text.size()));
  return __builtin_bswap64(word);
}

// The terms of all workers in the first one's table; maps[w][id] is its id there.
std::vector<std::vector<uint32_t>> merge(std::vector<std::unique_ptr<Counter>>& counters) {
  std::vector<std::vector<uint32_t>> maps(counters.size());
  Terms& all = counters[0]->terms;
  maps[0].resize(all.size());
  for (uint32_t i = 0; i < all.size(); ++i) maps[0][i] = i;
  for (size_t w = 1; w < counters.size(); ++w) {
    const Terms& terms = counters[w]->terms;
    all.reserve(int64_t{all.size()} + terms.size());  // walked in hash order, which a growing table cannot stand
    maps[w].resize(terms.size());
    terms.each([&](const Slot& slot) {
      Slot& home = all.at(terms.probe(slot));
      home.count += slot.count;
      maps[w][slot.id] = home.id;
    });
    counters[w].reset();
  }
  return maps;
}

std::vector<Ranked> rank(const Terms& terms, const TfidfOptions& options, int64_t docs) {
  const double most = options.max_df * static_cast<double>(docs);
  std::vector<Ranked> ranked;
  terms.each([&](const Slot& slot) {
    if (slot.count < options.min_df || slot.count > most) return;
    const std::string_view text = terms.text(slot);
    ranked.push_back({sorting_prefix(text), slot.count, slot.id, text});
  });
  auto order = [](const Ranked& a, const Ranked& b) {
    if (a.count != b.count) return a.count > b.count;
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    return a.text < b.text;
  };
  const auto limit = options.max_features < 0 ? ranked.size() : static_cast<size_t>(options.max_features);
  if (limit < ranked.size()) {
    std::nth_element(ranked.begin(), ranked.begin() + static_cast<int64_t>(limit), ranked.end(), order);
    ranked.resize(limit);
  }
  std::sort(ranked.begin(), ranked.end(), order);
  return ranked;
}

float idf_of(int kind, int64_t docs, uint32_t df) {
  if (kind == 0) return 1.0f;
  const double smooth = kind == 2 ? 1.0 : 0.0;
  return static_cast<float>(std::log((static_cast<double>(docs) + smooth) / (df + smooth)) + 1.0);
}

TermList list_terms(const std::vector<Ranked>& ranked, int idf, int64_t docs) {
  int64_t bytes = 0;
  for (const Ranked& term : ranked) bytes += static_cast<int64_t>(term.text.size());
  const auto n = static_cast<int64_t>(ranked.size());
  TermList list{Buffer<uint8_t>(bytes), Buffer<int64_t>(n + 1), Buffer<float>(n)};
  list.offsets[0] = 0;
  for (int64_t i = 0; i < n; ++i) {
    const std::string_view text = ranked[static_cast<size_t>(i)].text;
    std::memcpy(list.bytes.data() + list.offsets[i], text.data(), text.size());
    list.offsets[i + 1] = list.offsets[i] + static_cast<int64_t>(text.size());
    list.idf[i] = idf_of(idf, docs, ranked[static_cast<size_t>(i)].count);
  }
  return list;
}

// In every map, ids of the merged table to final ones; DROPPED for terms left out.
constexpr uint32_t DROPPED = ~0u;
void renumber(std::vector<std::vector<uint32_t>>& maps, const std::vector<Ranked>& ranked, uint32_t terms) {
  std::vector<uint32_t> final_ids(terms, DROPPED);
  for (size_t i = 0; i < ranked.size(); ++i) final_ids[ranked[i].id] = static_cast<uint32_t>(i);
  for (auto& map : maps)
    for (uint32_t& id : map) id = final_ids[id];
}

// Turn the counts of a block into rows, in place; sizes[doc + 1] become those of the rows.
void make_rows(DocBlock& block, const std::vector<uint32_t>& map, RowMaker& rows, int64_t* sizes) {
  const Entry* in = block.entries.data();
  Entry* out = block.entries.data();
  for (int64_t doc = block.begin; doc < block.end; ++doc) {
    rows.expect(static_cast<size_t>(sizes[doc + 1]));
    for (const Entry* end = in + sizes[doc + 1]; in < end; ++in)
      if (const uint32_t id = map[in->id]; id != DROPPED) rows.add(id, in->count);
    sizes[doc + 1] = rows.finish(out);
    out += sizes[doc + 1];
  }
}

using Counters = std::vector<std::unique_ptr<Counter>>;

// The one pass over the text. With `keep` the blocks keep the counts of each document.
Counters count_all(const TextView& texts, const TfidfOptions& options, const Words* words, bool keep,
                   std::vector<DocBlock>& blocks, int64_t* sizes, int threads, Control& control) {
  const Characters characters(options.rules.lowercase, options.rules.strip);
  const auto tasks = static_cast<int64_t>(blocks.size());
  Counters counters(static_cast<size_t>(std::clamp<int64_t>(tasks, 1, threads)));
  for (auto& counter : counters) counter = std::make_unique<Counter>(options, characters, words);
  control.total = texts.bytes();
  parallel_for(threads, tasks, control, [&](int64_t b, int worker) {
    DocBlock& block = blocks[static_cast<size_t>(b)];
    block.worker = worker;
    counters[static_cast<size_t>(worker)]->count(texts, block, sizes, control);
    if (!keep) block.entries = Buffer<Entry>();
    control.done += bytes_of(texts, block);
  });
  return counters;
}

}  // namespace

CountedWords count_words(const TextView& texts, const TfidfOptions& options, const Words* words, int threads,
                         Control& control) {
  TfidfOptions plain;
  plain.rules = options.rules;
  plain.min_df = 1;
  std::vector<DocBlock> blocks = cut(texts);
  Buffer<int64_t> sizes(texts.docs + 1);
  Counters counters = count_all(texts, plain, words, false, blocks, sizes.data(), threads, control);
  merge(counters);
  const std::vector<Ranked> ranked = rank(counters[0]->terms, plain, texts.docs);
  CountedWords found{list_terms(ranked, 0, texts.docs), {}};
  for (const Ranked& word : ranked) found.counts.push_back(word.count);
  return found;
}

Fitted fit_tfidf(const TextView& texts, const TfidfOptions& options, const Words* words, int threads,
                 Control& control) {
  std::vector<DocBlock> blocks = cut(texts);
  Buffer<int64_t> sizes(texts.docs + 1);
  Counters counters = count_all(texts, options, words, true, blocks, sizes.data(), threads, control);
  std::vector<std::vector<uint32_t>> maps = merge(counters);
  const Terms& terms = counters[0]->terms;
  const std::vector<Ranked> ranked = rank(terms, options, texts.docs);
  Fitted fitted{list_terms(ranked, options.idf, texts.docs), {}, terms.size()};
  renumber(maps, ranked, terms.size());
  counters.clear();
  const std::vector<float> idf(fitted.terms.idf.data(), fitted.terms.idf.data() + fitted.terms.idf.size);
  const TermWeight weight(options.sublinear);
  std::vector<std::unique_ptr<RowMaker>> makers(maps.size());
  parallel_for(threads, static_cast<int64_t>(blocks.size()), control, [&](int64_t b, int worker) {
    DocBlock& block = blocks[static_cast<size_t>(b)];
    auto& rows = makers[static_cast<size_t>(worker)];
    if (!rows) rows = std::make_unique<RowMaker>(idf, weight, options.l2, false);
    make_rows(block, maps[static_cast<size_t>(block.worker)], *rows, sizes.data());
  });
  fitted.matrix = assemble(blocks, std::move(sizes), threads, control);
  return fitted;
}

}  // namespace lw
