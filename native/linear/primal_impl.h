// Included by kernels_impl.h. What solvers of the primal problem share (newton_impl.h, proximal_impl.h), and the
// mean-separating start. Lanes stop by mask and never mix; sums over instances and features run in ascending order.

typedef double D __attribute__((vector_size(64)));

// A number per lane. In double: float sums over many features or instances would lose their last digits.
template <int G>
struct Sum {
  D v[G];
  Sum() { __builtin_memset(v, 0, sizeof v); }
  void add(int g, V x) { v[g] += __builtin_convertvector(x, D); }
  double operator[](int lane) const { return v[lane / 8][lane % 8]; }
};

template <int G>
struct Scalars {  // a float per lane, for arithmetic with rows
  V v[G];
  Scalars() { __builtin_memset(v, 0, sizeof v); }
  void set(int lane, double x) { v[lane / 8][lane % 8] = static_cast<float>(x); }
};

static inline int64_t rows_of(const Block& b) { return b.sparse_cols + b.dense_cols + 1; }
static inline bool stop_here(const Block& b, int64_t i) { return (i & 1023) == 1023 && b.cancelled(b.context); }

// Lanes in which a row of d is not 0.
template <int G>
static inline uint32_t any(const V* d) {
  uint32_t bits = 0;
  for (int g = 0; g < G; ++g) bits |= bits_of(d[g] != splat(0)) << (8 * g);
  return bits;
}

template <int G>
static Sum<G> dot(const V* a, const V* b, int64_t rows) {
  Sum<G> sum;
  for (int64_t j = 0; j < rows; ++j)
    for (int g = 0; g < G; ++g) sum.add(g, a[j * G + g] * b[j * G + g]);
  return sum;
}

// out += x_i^2 d^T, entry by entry: an instance's share of the Hessian's diagonal.
template <int G>
static inline void add_squares(const Block& b, int64_t i, const V* d, V* out) {
  const auto add = [&](int64_t row, float x) {
    for (int g = 0; g < G; ++g) out[row * G + g] += splat(x * x) * d[g];
  };
  for (int64_t p = b.ptr[i]; p < b.ptr[i + 1]; ++p) add(b.idx[p], b.val[p]);
  for (int64_t j = 0; j < b.dense_cols; ++j) add(b.sparse_cols + j, b.dense[i][j]);
  add(b.sparse_cols + b.dense_cols, b.bias);
}

// The part of one instance in the loss: C (0 for lanes it takes no part in), the sign and the slack max(0, 1 - y z).
template <int G>
struct Part {
  V c[G], y[G], slack[G];
  Part(const Block& b, int64_t i, const V* z) {
    bounds<G>(b, i, c);
    for (int g = 0; g < G; ++g) {
      c[g] = pick(lanes_of(b.allowed[i] >> (8 * g)), c[g], splat(0));
      y[g] = pick(lanes_of(b.positive[i] >> (8 * g)), splat(1), splat(-1));
      slack[g] = vmax(splat(1) - y[g] * z[g], splat(0));
    }
  }
};

// sum_i C_i slack_i^2 at margins z + t zs (zs may be null).
template <int G>
static Sum<G> loss_at(const Block& b, const V* z, const V* zs, const Scalars<G>& t) {
  Sum<G> sum;
  for (int64_t i = 0; i < b.n; ++i) {
    V m[G];
    for (int g = 0; g < G; ++g) m[g] = zs ? z[i * G + g] + t.v[g] * zs[i * G + g] : z[i * G + g];
    const Part<G> p(b, i, m);
    for (int g = 0; g < G; ++g) sum.add(g, p.c[g] * p.slack[g] * p.slack[g]);
  }
  return sum;
}

// out += gradient of the loss at margins z, and active = the lanes in which it is not 0; false when cancelled.
template <int G>
static bool add_gradient(const Block& b, const V* z, uint32_t running, V* out) {
  for (int64_t i = 0; i < b.n; ++i) {
    const Part<G> p(b, i, z + i * G);
    V d[G];
    for (int g = 0; g < G; ++g) {
      d[g] = splat(-2) * p.c[g] * p.y[g] * p.slack[g];
      d[g] = pick(lanes_of(running >> (8 * g)), d[g], splat(0));
    }
    b.active[i] = any<G>(d);
    if (b.active[i]) update<G>(b, i, d, out);
    if (stop_here(b, i)) return false;
  }
  return true;
}

// z = X w for the lanes in `mask`; false when cancelled.
template <int G>
static bool margins(const Block& b, const V* w, uint32_t mask, V* z) {
  for (int64_t i = 0; i < b.n; ++i) {
    if (!(b.allowed[i] & mask)) continue;
    V s[G];
    score<G>(b, i, w, s);
    for (int g = 0; g < G; ++g) z[i * G + g] = pick(lanes_of(mask >> (8 * g)), s[g], z[i * G + g]);
    if (stop_here(b, i)) return false;
  }
  return true;
}

template <int G>
struct Counts {
  int64_t all[8 * G] = {}, positive[8 * G] = {};
  explicit Counts(const Block& b) {
    for (int64_t i = 0; i < b.n; ++i) {
      for (uint32_t left = b.allowed[i]; left; left &= left - 1) ++all[__builtin_ctz(left)];
      for (uint32_t left = b.positive[i]; left; left &= left - 1) ++positive[__builtin_ctz(left)];
    }
  }
};

// Mean-separating start (Schultheis & Babbar 2021): w0 = u P + v A, P the mean of the positives, A of all instances,
// with w0.P = 1 and w0.(mean of negatives) = -2. Where the two means do not tell them apart, u = v = 0.
template <int G>
static void mean_start(const Block& b, const Counts<G>& count, Scalars<G>* u, Scalars<G>* v, V* pos, V* all) {
  V share[2][G];
  for (int l = 0; l < 8 * G; ++l) {
    share[0][l / 8][l % 8] = count.positive[l] ? 1.0f / static_cast<float>(count.positive[l]) : 0;
    share[1][l / 8][l % 8] = count.all[l] ? 1.0f / static_cast<float>(count.all[l]) : 0;
  }
  for (int64_t i = 0; i < b.n; ++i) {
    V p[G], a[G];
    for (int g = 0; g < G; ++g) {
      p[g] = pick(lanes_of(b.positive[i] >> (8 * g)), share[0][g], splat(0));
      a[g] = pick(lanes_of(b.allowed[i] >> (8 * g)), share[1][g], splat(0));
    }
    if (b.positive[i]) update<G>(b, i, p, pos);
    update<G>(b, i, a, all);
  }
  const Sum<G> pp = dot<G>(pos, pos, rows_of(b)), pa = dot<G>(pos, all, rows_of(b)), aa = dot<G>(all, all, rows_of(b));
  for (int l = 0; l < 8 * G; ++l) {
    if (!count.positive[l] || count.positive[l] == count.all[l]) continue;
    const double f = 3.0 * static_cast<double>(count.positive[l]) / static_cast<double>(count.all[l]) - 2;
    const double det = pa[l] * pa[l] - pp[l] * aa[l];
    if (!(det < -1e-6 * pp[l] * aa[l]) || !(pa[l] > 1e-6 * pp[l])) continue;
    const double a = (f * pa[l] - aa[l]) / det;
    u->set(l, a);
    v->set(l, (1 - a * pp[l]) / pa[l]);
  }
}

// The same start for the dual: alpha = u / n+ + v / n for positives and -v / n for the rest, where both are >= 0.
template <int G>
static void start_dual(const Block& b) {
  const Counts<G> count(b);
  V* work = reinterpret_cast<V*>(b.work);
  Scalars<G> u, v;
  mean_start<G>(b, count, &u, &v, work, work + rows_of(b) * G);
  V first[2][G];
  for (int l = 0; l < 8 * G; ++l) {
    const float up = u.v[l / 8][l % 8], down = v.v[l / 8][l % 8];
    const float a = count.positive[l] ? up / static_cast<float>(count.positive[l]) : 0;
    const float c = count.all[l] ? down / static_cast<float>(count.all[l]) : 0;
    const bool sound = a + c >= 0 && c <= 0;
    first[1][l / 8][l % 8] = sound ? a + c : 0;
    first[0][l / 8][l % 8] = sound ? -c : 0;
  }
  V* w = reinterpret_cast<V*>(b.w);
  V* alpha = reinterpret_cast<V*>(b.alpha);
  for (int64_t i = 0; i < b.n; ++i) {
    V d[G];
    for (int g = 0; g < G; ++g) {
      const I positive = lanes_of(b.positive[i] >> (8 * g));
      const V a = pick(positive, first[1][g], first[0][g]);
      alpha[i * G + g] = pick(lanes_of(b.allowed[i] >> (8 * g)), a, splat(0));
      d[g] = pick(positive, alpha[i * G + g], -alpha[i * G + g]);
    }
    if (any<G>(d)) update<G>(b, i, d, w);
  }
}
