#include "text/sketch.h"

#include <algorithm>
#include <cstring>

#include "text/blocks.h"

namespace lw {
namespace {

constexpr uint64_t START = 0x9E3779B97F4A7C15ull, STEP = 0xD6E8FEB86659FD93ull, END = 0xA0761D6478BD642Full;
constexpr uint64_t PLACES[SHINGLE] = {0x8EBC6AF09C88C6E3ull, 0x589965CC75374CC3ull, 0x1D8E4E27C47D124Full};

inline uint64_t fold(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t first_bytes(const uint8_t* bytes, uint32_t size) {
  uint64_t word;  // readable past its end
  std::memcpy(&word, bytes, 8);
  return size >= 8 ? word : word & ((1ull << 8 * size) - 1);
}

inline uint64_t hash(const uint8_t* bytes, uint32_t size) {
  uint64_t h = START ^ size;
  for (;; bytes += 8, size -= 8) {
    h = fold(h ^ first_bytes(bytes, size), STEP);
    if (size <= 8) return h ^ END;
  }
}

bool is_letter(uint8_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

// `</p` or `&amp;`, `&#39`, at this byte.
bool is_markup(const uint8_t* p, const uint8_t* end) {
  if (end - p < 3) return false;
  if (*p == '<') return p[1] == '/' && is_letter(p[2]);
  if (p[1] == '#') return p[2] >= '0' && p[2] <= '9';
  const uint8_t* q = p + 1;
  while (q < end && q - p < 8 && is_letter(*q)) ++q;
  return q < end && *q == ';' && q - p >= 3;
}

bool holds_markup(const uint8_t* begin, const uint8_t* end, uint8_t opening) {
  for (const uint8_t* p = begin; p < end; ++p) {
    p = static_cast<const uint8_t*>(std::memchr(p, opening, static_cast<size_t>(end - p)));
    if (!p) return false;
    if (is_markup(p, end)) return true;
  }
  return false;
}

// Ã or Â before a character of U+0080 to U+00BF, or â before €.
bool is_twice(const uint8_t* p, const uint8_t* end) {
  if (*p != 0xC3) return false;
  if (end - p >= 4 && (p[1] == 0x82 || p[1] == 0x83) && p[2] == 0xC2) return true;
  return end - p >= 5 && p[1] == 0xA2 && p[2] == 0xE2 && p[3] == 0x82 && p[4] == 0xAC;
}

struct Bytes {
  int64_t characters = 0;
  uint8_t signs = 0;
};

Bytes look_at(const uint8_t* text, int64_t size) {
  int64_t inner = 0;
  uint8_t control = 0;
  for (int64_t i = 0; i < size; ++i) {  // no branches: many bytes at once
    const uint8_t c = text[i];
    inner += (c & 0xC0) == 0x80;
    control |= (c < 0x20) & (c != '\t') & (c != '\n') & (c != '\r') & (c != '\f');
    control |= c == 0x7F;
  }
  const uint8_t* const end = text + size;
  Bytes found{size - inner, control ? uint8_t{CONTROL} : uint8_t{0}};
  if (holds_markup(text, end, '<') || holds_markup(text, end, '&')) found.signs |= MARKUP;
  if (inner) {
    for (const uint8_t* p = text; p < end; ++p) {
      if (is_twice(p, end)) found.signs |= TWICE;
      if (*p == 0xEF && end - p >= 3 && p[1] == 0xBF && p[2] == 0xBD) found.signs |= REPLACED;
    }
  }
  return found;
}

// The words of one document after the other. One per worker.
class Sketcher {
 public:
  explicit Sketcher(const Characters& characters) : tokeniser_({true, false, 1}, characters) {}

  void run(const TextView& texts, int64_t doc, Sketches& out, const Control& control) {
    uint32_t* const slots = out.slots.data() + doc * SLOTS;
    std::fill(slots, slots + SLOTS, NO_VALUE);
    uint64_t digest = START, before = 0, last = 0;
    int64_t words = 0;
    const uint8_t* const text = texts.arena + texts.offsets[doc];
    tokeniser_.run(text, texts.size(doc), [&](const uint8_t* bytes, const Piece* pieces, uint32_t count) {
      control.check();
      for (uint32_t i = 0; i < count; ++i) {
        const uint64_t word = hash(bytes + pieces[i].start, pieces[i].end - pieces[i].start);
        digest = fold(digest ^ word, STEP);
        if (++words >= SHINGLE) {
          const uint64_t shingle = fold(before * PLACES[0] + last * PLACES[1] + word * PLACES[2], STEP);
          uint32_t& slot = slots[shingle >> 58];
          slot = std::min({slot, static_cast<uint32_t>(shingle), NO_VALUE - 1});
        }
        before = last;
        last = word;
      }
    });
    if (words >= SHINGLE) fill_empty(slots);
    const Bytes seen = look_at(text, texts.size(doc));
    out.words[doc] = static_cast<int32_t>(std::min<int64_t>(words, INT32_MAX));
    out.characters[doc] = static_cast<int32_t>(std::min<int64_t>(seen.characters, INT32_MAX));
    out.signs[doc] = seen.signs;
    out.digests[doc] = digest;
  }

 private:
  // An empty slot takes the value of one that is not, found by a fixed sequence of its own: two documents that have
  // the same filled slots then agree in it as often as in the others (Shrivastava, Optimal Densification, 2017).
  static void fill_empty(uint32_t* slots) {
    uint32_t filled[SLOTS];
    std::copy(slots, slots + SLOTS, filled);
    for (int64_t slot = 0; slot < SLOTS; ++slot) {
      for (uint64_t tries = 0; slots[slot] == NO_VALUE; ++tries)
        slots[slot] = filled[fold(static_cast<uint64_t>(slot) + 1 + SLOTS * tries, STEP) >> 58];
    }
  }

  Tokeniser tokeniser_;
};

}  // namespace

Sketches sketch(const TextView& texts, int threads, Control& control) {
  const int64_t n = texts.docs;
  Sketches out{Buffer<int32_t>(n), Buffer<int32_t>(n), Buffer<uint8_t>(n), Buffer<uint64_t>(n),
               Buffer<uint32_t>(n * SLOTS)};
  const Characters characters(true, false);
  const std::vector<DocBlock> blocks = cut(texts);
  const auto tasks = static_cast<int64_t>(blocks.size());
  std::vector<Sketcher> workers;
  for (int64_t w = 0; w < std::clamp<int64_t>(tasks, 1, threads); ++w) workers.emplace_back(characters);
  control.total = n;
  parallel_for(threads, tasks, control, [&](int64_t b, int worker) {
    const DocBlock& block = blocks[static_cast<size_t>(b)];
    for (int64_t doc = block.begin; doc < block.end; ++doc)
      workers[static_cast<size_t>(worker)].run(texts, doc, out, control);
    control.done += block.end - block.begin;
  });
  return out;
}

}  // namespace lw
