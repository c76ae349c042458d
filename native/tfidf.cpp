#include "tfidf.h"

#include <cmath>

#include "rows.h"

namespace lw {
namespace {

// Consecutive documents worked on as one task, and what came out of them.
struct Block {
  int64_t begin = 0, end = 0;  // documents
  int worker = 0;
  Buffer<Entry> entries;
};

std::vector<Block> cut(const TextView& texts) {
  constexpr int64_t BYTES = 1 << 18, DOCS = 4096;
  std::vector<Block> blocks;
  for (int64_t begin = 0, end; begin < texts.docs; begin = end) {
    for (end = begin + 1; end < texts.docs && end - begin < DOCS; ++end)
      if (texts.offsets[end] - texts.offsets[begin] >= BYTES) break;
    Block block;
    block.begin = begin;
    block.end = end;
    blocks.push_back(std::move(block));
  }
  return blocks;
}

int64_t bytes_of(const TextView& texts, const Block& block) {
  return texts.offsets[block.end] - texts.offsets[block.begin];
}

// Entries of the block at hand; the memory is kept from block to block.
class Scratch {
 public:
  Entry* room(int64_t more) {
    if (size + more > capacity_) {
      Buffer<Entry> larger(2 * (size + more));
      if (size) std::memcpy(static_cast<void*>(&larger[0]), &entries_[0], sizeof(Entry) * static_cast<size_t>(size));
      capacity_ = larger.size;
      entries_ = std::move(larger);
    }
    return entries_.data();
  }
  Buffer<Entry> take() {
    Buffer<Entry> out(size);
    if (size) std::memcpy(static_cast<void*>(&out[0]), &entries_[0], sizeof(Entry) * static_cast<size_t>(size));
    size = 0;
    return out;
  }
  int64_t size = 0;

 private:
  Buffer<Entry> entries_;
  int64_t capacity_ = 0;
};

// Fitting, first half: one worker's terms and the counts of the documents it got.
class Counter {
 public:
  Counter(const TfidfOptions& options, const Characters& characters)
      : terms(hash_seed()), analyser_(options.rules, characters, options.grams) {}

  // Counts per document go to sizes[doc + 1].
  void count(const TextView& texts, Block& block, int64_t* sizes) {
    for (int64_t doc = block.begin; doc < block.end; ++doc) {
      const int64_t before = scratch_.size;
      count(texts.arena + texts.offsets[doc], texts.size(doc));
      sizes[doc + 1] = scratch_.size - before;
    }
    total_ += static_cast<uint64_t>(scratch_.size);
    block.entries = scratch_.take();
  }
  Terms terms;

 private:
  // A slot remembers where its term's last entry is; one that lies in this document is counted on. No branches.
  void count(const uint8_t* text, int64_t size) {
    const uint64_t base = total_, first = base + static_cast<uint64_t>(scratch_.size);
    analyser_.run(text, size, terms, [&](const Probe* probes, uint32_t count) {
      Entry* const entries = scratch_.room(count);
      uint64_t next = base + static_cast<uint64_t>(scratch_.size);
      for (uint32_t i = 0; i < count; ++i) {
        Slot& slot = terms.at(probes[i]);
        const bool fresh = slot.last < first;
        const uint64_t at = fresh ? next : slot.last;
        Entry& entry = entries[at - base];
        const uint32_t before = fresh ? 0 : entry.count;
        entry.id = slot.id;
        entry.count = before + 1;
        slot.last = at;
        slot.count += fresh;
        next += fresh;
      }
      scratch_.size = static_cast<int64_t>(next - base);
    });
  }
  Analyser analyser_;
  Scratch scratch_;
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
  int64_t most = 0;
  for (auto& counter : counters) most += counter->terms.size();
  Terms& all = counters[0]->terms;
  maps[0].resize(all.size());
  for (uint32_t i = 0; i < all.size(); ++i) maps[0][i] = i;
  if (counters.size() > 1) all.reserve(most);  // tables are walked in hash order, which a growing one cannot stand
  for (size_t w = 1; w < counters.size(); ++w) {
    const Terms& terms = counters[w]->terms;
    maps[w].resize(terms.size());
    terms.each([&](const Slot& slot) {
      Slot& home = all.at(terms.probe(slot));
      home.count += slot.count;
      maps[w][slot.id] = home.id;
    });
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

// A worker's term ids to final ones, in place of `map`; DROPPED for terms left out.
constexpr uint32_t DROPPED = ~0u;
void renumber(std::vector<uint32_t>& map, const std::vector<uint32_t>& final_ids) {
  for (uint32_t& id : map) id = final_ids[id];
}

// Turn the counts of a block into rows, in place; sizes[doc + 1] become those of the rows.
void make_rows(Block& block, const std::vector<uint32_t>& map, RowMaker& rows, int64_t* sizes) {
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

// Blocks of rows to one matrix; ptr holds the row sizes at doc + 1.
Matrix assemble(std::vector<Block>& blocks, Buffer<int64_t> ptr, int threads, Control& control) {
  ptr[0] = 0;
  for (int64_t i = 1; i < ptr.size; ++i) ptr[i] += ptr[i - 1];
  const int64_t total = ptr[ptr.size - 1];
  Matrix matrix{std::move(ptr), Buffer<int32_t>(total), Buffer<float>(total)};
  parallel_for(threads, static_cast<int64_t>(blocks.size()), control, [&](int64_t b, int) {
    Block& block = blocks[static_cast<size_t>(b)];
    const int64_t begin = matrix.ptr[block.begin], size = matrix.ptr[block.end] - begin;
    int32_t* idx = matrix.idx.data() + begin;
    float* val = matrix.val.data() + begin;
    for (int64_t i = 0; i < size; ++i) {
      idx[i] = static_cast<int32_t>(block.entries[i].id);
      val[i] = block.entries[i].weight;
    }
    block.entries = Buffer<Entry>();
  });
  return matrix;
}

}  // namespace

int64_t bad_document(const TextView& texts, int64_t arena_size) {
  for (int64_t doc = 0; doc <= texts.docs; ++doc) {
    const int64_t before = doc ? texts.offsets[doc - 1] : 0;
    if (texts.offsets[doc] < before || texts.offsets[doc] > arena_size) return std::max<int64_t>(doc - 1, 0);
  }
  return -1;
}

Fitted fit_tfidf(const TextView& texts, const TfidfOptions& options, int threads, Control& control) {
  const Characters characters(options.rules.lowercase, options.rules.strip);
  std::vector<Block> blocks = cut(texts);
  const auto tasks = static_cast<int64_t>(blocks.size());
  std::vector<std::unique_ptr<Counter>> counters(
      static_cast<size_t>(std::max<int64_t>(1, std::min<int64_t>(threads, tasks))));
  for (auto& counter : counters) counter = std::make_unique<Counter>(options, characters);
  Buffer<int64_t> sizes(texts.docs + 1);
  control.total = texts.bytes();
  parallel_for(threads, tasks, control, [&](int64_t b, int worker) {
    Block& block = blocks[static_cast<size_t>(b)];
    block.worker = worker;
    counters[static_cast<size_t>(worker)]->count(texts, block, sizes.data());
    control.done += bytes_of(texts, block);
  });
  std::vector<std::vector<uint32_t>> maps = merge(counters);
  const Terms& terms = counters[0]->terms;
  const std::vector<Ranked> ranked = rank(terms, options, texts.docs);
  Fitted fitted{list_terms(ranked, options.idf, texts.docs), {}, terms.size()};
  std::vector<uint32_t> final_ids(terms.size(), DROPPED);
  for (size_t i = 0; i < ranked.size(); ++i) final_ids[ranked[i].id] = static_cast<uint32_t>(i);
  for (auto& map : maps) renumber(map, final_ids);
  counters.clear();
  const std::vector<float> idf(fitted.terms.idf.data(), fitted.terms.idf.data() + fitted.terms.idf.size);
  std::vector<std::unique_ptr<RowMaker>> makers(maps.size());
  parallel_for(threads, tasks, control, [&](int64_t b, int worker) {
    Block& block = blocks[static_cast<size_t>(b)];
    auto& rows = makers[static_cast<size_t>(worker)];
    if (!rows) rows = std::make_unique<RowMaker>(idf, options.sublinear, options.l2, false);
    make_rows(block, maps[static_cast<size_t>(block.worker)], *rows, sizes.data());
  });
  fitted.matrix = assemble(blocks, std::move(sizes), threads, control);
  return fitted;
}

Vectoriser::Vectoriser(const TfidfOptions& options, const uint8_t* bytes, const int64_t* offsets, const float* idf,
                       int64_t size)
    : options_(options),
      characters_(options.rules.lowercase, options.rules.strip),
      terms_(hash_seed(), size),
      idf_(idf, idf + size) {
  std::vector<uint8_t> padded(bytes, bytes + offsets[size]);
  padded.resize(padded.size() + 16);
  for (int64_t i = 0; i < size; ++i) {
    terms_.at(terms_.probe(padded.data() + offsets[i], static_cast<uint32_t>(offsets[i + 1] - offsets[i])));
    if (terms_.size() != i + 1) throw std::invalid_argument("term " + std::to_string(i) + " stands twice");
  }
}

Matrix Vectoriser::transform(const TextView& texts, int threads, Control& control) const {
  std::vector<Block> blocks = cut(texts);
  const auto tasks = static_cast<int64_t>(blocks.size());
  struct Worker {
    Analyser analyser;
    RowMaker rows;
    Scratch scratch;
  };
  std::vector<std::unique_ptr<Worker>> workers(static_cast<size_t>(std::max(1, threads)));
  const bool few = texts.bytes() < static_cast<int64_t>(idf_.size());
  Buffer<int64_t> sizes(texts.docs + 1);
  control.total = texts.bytes();
  parallel_for(threads, tasks, control, [&](int64_t b, int w) {
    auto& worker = workers[static_cast<size_t>(w)];
    if (!worker)
      worker.reset(new Worker{Analyser(options_.rules, characters_, options_.grams),
                              RowMaker(idf_, options_.sublinear, options_.l2, few), Scratch()});
    RowMaker& rows = worker->rows;
    Scratch& scratch = worker->scratch;
    Block& block = blocks[static_cast<size_t>(b)];
    for (int64_t doc = block.begin; doc < block.end; ++doc) {
      worker->analyser.run(texts.arena + texts.offsets[doc], texts.size(doc), terms_,
                           [&](const Probe* probes, uint32_t count) {
                             rows.expect(count);
                             for (uint32_t i = 0; i < count; ++i)
                               if (const Slot* slot = terms_.find(probes[i])) rows.add(slot->id);
                           });
      const int64_t at = scratch.size;
      const int64_t size = rows.finish(scratch.room(static_cast<int64_t>(rows.used())) + at);
      sizes[doc + 1] = size;
      scratch.size += size;
    }
    block.entries = scratch.take();
    control.done += bytes_of(texts, block);
  });
  return assemble(blocks, std::move(sizes), threads, control);
}

}  // namespace lw
