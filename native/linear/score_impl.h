// Included by kernels_<isa>.cpp inside namespace lw::<isa>: the margins of a chunk's children for one or many queries.
// No standard library templates here, as in kernels_impl.h.
//
// A query asks a chunk for each of its features. Few queries look rows up in the chunk's own directory; many share a
// map from feature to row, filled once and emptied again. Either way a row is added by the same function and a query's
// features come in the same order, so the bits do not depend on how queries were grouped.

struct F32 {
  static constexpr int bytes = 4;
  static inline V load8(const uint8_t* p) {
    V v;
    __builtin_memcpy(&v, p, 32);
    return v;
  }
};

struct F16 {
  static constexpr int bytes = 2;
  static inline V load8(const uint8_t* p) {
#ifdef __F16C__
    typedef short H __attribute__((vector_size(16)));
    H h;
    __builtin_memcpy(&h, p, 16);
    return __builtin_ia32_vcvtph2ps256(h);
#else
    V v;
    for (int l = 0; l < 8; ++l) {
      uint16_t h;
      __builtin_memcpy(&h, p + 2 * l, 2);
      const uint32_t exponent = h >> 10 & 31, mantissa = h & 0x3ff, sign = static_cast<uint32_t>(h & 0x8000) << 16;
      const uint32_t bits = sign | ((exponent + 112) << 23 | mantissa << 13);
      float f;
      __builtin_memcpy(&f, &bits, 4);
      if (!exponent) f = (sign ? -1.0f : 1.0f) * static_cast<float>(mantissa) * 5.9604644775390625e-8f;
      v[l] = f;
    }
    return v;
#endif
  }
};

struct I8 {
  static constexpr int bytes = 1;
  static inline V load8(const uint8_t* p) {
#ifdef __AVX2__
    long long bits;
    __builtin_memcpy(&bits, p, 8);
    typedef long long Q __attribute__((vector_size(16)));
    typedef char B __attribute__((vector_size(16)));
    return __builtin_convertvector(reinterpret_cast<I>(__builtin_ia32_pmovsxbd256(reinterpret_cast<B>(Q{bits, 0}))), V);
#else
    typedef int8_t B __attribute__((vector_size(8)));
    B b;
    __builtin_memcpy(&b, p, 8);
    return __builtin_convertvector(b, V);
#endif
  }
};

#ifdef __AVX2__
typedef uint8_t B32 __attribute__((vector_size(32)));

static inline B32 load_bytes(const uint8_t* p) {
  B32 v;
  __builtin_memcpy(&v, p, 32);
  return v;
}
static inline B32 splat_bytes(uint8_t x) { return B32{} + x; }
static inline B32 max_bytes(B32 a, B32 b) { return a > b ? a : b; }
typedef char S32 __attribute__((vector_size(32)));
template <typename Mask>
static inline uint32_t bits_of_bytes(Mask mask) {
  return static_cast<uint32_t>(__builtin_ia32_pmovmskb256(reinterpret_cast<S32>(mask)));
}
// Byte l is all ones where bit l is set.
static inline B32 bytes_of_bits(uint32_t bits) {
  typedef uint32_t U8x4 __attribute__((vector_size(32)));
  const B32 spread = __builtin_shuffle(reinterpret_cast<B32>(U8x4{} + bits),
                                       B32{0,  0,  0,  0,  0,  0,  0,  0,  1,  1,  1,  1,  1,  1,  1,  1,
                                           18, 18, 18, 18, 18, 18, 18, 18, 19, 19, 19, 19, 19, 19, 19, 19});
  const B32 bit = B32{1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128,
                      1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  return reinterpret_cast<B32>((spread & bit) == bit);
}
static inline int64_t sum_bytes(B32 v) {
  typedef long long Q4 __attribute__((vector_size(32)));
  const Q4 sums = reinterpret_cast<Q4>(__builtin_ia32_psadbw256(reinterpret_cast<S32>(v), S32{}));
  return sums[0] + sums[1] + sums[2] + sums[3];
}
#endif

template <typename T>
static inline uint32_t number(const uint8_t* p, int64_t k) {
  T v;
  __builtin_memcpy(&v, p + k * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}

// out += x * row, all children, eight at a time: the last loads run into what follows, the last store into out's slack.
template <typename W>
static inline void add_whole(const uint8_t* row, int64_t width, float x, float* out) {
  for (int64_t j = 0; j < width; j += 8) {
    V o;
    __builtin_memcpy(&o, out + j, 32);
    o += splat(x) * W::load8(row + j * W::bytes);
    __builtin_memcpy(out + j, &o, 32);
  }
}

template <typename W, typename C>
__attribute__((noinline)) static void add_row(const uint8_t* row, uint32_t entries, const Chunk& c, float x,
                                              float* out) {
  if (entries >= c.head.dense_from) return add_whole<W>(row, c.width, x, out);
  const uint8_t* vals = row + entries * sizeof(C);
  for (uint32_t k = 0; k < entries; k += 8) {
    const V part = splat(x) * W::load8(vals + static_cast<int64_t>(k) * W::bytes);
    const uint32_t some = entries - k < 8 ? entries - k : 8;
    for (uint32_t l = 0; l < some; ++l) out[number<C>(row, k + l)] += part[l];
  }
}

struct RowAt {
  uint32_t at, entries;  // bytes after the directory; entries 0: no such row
};

template <typename W, typename C>
static inline int64_t bytes_of(const Chunk& c, uint32_t entries) {
  return entries < c.head.dense_from ? entries * static_cast<int64_t>(sizeof(C) + W::bytes) : c.width * W::bytes;
}

// The place of `low` among n sorted numbers, or n.
template <typename L>
static inline int64_t position(const uint8_t* lows, int64_t n, uint32_t low) {
#ifdef __AVX2__
  if (sizeof(L) == 1) {  // loads may run past the bucket, never past the record's padding
    const B32 wanted = splat_bytes(static_cast<uint8_t>(low));
    for (int64_t r = 0; r < n; r += 32) {
      const uint32_t hits = bits_of_bytes(load_bytes(lows + r) == wanted);
      if (hits) {
        const int64_t found = r + __builtin_ctz(hits);
        return found < n ? found : n;
      }
    }
    return n;
  }
#endif
  int64_t r = 0;
  for (int64_t step = n; step > 0;) {  // first number >= low
    const int64_t half = step / 2;
    if (number<L>(lows, r + half) < low)
      r += half + 1, step -= half + 1;
    else
      step = half;
  }
  return r < n && number<L>(lows, r) == low ? r : n;
}

// Bytes of the first r rows of a bucket.
template <typename W, typename C>
static inline int64_t bytes_before(const Chunk& c, const uint8_t* counts, int64_t r) {
  int64_t at = 0, k = 0;
#ifdef __AVX2__
  if (sizeof(C) == 1) {
    const int64_t unit = 1 + W::bytes, whole = c.width * W::bytes;
    const B32 last = splat_bytes(static_cast<uint8_t>(c.head.dense_from - 1 < 255 ? c.head.dense_from - 1 : 255));
    const bool any_whole = c.head.dense_from <= 256;
    for (; k < r; k += 32) {
      const uint32_t inside = r - k >= 32 ? ~0u : (1u << (r - k)) - 1;
      const B32 n = load_bytes(counts + k);
      const uint32_t dense = any_whole ? bits_of_bytes(max_bytes(n, last) == n) & inside : 0;
      const uint32_t sparse = inside & ~dense;
      at += __builtin_popcount(dense) * whole +
            (sum_bytes(n & bytes_of_bits(sparse)) + __builtin_popcount(sparse)) * unit;
    }
    return at;
  }
#endif
  for (; k < r; ++k) at += bytes_of<W, C>(c, number<C>(counts, k) + 1);
  return at;
}

// Where feature f has its row.
template <typename W, typename C, typename L>
static inline RowAt find_row(const Chunk& c, uint32_t f) {
  const uint32_t b = f >> c.head.shift, begin = c.directory[b];
  if (begin == c.directory[b + 1]) return {0, 0};
  const uint8_t* lows = c.buckets + begin + sizeof(L);
  const int64_t n = static_cast<int64_t>(number<L>(lows - sizeof(L), 0)) + 1;
  const int64_t r = position<L>(lows, n, f & ((uint32_t{1} << c.head.shift) - 1));
  if (r == n) return {0, 0};
  const uint8_t* counts = lows + n * static_cast<int64_t>(sizeof(L));
  const int64_t start = n * static_cast<int64_t>(sizeof(L) + sizeof(C)) + static_cast<int64_t>(sizeof(L));
  return {begin + static_cast<uint32_t>(start + bytes_before<W, C>(c, counts, r)), number<C>(counts, r) + 1};
}

// Look-ups of a few features are kept in flight, so that their cache misses overlap.
template <typename W, typename C, typename L>
static void look_up(const Chunk& c, const Query& q) {
  constexpr int64_t kAhead = 16;
  RowAt found[kAhead];
  for (int64_t p = 0; p < q.n; p += kAhead) {
    const int64_t some = q.n - p < kAhead ? q.n - p : kAhead;
    for (int64_t k = 0; k < some; ++k)
      __builtin_prefetch(c.buckets + c.directory[static_cast<uint32_t>(q.idx[p + k]) >> c.head.shift]);
    for (int64_t k = 0; k < some; ++k) {
      found[k] = find_row<W, C, L>(c, static_cast<uint32_t>(q.idx[p + k]));
      __builtin_prefetch(c.buckets + found[k].at);
    }
    for (int64_t k = 0; k < some; ++k)
      if (found[k].entries) add_row<W, C>(c.buckets + found[k].at, found[k].entries, c, q.val[p + k], q.out);
  }
}

// Every row's place, and for every feature which row it has (from 1; 0 = none).
template <typename W, typename C, typename L, typename M>
static void fill(const Chunk& c, M* map, RowAt* rows) {
  uint32_t row = 0;
  for (uint32_t b = 0; b < c.head.buckets; ++b) {
    const uint32_t begin = c.directory[b];
    if (begin == c.directory[b + 1]) continue;
    const uint8_t* lows = c.buckets + begin + sizeof(L);
    const int64_t n = static_cast<int64_t>(number<L>(lows - sizeof(L), 0)) + 1;
    const uint8_t* counts = lows + n * static_cast<int64_t>(sizeof(L));
    int64_t at = begin + n * static_cast<int64_t>(sizeof(L) + sizeof(C)) + static_cast<int64_t>(sizeof(L));
    for (int64_t r = 0; r < n; ++r) {
      const uint32_t entries = number<C>(counts, r) + 1;
      rows[++row] = {static_cast<uint32_t>(at), entries};
      map[(b << c.head.shift) + number<L>(lows, r)] = static_cast<M>(row);
      at += bytes_of<W, C>(c, entries);
    }
  }
}

template <typename L, typename M>
static void empty(const Chunk& c, M* map) {
  for (uint32_t b = 0; b < c.head.buckets; ++b) {
    const uint32_t begin = c.directory[b];
    if (begin == c.directory[b + 1]) continue;
    const uint8_t* lows = c.buckets + begin + sizeof(L);
    const int64_t n = static_cast<int64_t>(number<L>(lows - sizeof(L), 0)) + 1;
    for (int64_t r = 0; r < n; ++r) map[(b << c.head.shift) + number<L>(lows, r)] = 0;
  }
}

template <typename W, typename C, typename L, typename M>
static void score_mapped(const Chunk& c, const Query* queries, int64_t count, M* map, RowAt* rows) {
  fill<W, C, L>(c, map, rows);
  for (int64_t i = 0; i < count; ++i) {
    const Query& q = queries[i];
    for (int64_t p = 0; p < q.n; ++p) {
      const M row = map[q.idx[p]];
      if (row) add_row<W, C>(c.buckets + rows[row].at, rows[row].entries, c, q.val[p], q.out);
    }
  }
  empty<L>(c, map);
}

template <typename W, typename C, typename L>
static void score_rows(const Chunk& c, const Query* queries, int64_t count, const Workbench& bench) {
  int64_t asked = 0;
  for (int64_t i = 0; i < count; ++i) asked += queries[i].n;
  const bool few = count == 1 || asked * 2 < static_cast<int64_t>(c.head.rows) + c.head.buckets;
  void* map = few ? nullptr : bench.map(bench.context);
  if (!map) {
    for (int64_t i = 0; i < count; ++i) look_up<W, C, L>(c, queries[i]);
    return;
  }
  RowAt* rows = static_cast<RowAt*>(bench.rows(bench.context, (c.head.rows + size_t{1}) * sizeof(RowAt)));
  if (c.head.rows < 65535)
    score_mapped<W, C, L>(c, queries, count, static_cast<uint16_t*>(map), rows);
  else
    score_mapped<W, C, L>(c, queries, count, static_cast<uint32_t*>(map), rows);
}

template <typename W>
static void score_as(const Chunk& c, const Query* queries, int64_t count, const Workbench& bench) {
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < padded_width(c.width); ++j) queries[i].out[j] = c.scale || j >= c.width ? 0.0f : c.bias[j];
  if (c.head.rows) {
    const int kind = c.head.col_bytes * 8 + c.head.low_bytes;
    if (kind == 9) score_rows<W, uint8_t, uint8_t>(c, queries, count, bench);
    if (kind == 10) score_rows<W, uint8_t, uint16_t>(c, queries, count, bench);
    if (kind == 12) score_rows<W, uint8_t, uint32_t>(c, queries, count, bench);
    if (kind == 17) score_rows<W, uint16_t, uint8_t>(c, queries, count, bench);
    if (kind == 18) score_rows<W, uint16_t, uint16_t>(c, queries, count, bench);
    if (kind == 20) score_rows<W, uint16_t, uint32_t>(c, queries, count, bench);
    if (kind == 33) score_rows<W, uint32_t, uint8_t>(c, queries, count, bench);
    if (kind == 34) score_rows<W, uint32_t, uint16_t>(c, queries, count, bench);
    if (kind == 36) score_rows<W, uint32_t, uint32_t>(c, queries, count, bench);
  }
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < c.dense_cols; ++j)
      add_whole<W>(c.dense + j * c.width * W::bytes, c.width, queries[i].dense[j], queries[i].out);
    if (c.scale)
      for (int64_t j = 0; j < c.width; ++j) queries[i].out[j] = queries[i].out[j] * c.scale[j] + c.bias[j];
  }
}

static void score(const Chunk& c, const Query* queries, int64_t count, const Workbench& bench) {
  if (c.weight() == Weight::f32) return score_as<F32>(c, queries, count, bench);
  if (c.weight() == Weight::f16) return score_as<F16>(c, queries, count, bench);
  score_as<I8>(c, queries, count, bench);
}
