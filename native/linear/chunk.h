// A chunk: the children of one parent and all their weights, as one flat record. What training emits is what disk
// holds and what search reads. A record is found by its place alone, so a level is a pile of records in any order.
//
//   head      16 bytes (ChunkHead)
//   bias      f32 (width)
//   scale     f32 (width), int8 weights only: weight = scale * stored
//   dense     (dense_cols, width) stored weights of the dense features, row-major; padded to 4 bytes
//   directory u32 (buckets + 1): where each bucket starts, in bytes after the directory
//   buckets   feature f is in bucket f >> shift; an empty bucket has no bytes. Of n rows:
//               n - 1, then n low parts of f, sorted   (low_bytes each)
//               n times entries - 1                    (col_bytes each)
//               n rows: fewer than dense_from entries: their columns, then their stored weights;
//                       else stored weights of all `width` children
//   padding   32 zero bytes or more, to a multiple of 8: vector loads may run past the last row
//
// Numbers are little-endian. A look-up touches the directory and one bucket: two cache misses, one if it is empty.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lw {

enum class Weight : uint8_t { f32 = 0, f16 = 1, i8 = 2 };

struct ChunkHead {
  uint32_t rows, buckets, dense_from;
  uint8_t weight, col_bytes, low_bytes, shift;
};
static_assert(sizeof(ChunkHead) == 16);

constexpr int64_t kChunkPadding = 32;

// Used by kernels that are compiled for other instruction sets: must never become a symbol of its own.
#define LW_INLINE __attribute__((always_inline)) inline

LW_INLINE int64_t weight_bytes(Weight w) { return w == Weight::f32 ? 4 : w == Weight::f16 ? 2 : 1; }

// A record taken apart.
struct Chunk {
  ChunkHead head{};
  int64_t width = 0, dense_cols = 0;
  const float* bias = nullptr;
  const float* scale = nullptr;  // int8 only
  const uint8_t* dense = nullptr;
  const uint32_t* directory = nullptr;
  const uint8_t* buckets = nullptr;

  LW_INLINE Weight weight() const { return static_cast<Weight>(head.weight); }
  Chunk() = default;
  Chunk(const uint8_t* record, int64_t width_, int64_t dense_cols_) : width(width_), dense_cols(dense_cols_) {
    __builtin_memcpy(&head, record, sizeof head);
    bias = reinterpret_cast<const float*>(record + sizeof head);
    scale = head.weight == static_cast<uint8_t>(Weight::i8) ? bias + width : nullptr;
    dense = reinterpret_cast<const uint8_t*>(bias + (scale ? 2 : 1) * width);
    const int64_t block = dense_cols * width * weight_bytes(weight());
    directory = reinterpret_cast<const uint32_t*>(dense + (block + 3) / 4 * 4);
    buckets = reinterpret_cast<const uint8_t*>(directory + head.buckets + 1);
  }
};

// The weights of a chunk before they are laid out: entries by feature row, columns within the chunk, rows sorted.
struct ChunkRows {
  std::vector<int32_t> rows;
  std::vector<int64_t> end;  // entries up to and including the row
  std::vector<uint32_t> cols;
  std::vector<float> vals;
  std::vector<float> bias;   // (width): weight times value of the bias feature
  std::vector<float> dense;  // (dense_cols, width)
};

// The record of a chunk; its weights are rounded to `weight`. Throws std::length_error above 4 GB.
std::vector<uint8_t> encode_chunk(ChunkRows&& chunk, int64_t sparse_cols, int64_t dense_cols, Weight weight);

// Is this a sound record of `bytes` bytes? Empty if so, else what is wrong.
std::string check_chunk(const uint8_t* record, int64_t bytes, int64_t width, int64_t sparse_cols, int64_t dense_cols);

// The inverse of encode_chunk, for inspection: weights as they are used.
ChunkRows decode_chunk(const uint8_t* record, int64_t width, int64_t dense_cols);

float half_to_float(uint16_t half);
uint16_t float_to_half(float value);  // nearest, ties to even; too large becomes the largest there is

}  // namespace lw
