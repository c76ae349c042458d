// Margins of a chunk's children, compiled once per instruction set (score_impl.h).
#pragma once
#include <cstddef>
#include <cstdint>

#include "linear/chunk.h"

namespace lw {

// Margins are written eight at a time.
LW_INLINE int64_t padded_width(int64_t width) { return (width + 7) / 8 * 8; }

// One row of X, and where its margins go: out[0..width), with room for padded_width.
struct Query {
  const int32_t* idx;
  const float* val;
  int64_t n;
  const float* dense;
  float* out;
};

// Scratch of one worker, made when it is first needed. `map`: 4 zero bytes per feature, left zero again; nullptr where
// that would be too much.
struct Workbench {
  void* context;
  void* (*map)(void* context);
  void* (*rows)(void* context, size_t bytes);
};

}  // namespace lw
