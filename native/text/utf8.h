// Bytes from outside: are they UTF-8, and is a text anything but white space?
#pragma once
#include <cstdint>
#include <cstring>
#include <string>

namespace lw {

// Is this UTF-8 as Python's decoder takes it: no overlong forms, no surrogates, nothing above U+10FFFF?
inline bool is_utf8(const uint8_t* at, const uint8_t* end) {
  const auto follows = [](uint8_t c) { return (c & 0xC0) == 0x80; };
  while (at < end) {
    if (end - at >= 8) {
      uint64_t word;
      std::memcpy(&word, at, 8);
      if (!(word & 0x8080808080808080ull)) {
        at += 8;
        continue;
      }
    }
    const uint8_t c = *at;
    if (c < 0x80) {
      ++at;
      continue;
    }
    const int size = c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
    if (size == 0 || end - at < size) return false;
    const uint8_t low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;   // below it: overlong
    const uint8_t high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;  // above it: a surrogate, or too large
    if (at[1] < low || at[1] > high) return false;
    for (int i = 2; i < size; ++i)
      if (!follows(at[i])) return false;
    at += size;
  }
  return true;
}

// Append one character.
inline void append_utf8(uint32_t code, std::string& out) {
  const auto low = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    low(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    low(6), low(0);
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    low(12), low(6), low(0);
  }
}

// Does valid UTF-8 hold nothing but what Python's str.strip removes?
inline bool is_blank(const uint8_t* at, const uint8_t* end) {
  while (at < end) {
    const uint32_t c = *at;
    if (c < 0x80) {
      if (!(c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F))) return false;
      ++at;
    } else if (c == 0xC2 && end - at >= 2) {
      if (at[1] != 0x85 && at[1] != 0xA0) return false;
      at += 2;
    } else if (c >= 0xE1 && c <= 0xE3 && end - at >= 3) {
      const uint32_t code = (c & 0x0F) << 12 | (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu);
      const bool space = code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
                         code == 0x202F || code == 0x205F || code == 0x3000;
      if (!space) return false;
      at += 3;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace lw
