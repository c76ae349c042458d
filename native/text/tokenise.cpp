#include "text/tokenise.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "text/unicode_tables.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lw {
namespace {

const uint32_t NOTHING[256] = {};

// The masks of 64 bytes; lowered text goes to `out`.
struct Masks {
  uint64_t word = 0, high = 0;
};

#if defined(__SSE2__)
inline __m128i between(__m128i x, char low, char high) {  // bytes above 127 are negative, hence never inside
  return _mm_and_si128(_mm_cmpgt_epi8(x, _mm_set1_epi8(low - 1)), _mm_cmplt_epi8(x, _mm_set1_epi8(high + 1)));
}

inline Masks classify(const uint8_t* in, uint8_t* out, bool lowercase) {
  const __m128i flip = _mm_set1_epi8(lowercase ? 0x20 : 0);
  Masks masks;
  for (int i = 0; i < 4; ++i) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in) + i);
    const __m128i upper = between(x, 'A', 'Z');
    const __m128i other = _mm_or_si128(between(x, '0', '9'), _mm_cmpeq_epi8(x, _mm_set1_epi8('_')));
    const __m128i word = _mm_or_si128(_mm_or_si128(upper, between(x, 'a', 'z')), other);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out) + i, _mm_or_si128(x, _mm_and_si128(upper, flip)));
    masks.word |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(word))) << (16 * i);
    masks.high |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(x))) << (16 * i);
  }
  return masks;
}
#else
inline Masks classify(const uint8_t* in, uint8_t* out, bool lowercase) {
  Masks masks;
  for (int i = 0; i < 64; ++i) {
    const uint8_t c = in[i], folded = c | 0x20;
    const bool letter = folded >= 'a' && folded <= 'z', digit = c >= '0' && c <= '9';
    out[i] = letter && lowercase ? folded : c;
    masks.word |= static_cast<uint64_t>(letter || digit || c == '_') << i;
    masks.high |= static_cast<uint64_t>(c >> 7) << i;
  }
  return masks;
}
#endif

// Decode one character; its length, or 0 when the bytes are not UTF-8.
inline int decode(const uint8_t* p, const uint8_t* end, uint32_t& code) {
  const uint32_t a = *p;
  const int size = a < 0x80 ? 1 : a < 0xC2 ? 0 : a < 0xE0 ? 2 : a < 0xF0 ? 3 : a < 0xF5 ? 4 : 0;
  if (size == 0 || end - p < size) return 0;
  code = size == 1 ? a : a & (0x7Fu >> size);
  for (int i = 1; i < size; ++i) {
    if ((p[i] & 0xC0) != 0x80) return 0;
    code = code << 6 | (p[i] & 0x3F);
  }
  return size;
}

inline uint32_t count_characters(const uint8_t* p, uint32_t size) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < size; ++i) count += (p[i] & 0xC0) != 0x80;
  return count;
}

uint32_t shifted(const unicode::Run* first, const unicode::Run* last, uint32_t code) {
  auto run = std::upper_bound(first, last, code, [](uint32_t c, const unicode::Run& r) { return c < r.first; });
  if (run == first || (--run)->last < code) return code;
  return code + static_cast<uint32_t>(run->value);
}

}  // namespace

Characters::Characters(bool lowercase, bool strip) : pages_(LIMIT >> 8, NOTHING) {
  for (const auto& run : unicode::kinds) {
    for (uint32_t code = run.first; code <= run.last; ++code) {
      uint32_t to = code;
      if (lowercase) to = shifted(std::begin(unicode::lower), std::end(unicode::lower), to);
      if (strip) to = shifted(std::begin(unicode::strip), std::end(unicode::strip), to);
      set(code, static_cast<uint32_t>(run.value) << 24 | to);
    }
  }
}

void Characters::set(uint32_t code, uint32_t entry) {
  const uint32_t*& page = pages_[code >> 8];
  if (page == NOTHING) page = owned_.emplace_back(new uint32_t[256]()).get();
  const_cast<uint32_t*>(page)[code & 255] = entry;
}

Tokeniser::Tokeniser(const Rules& rules, const Characters& characters)
    : rules_(rules),
      characters_(characters),
      bytes_(new uint8_t[CARRY + ROOM + 256]()),
      edges_(new uint32_t[2 * (CARRY + ROOM + 256)]),
      pieces_(new Piece[CARRY + ROOM + 256]) {}

// Take text until the batch is full or the text ends. A batch ends at any byte; open tokens are carried over.
const uint8_t* Tokeniser::fill(const uint8_t* text, const uint8_t* end) {
  const uint32_t full = size_ + ROOM;
  uint8_t tail[64];
  while (text < end && size_ < full) {
    if (*text >= 0x80) {
      text = character(text, end);
      continue;
    }
    const auto left = static_cast<uint64_t>(end - text);
    if (left >= 64) {
      text += ascii(text, 64);
    } else {
      std::memset(tail, 0, sizeof tail);
      std::memcpy(tail, text, left);
      text += ascii(tail, static_cast<uint32_t>(left));
    }
  }
  return text;
}

// The ASCII bytes at the head of a 64-byte block; returns how many there were (at most `size`).
uint32_t Tokeniser::ascii(const uint8_t* text, uint32_t size) {
  if (in_unspaced_) close_unspaced();
  const Masks masks = classify(text, bytes_.get() + size_, rules_.lowercase);
  if (masks.high) size = std::min(size, static_cast<uint32_t>(std::countr_zero(masks.high)));
  const uint64_t valid = size == 64 ? ~0ull : (1ull << size) - 1;
  const uint64_t word = masks.word & valid;
  uint64_t changes = (word ^ (word << 1 | static_cast<uint64_t>(inside()))) & valid;
  uint32_t* out = edges_.get() + edges_count_;
  for (; changes; changes &= changes - 1) *out++ = size_ + static_cast<uint32_t>(std::countr_zero(changes));
  edges_count_ = static_cast<uint32_t>(out - edges_.get());
  size_ += size;
  return size;
}

// One character above ASCII (or one bad byte).
const uint8_t* Tokeniser::character(const uint8_t* text, const uint8_t* end) {
  uint32_t code = 0;
  const int size = decode(text, end, code);
  const uint32_t entry = size ? characters_(code) : 0;
  const uint32_t kind = entry >> 24, to = entry & 0xFFFFFF;
  if (kind == Characters::SEPARATOR) {
    close();
  } else if (kind == Characters::UNSPACED || (kind == Characters::MARK && in_unspaced_)) {
    if (to) unspaced(to);
  } else if (kind == Characters::WORD) {
    if (in_unspaced_) close_unspaced();
    if (!inside()) edge(size_);
    put(to);
  } else if (inside() && to) {  // a mark continues a word and never starts one
    put(to);
  }
  return text + (size ? size : 1);
}

void Tokeniser::put(uint32_t code) {
  uint8_t* out = bytes_.get() + size_;
  if (code < 0x80) {
    out[0] = static_cast<uint8_t>(code);
    size_ += 1;
    return;
  }
  wide_ = true;
  const int size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (int i = size - 1; i > 0; --i, code >>= 6) out[i] = static_cast<uint8_t>(0x80 | (code & 0x3F));
  out[0] = static_cast<uint8_t>((0xF00u >> size) | code);
  size_ += static_cast<uint32_t>(size);
}

// Scripts without spaces: each character ends a bigram with the one before it.
void Tokeniser::unspaced(uint32_t code) {
  if (inside()) close();
  const uint32_t at = size_;
  put(code);
  if (in_unspaced_) {
    edge(last_ | EXEMPT);
    edge(size_);
  }
  lone_ = !in_unspaced_;
  in_unspaced_ = true;
  last_ = at;
}

void Tokeniser::close() {
  if (inside()) edge(size_);
  if (in_unspaced_) close_unspaced();
}

void Tokeniser::close_unspaced() {
  if (lone_) {
    edge(last_ | EXEMPT);
    edge(size_);
  }
  in_unspaced_ = lone_ = false;
}

// Edges to pieces: drop tokens that are too short or too long.
uint32_t Tokeniser::keep() {
  const uint32_t pairs = edges_count_ / 2;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < pairs; ++i) {
    const uint32_t start = edges_[2 * i] & ~EXEMPT, end = edges_[2 * i + 1], size = end - start;
    const bool exempt = edges_[2 * i] & EXEMPT;
    const bool doubtful = wide_ && size < 4 * rules_.min_chars;  // a character has at most 4 bytes
    const uint32_t length = doubtful ? count_characters(bytes_.get() + start, size) : size;
    pieces_[kept] = {start, end};
    kept += (exempt | (length >= rules_.min_chars)) & (size <= MAX_TOKEN_BYTES);
  }
  return kept;
}

// After a batch: move what is still open to the front of the buffer.
void Tokeniser::carry() {
  const bool open = inside();
  const uint32_t start = open ? edges_[edges_count_ - 1] : in_unspaced_ ? last_ : size_;
  const uint32_t size = std::min(size_ - start, CARRY);
  std::memmove(bytes_.get(), bytes_.get() + start, size);
  size_ = size;
  last_ = edges_count_ = 0;
  if (open) edge(0);
  wide_ = wide_ && size > 0;
}

}  // namespace lw
