// Python's strings to one UTF-8 arena. Python keeps a text in 1, 2 or 4 bytes a character, as its widest one needs.
#pragma once
#include <vector>

#include "arrays/buffer.h"

namespace lw {

struct StringView {
  const void* data;
  int64_t length;  // characters
  int width;       // bytes of one
  bool ascii;
};

struct Packed {
  Buffer<uint8_t> arena;
  Buffer<int64_t> offsets;
  int64_t bad = -1;  // the first string with a lone surrogate; then there is no arena
};

Packed pack_strings(const std::vector<StringView>& strings, int threads);

}  // namespace lw
