// Many strings as one UTF-8 arena with offsets: label names, of which there may be millions.
#pragma once
#include <cstdint>
#include <string_view>

namespace lw {

// Views only; string i is the bytes offsets[i] to offsets[i + 1].
struct Names {
  const uint8_t* arena = nullptr;
  const int64_t* offsets = nullptr;
  int64_t size = 0;

  std::string_view operator[](int64_t i) const {
    return {reinterpret_cast<const char*>(arena) + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i])};
  }
};

// Do the offsets begin with 0, never fall, and end at `bytes`?
bool in_order(const Names& names, int64_t bytes);

// A string that an earlier one equals, or -1. One pass if they stand in order: by bytes, or by length first as numbers.
int64_t repeated(const Names& names);

}  // namespace lw
