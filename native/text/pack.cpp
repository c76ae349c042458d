#include "text/pack.h"

#include <algorithm>
#include <cstring>

#include "arrays/parallel.h"

namespace lw {
namespace {

// Bytes of the characters in UTF-8, or -1 when there is a surrogate. No branch per character: this is vectorised.
template <typename C>
int64_t utf8_size(const C* text, int64_t length) {
  int64_t size = length;
  for (int64_t begin = 0; begin < length; begin += 4096) {
    uint32_t extra = 0, surrogates = 0;
    for (int64_t i = begin, end = std::min(length, begin + 4096); i < end; ++i) {
      const uint32_t c = text[i];
      extra += (c >= 0x80) + (c >= 0x800) + (c >= 0x10000);
      surrogates += (c >> 11) == 0x1B;
    }
    if (surrogates) return -1;
    size += extra;
  }
  return size;
}

template <typename C>
uint8_t* encode_one(C character, uint8_t* out) {
  auto c = static_cast<uint32_t>(character);
  if (c < 0x80) {
    *out = static_cast<uint8_t>(c);
    return out + 1;
  }
  const int size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (int i = size - 1; i > 0; --i, c >>= 6) out[i] = static_cast<uint8_t>(0x80 | (c & 0x3F));
  out[0] = static_cast<uint8_t>((0xF00u >> size) | c);
  return out + size;
}

// Stretches of ASCII go 16 characters at a time.
template <typename C>
void encode(const C* text, int64_t length, uint8_t* out) {
  constexpr int64_t STEP = 16;
  int64_t i = 0;
  while (i < length) {
    if (i + STEP <= length) {
      C any = 0;
      for (int64_t j = 0; j < STEP; ++j) any |= text[i + j];
      if (any < 0x80) {
        for (int64_t j = 0; j < STEP; ++j) out[j] = static_cast<uint8_t>(text[i + j]);
        i += STEP, out += STEP;
        continue;
      }
    }
    const int64_t end = std::min(length, i + STEP);
    while (i < end) out = encode_one(text[i++], out);
  }
}

int64_t size_of(const StringView& s) {
  if (s.ascii) return s.length;
  if (s.width == 1) return utf8_size(static_cast<const uint8_t*>(s.data), s.length);
  if (s.width == 2) return utf8_size(static_cast<const uint16_t*>(s.data), s.length);
  return utf8_size(static_cast<const uint32_t*>(s.data), s.length);
}

void write(const StringView& s, uint8_t* out) {
  if (s.ascii) {
    if (s.length) std::memcpy(out, s.data, static_cast<size_t>(s.length));
  } else if (s.width == 1) {
    encode(static_cast<const uint8_t*>(s.data), s.length, out);
  } else if (s.width == 2) {
    encode(static_cast<const uint16_t*>(s.data), s.length, out);
  } else {
    encode(static_cast<const uint32_t*>(s.data), s.length, out);
  }
}

}  // namespace

Packed pack_strings(const std::vector<StringView>& strings, int threads) {
  constexpr int64_t BLOCK = 256;
  const auto n = static_cast<int64_t>(strings.size());
  Packed packed{Buffer<uint8_t>(0), Buffer<int64_t>(n + 1), -1};
  Control control;
  auto each = [&](auto&& body) {
    parallel_for(threads, (n + BLOCK - 1) / BLOCK, control, [&](int64_t block, int) {
      for (int64_t i = block * BLOCK, end = std::min(n, i + BLOCK); i < end; ++i)
        body(i, strings[static_cast<size_t>(i)]);
    });
  };
  each([&](int64_t i, const StringView& s) { packed.offsets[i + 1] = size_of(s); });
  packed.offsets[0] = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (packed.offsets[i + 1] < 0) {
      packed.bad = i;
      return packed;
    }
    packed.offsets[i + 1] += packed.offsets[i];
  }
  packed.arena = Buffer<uint8_t>(packed.offsets[n]);
  each([&](int64_t i, const StringView& s) { write(s, packed.arena.data() + packed.offsets[i]); });
  return packed;
}

}  // namespace lw
