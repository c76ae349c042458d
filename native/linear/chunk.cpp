#include "linear/chunk.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace lw {
namespace {

uint32_t load(const uint8_t* p, int bytes) {
  uint32_t v = 0;
  std::memcpy(&v, p, bytes);
  return v;
}

int col_bytes_for(int64_t width) { return width <= 256 ? 1 : width <= 65536 ? 2 : 4; }

// Rows denser than this are kept whole: a quarter of the children, when SIMD over all beats a scatter over some.
uint32_t dense_from_for(int64_t width) { return static_cast<uint32_t>(std::max<int64_t>(1, (width + 3) / 4)); }

// Buckets of 64 features if their directory costs no more than a byte per row, else of 256, else about 8 rows each.
int shift_for(int64_t rows, int64_t sparse_cols) {
  for (int shift = 6; shift <= 8; ++shift)
    if (4 * (sparse_cols >> shift) <= rows) return shift;
  int shift = 8;
  while (shift < 31 && (sparse_cols >> shift) > rows / 8 + 1) ++shift;
  return shift <= 10 ? 8 : shift;
}

int64_t row_bytes(const ChunkHead& h, int64_t width, int64_t entries) {
  const int64_t value = weight_bytes(static_cast<Weight>(h.weight));
  return entries < h.dense_from ? entries * (h.col_bytes + value) : width * value;
}

// How one child's weights are rounded: nearest float16, or nearest multiple of max |w| / 127.
class Rounding {
 public:
  Rounding(const ChunkRows& c, int64_t width, Weight weight) : weight_(weight), scale_(width, 1.0f) {
    if (weight != Weight::i8) return;
    std::vector<float> most(width, 0.0f);
    for (size_t e = 0; e < c.cols.size(); ++e) most[c.cols[e]] = std::max(most[c.cols[e]], std::fabs(c.vals[e]));
    for (size_t j = 0; j < c.dense.size(); ++j) most[j % width] = std::max(most[j % width], std::fabs(c.dense[j]));
    // Below 1e-36 the quotient would lose its digits: such weights become 0.
    for (int64_t l = 0; l < width; ++l) scale_[l] = most[l] > 1e-36f ? most[l] / 127 : 1.0f;
  }
  const std::vector<float>& scale() const { return scale_; }
  // The stored form in the low bytes; 0 means a weight of zero.
  uint32_t stored(float v, int64_t child) const {
    if (weight_ == Weight::f16) {
      const uint16_t half = float_to_half(v);
      return half & 0x7fff ? half : 0;
    }
    if (weight_ == Weight::i8) return static_cast<uint8_t>(static_cast<int8_t>(std::lrint(v / scale_[child])));
    uint32_t bits;
    std::memcpy(&bits, &v, 4);
    return v == 0 ? 0 : bits;
  }

 private:
  Weight weight_;
  std::vector<float> scale_;
};

class Writer {
 public:
  Writer(ChunkRows&& c, int64_t sparse_cols, int64_t dense_cols, Weight weight)
      : c_(std::move(c)),
        width_(static_cast<int64_t>(c_.bias.size())),
        sparse_cols_(sparse_cols),
        dense_cols_(dense_cols),
        value_(static_cast<int>(weight_bytes(weight))),
        rounding_(c_, width_, weight) {
    drop_zeros();
    head_.weight = static_cast<uint8_t>(weight);
    head_.rows = static_cast<uint32_t>(c_.rows.size());
    head_.col_bytes = static_cast<uint8_t>(col_bytes_for(width_));
    head_.dense_from = dense_from_for(width_);
    head_.shift = static_cast<uint8_t>(shift_for(head_.rows, sparse_cols));
    head_.low_bytes = static_cast<uint8_t>(head_.shift <= 8 ? 1 : head_.shift <= 16 ? 2 : 4);
    head_.buckets = static_cast<uint32_t>((sparse_cols_ + (int64_t{1} << head_.shift) - 1) >> head_.shift);
  }

  std::vector<uint8_t> write() {
    put(&head_, sizeof head_);
    put(c_.bias.data(), 4 * width_);
    if (head_.weight == static_cast<uint8_t>(Weight::i8)) put(rounding_.scale().data(), 4 * width_);
    for (int64_t j = 0; j < dense_cols_ * width_; ++j) put_number(rounding_.stored(c_.dense[j], j % width_), value_);
    out_.resize((out_.size() + 3) / 4 * 4);
    write_buckets();
    out_.resize((out_.size() + kChunkPadding + 7) / 8 * 8);
    return std::move(out_);
  }

 private:
  // Weights that rounding made zero are gone, and rows without any.
  void drop_zeros() {
    size_t rows = 0, kept = 0, e = 0;
    for (size_t r = 0; r < c_.rows.size(); ++r) {
      const size_t before = kept;
      for (; e < static_cast<size_t>(c_.end[r]); ++e)
        if (rounding_.stored(c_.vals[e], c_.cols[e])) c_.cols[kept] = c_.cols[e], c_.vals[kept++] = c_.vals[e];
      if (kept > before) c_.rows[rows] = c_.rows[r], c_.end[rows++] = static_cast<int64_t>(kept);
    }
    c_.rows.resize(rows), c_.end.resize(rows), c_.cols.resize(kept), c_.vals.resize(kept);
  }

  void put(const void* p, int64_t bytes) {
    const auto* b = static_cast<const uint8_t*>(p);
    out_.insert(out_.end(), b, b + bytes);
  }
  void put_number(uint32_t v, int bytes) { put(&v, bytes); }

  int64_t first(size_t row) const { return row ? c_.end[row - 1] : 0; }

  void write_buckets() {
    const size_t directory = out_.size();
    out_.resize(directory + 4 * (head_.buckets + size_t{1}));
    const size_t start = out_.size();
    size_t row = 0;
    for (uint32_t b = 0; b <= head_.buckets; ++b) {
      if (out_.size() - start > std::numeric_limits<uint32_t>::max() - size_t{1 << 20})
        throw std::length_error("a chunk of weights is larger than 4 GB");
      const uint32_t at = static_cast<uint32_t>(out_.size() - start);
      std::memcpy(out_.data() + directory + 4 * size_t{b}, &at, 4);
      size_t last = row;
      while (last < c_.rows.size() && static_cast<uint32_t>(c_.rows[last]) >> head_.shift == b) ++last;
      if (last > row) write_bucket(row, last);
      row = last;
    }
  }

  void write_bucket(size_t row, size_t last) {
    const uint32_t mask = (uint32_t{1} << head_.shift) - 1;
    put_number(static_cast<uint32_t>(last - row - 1), head_.low_bytes);
    for (size_t r = row; r < last; ++r) put_number(static_cast<uint32_t>(c_.rows[r]) & mask, head_.low_bytes);
    for (size_t r = row; r < last; ++r) put_number(static_cast<uint32_t>(c_.end[r] - first(r) - 1), head_.col_bytes);
    for (size_t r = row; r < last; ++r) write_row(r);
  }

  void write_row(size_t r) {
    const int64_t begin = first(r), end = c_.end[r];
    if (end - begin < static_cast<int64_t>(head_.dense_from)) {
      for (int64_t e = begin; e < end; ++e) put_number(c_.cols[e], head_.col_bytes);
      for (int64_t e = begin; e < end; ++e) put_number(rounding_.stored(c_.vals[e], c_.cols[e]), value_);
      return;
    }
    int64_t e = begin;
    for (int64_t child = 0; child < width_; ++child) {
      const bool here = e < end && c_.cols[e] == static_cast<uint32_t>(child);
      put_number(here ? rounding_.stored(c_.vals[e], child) : 0, value_);
      e += here;
    }
  }

  ChunkRows c_;
  int64_t width_, sparse_cols_, dense_cols_;
  int value_;
  Rounding rounding_;
  ChunkHead head_{};
  std::vector<uint8_t> out_;
};

// Walks the rows of a sound record, or finds where it is not.
class Reader {
 public:
  Reader(const uint8_t* record, int64_t width, int64_t dense_cols) : c_(record, width, dense_cols) {}

  float weight(const uint8_t* p, int64_t child) const {
    if (c_.weight() == Weight::f16) return half_to_float(static_cast<uint16_t>(load(p, 2)));
    if (c_.weight() == Weight::i8) return c_.scale[child] * static_cast<float>(static_cast<int8_t>(*p));
    float v;
    std::memcpy(&v, p, 4);
    return v;
  }

  bool finite(const uint8_t* p, int64_t count) const {
    const int size = static_cast<int>(weight_bytes(c_.weight()));
    for (int64_t k = 0; k < count; ++k) {
      if (size == 2 && (load(p + 2 * k, 2) & 0x7c00) == 0x7c00) return false;
      if (size == 4 && (load(p + 4 * k, 4) & 0x7f800000) == 0x7f800000) return false;
    }
    return true;
  }

  // One bucket of `bytes` bytes: rows(row, entries, columns or nullptr, weights) for each; false if it is unsound.
  template <typename Rows>
  bool bucket(uint32_t b, int64_t sparse_cols, Rows&& rows) const {
    const ChunkHead& h = c_.head;
    const uint8_t* p = c_.buckets + c_.directory[b];
    const int64_t bytes = c_.directory[b + 1] - int64_t{c_.directory[b]};
    if (bytes == 0) return true;
    if (bytes < h.low_bytes) return false;
    const int64_t n = int64_t{load(p, h.low_bytes)} + 1, start = h.low_bytes * (n + 1) + h.col_bytes * n;
    if (start > bytes) return false;
    const uint8_t* lows = p + h.low_bytes;
    const uint8_t* counts = lows + h.low_bytes * n;
    int64_t at = start, before = -1;
    for (int64_t r = 0; r < n; ++r) {
      const int64_t low = load(lows + r * h.low_bytes, h.low_bytes);
      const int64_t feature = (int64_t{b} << h.shift) + low,
                    count = int64_t{load(counts + r * h.col_bytes, h.col_bytes)} + 1;
      const int64_t size = row_bytes(h, c_.width, count);
      if (low <= before || low >> h.shift || feature >= sparse_cols || count > c_.width || at + size > bytes)
        return false;
      const bool whole = count >= h.dense_from;
      if (!rows(feature, whole ? c_.width : count, whole ? nullptr : p + at,
                p + at + (whole ? 0 : count * h.col_bytes)))
        return false;
      before = low, at += size;
    }
    return at == bytes;
  }

  bool columns_sound(const uint8_t* cols, int64_t count) const {
    int64_t before = -1;
    for (int64_t k = 0; cols && k < count; ++k) {
      const int64_t col = load(cols + k * c_.head.col_bytes, c_.head.col_bytes);
      if (col <= before || col >= c_.width) return false;
      before = col;
    }
    return true;
  }

  const Chunk& chunk() const { return c_; }

 private:
  Chunk c_;
};

bool head_sound(const ChunkHead& h, int64_t width, int64_t sparse_cols) {
  if (h.weight > 2 || h.col_bytes != col_bytes_for(width) || h.shift > 31) return false;
  if (h.low_bytes != (h.shift <= 8 ? 1 : h.shift <= 16 ? 2 : 4)) return false;
  return h.dense_from >= 1 && h.buckets == ((sparse_cols + (int64_t{1} << h.shift) - 1) >> h.shift);
}

}  // namespace

std::vector<uint8_t> encode_chunk(ChunkRows&& chunk, int64_t sparse_cols, int64_t dense_cols, Weight weight) {
  return Writer(std::move(chunk), sparse_cols, dense_cols, weight).write();
}

std::string check_chunk(const uint8_t* record, int64_t bytes, int64_t width, int64_t sparse_cols, int64_t dense_cols) {
  ChunkHead h;
  if (bytes < static_cast<int64_t>(sizeof h) + kChunkPadding || bytes % 8) return "it is cut short";
  std::memcpy(&h, record, sizeof h);
  if (!head_sound(h, width, sparse_cols)) return "its head does not fit the model";
  const int64_t value = weight_bytes(static_cast<Weight>(h.weight)), scales = h.weight == 2 ? 2 : 1;
  const int64_t dense = sizeof h + 4 * scales * width, directory = dense + (dense_cols * width * value + 3) / 4 * 4;
  const int64_t start = directory + 4 * (int64_t{h.buckets} + 1);
  if (start + kChunkPadding > bytes) return "it is cut short";
  const Reader reader(record, width, dense_cols);
  const Chunk& c = reader.chunk();
  for (int64_t j = 0; j < scales * width; ++j)
    if (!std::isfinite(c.bias[j])) return "a bias or scale is not finite";
  if (!reader.finite(c.dense, dense_cols * width)) return "a weight is not finite";
  if (c.directory[0] != 0) return "its directory does not begin at 0";
  for (uint32_t b = 0; b < h.buckets; ++b)
    if (c.directory[b] > c.directory[b + 1]) return "its directory is out of order";
  const int64_t end = start + c.directory[h.buckets];
  if ((end + kChunkPadding + 7) / 8 * 8 != bytes) return "it does not end where its directory does";
  for (int64_t p = end; p < bytes; ++p)
    if (record[p]) return "its padding is not zero";
  int64_t rows = 0;
  for (uint32_t b = 0; b < h.buckets; ++b)
    if (!reader.bucket(b, sparse_cols, [&](int64_t, int64_t count, const uint8_t* cols, const uint8_t* vals) {
          ++rows;
          return reader.columns_sound(cols, count) && reader.finite(vals, count);
        }))
      return "a feature row does not fit";
  return rows == h.rows ? "" : "its rows do not add up";
}

ChunkRows decode_chunk(const uint8_t* record, int64_t width, int64_t dense_cols) {
  const Reader reader(record, width, dense_cols);
  const Chunk& c = reader.chunk();
  const int64_t value = weight_bytes(c.weight());
  ChunkRows out;
  out.bias.assign(c.bias, c.bias + width);
  for (int64_t j = 0; j < dense_cols * width; ++j) out.dense.push_back(reader.weight(c.dense + j * value, j % width));
  for (uint32_t b = 0; b < c.head.buckets; ++b)
    reader.bucket(b, int64_t{1} << 31, [&](int64_t feature, int64_t count, const uint8_t* cols, const uint8_t* vals) {
      out.rows.push_back(static_cast<int32_t>(feature));
      for (int64_t k = 0; k < count; ++k) {
        const uint32_t col = cols ? load(cols + k * c.head.col_bytes, c.head.col_bytes) : static_cast<uint32_t>(k);
        const float w = reader.weight(vals + k * value, col);
        if (w != 0) out.cols.push_back(col), out.vals.push_back(w);
      }
      out.end.push_back(static_cast<int64_t>(out.cols.size()));
      return true;
    });
  return out;
}

float half_to_float(uint16_t half) {
  const float sign = half & 0x8000 ? -1.0f : 1.0f;
  const int exponent = (half >> 10) & 31, mantissa = half & 0x3ff;
  return sign * (exponent ? std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25)
                          : std::ldexp(static_cast<float>(mantissa), -24));
}

uint16_t float_to_half(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  bits &= 0x7fffffff;
  if (bits >= 0x477ff000) return sign | 0x7bff;  // 65520 and more
  if (bits < 0x38800000)                         // below 2^-14: multiples of 2^-24
    return sign | static_cast<uint16_t>(std::lrint(std::ldexp(std::fabs(value), 24)));
  bits += 0xfff + (bits >> 13 & 1);
  return sign | static_cast<uint16_t>((bits - (112u << 23)) >> 13);
}

}  // namespace lw
