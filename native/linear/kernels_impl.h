// Included by kernels_<isa>.cpp inside namespace lw::<isa>. Vector extensions of GCC and Clang: the same source becomes
// AVX2 or SSE2 by compiler flags. No standard library templates here: a copy compiled for AVX2 must not leak out.
//
// Dual coordinate descent (Hsieh et al. 2008) for many labels at once, in LIBLINEAR's form:
//   min 1/2 |w|^2 + sum_i C_i loss(y_i w.x_i),  C_i = cp * cost_i for positives, the lane's cn for negatives
//   squared hinge: D_i = 1 / (2 C_i), alpha >= 0;   hinge: D_i = 0, 0 <= alpha <= C_i
//   G = y (w.x) - 1 + alpha D;  alpha <- clip(alpha - G / (|x|^2 + D));  w += y (alpha_new - alpha) x
// Shrinking, restart on the full set and the stopping rule max PG - min PG <= eps are per lane, by masks.

typedef float V __attribute__((vector_size(32)));
typedef int32_t I __attribute__((vector_size(32)));

static const float kInf = __builtin_inff();

static inline V splat(float x) { return V{x, x, x, x, x, x, x, x}; }
static inline I lanes_of(uint32_t bits) {
  const int32_t b = static_cast<int32_t>(bits);
  return (I{b, b, b, b, b, b, b, b} & I{1, 2, 4, 8, 16, 32, 64, 128}) != 0;
}
static inline uint32_t bits_of(I mask) {
#ifdef __AVX__
  return static_cast<uint32_t>(__builtin_ia32_movmskps256(reinterpret_cast<V>(mask)));
#else
  uint32_t bits = 0;
  for (int l = 0; l < 8; ++l) bits |= static_cast<uint32_t>(mask[l] & 1) << l;
  return bits;
#endif
}
static inline V pick(I mask, V yes, V no) {
  return reinterpret_cast<V>((mask & reinterpret_cast<I>(yes)) | (~mask & reinterpret_cast<I>(no)));
}
static inline V vmax(V a, V b) { return a > b ? a : b; }
static inline V vmin(V a, V b) { return a < b ? a : b; }

// s = W^T x_i, all lanes. Four rows in flight hide the latency of FMA and of the cache.
template <int G>
static inline void score(const Block& b, int64_t i, const V* w, V* s) {
  V acc[4][G];
  for (int u = 0; u < 4; ++u)
    for (int g = 0; g < G; ++g) acc[u][g] = splat(0);
  int64_t p = b.ptr[i];
  const int64_t end = b.ptr[i + 1];
  for (; p + 4 <= end; p += 4)
    for (int u = 0; u < 4; ++u) {
      const V* row = w + static_cast<int64_t>(b.idx[p + u]) * G;
      const V x = splat(b.val[p + u]);
      for (int g = 0; g < G; ++g) acc[u][g] += x * row[g];
    }
  for (; p < end; ++p) {
    const V* row = w + static_cast<int64_t>(b.idx[p]) * G;
    const V x = splat(b.val[p]);
    for (int g = 0; g < G; ++g) acc[0][g] += x * row[g];
  }
  if (b.dense) {
    const float* x = b.dense[i];
    const V* row = w + b.sparse_cols * G;
    for (int64_t j = 0; j < b.dense_cols; ++j)
      for (int g = 0; g < G; ++g) acc[j & 3][g] += splat(x[j]) * row[j * G + g];
  }
  const V* row = w + (b.sparse_cols + b.dense_cols) * G;
  for (int g = 0; g < G; ++g) s[g] = (acc[0][g] + acc[1][g]) + (acc[2][g] + acc[3][g]) + splat(b.bias) * row[g];
}

// W += x_i d^T
template <int G>
static inline void update(const Block& b, int64_t i, const V* d, V* w) {
  for (int64_t p = b.ptr[i]; p < b.ptr[i + 1]; ++p) {
    V* row = w + static_cast<int64_t>(b.idx[p]) * G;
    const V x = splat(b.val[p]);
    for (int g = 0; g < G; ++g) row[g] += x * d[g];
  }
  if (b.dense) {
    const float* x = b.dense[i];
    V* row = w + b.sparse_cols * G;
    for (int64_t j = 0; j < b.dense_cols; ++j)
      for (int g = 0; g < G; ++g) row[j * G + g] += splat(x[j]) * d[g];
  }
  V* row = w + (b.sparse_cols + b.dense_cols) * G;
  for (int g = 0; g < G; ++g) row[g] += splat(b.bias) * d[g];
}

// C of each lane: its own cn for negatives, cp * cost for positives.
template <int G>
static inline void bounds(const Block& b, int64_t i, V* c) {
  __builtin_memcpy(c, b.cn, G * sizeof(V));
  for (int64_t p = b.cost_ptr[i]; p < b.cost_ptr[i + 1]; ++p) {
    const int lane = b.cost_lane[p];
    c[lane / 8][lane % 8] = b.cp * b.cost[p];
  }
}

template <int G>
struct Lanes {  // per-lane state of the two hinge losses
  V pg_max[G], pg_min[G], old_max[G], old_min[G];
};

// One visit of instance i: returns the lanes shrunk away.
template <int G, bool kSquared>
static inline uint32_t hinge_step(const Block& b, int64_t i, uint32_t on, Lanes<G>& t) {
  V s[G], c[G], d[G];
  V* w = reinterpret_cast<V*>(b.w);
  score<G>(b, i, w, s);
  bounds<G>(b, i, c);
  V* alpha = reinterpret_cast<V*>(b.alpha) + i * G;
  const uint32_t positive = b.positive[i];
  const V zero = splat(0), one = splat(1), norm = splat(b.norm[i]);
  uint32_t shrunk = 0, moved = 0;
  for (int g = 0; g < G; ++g) {
    const I act = lanes_of(on >> (8 * g));
    const V y = pick(lanes_of(positive >> (8 * g)), one, -one);
    const V a = alpha[g];
    const V diag = kSquared ? splat(0.5f) / c[g] : zero;
    const V upper = kSquared ? splat(kInf) : c[g];
    const V grad = y * s[g] - one + a * diag;
    const I at_zero = a == zero, at_top = a >= upper;
    const I gone = act & ((at_zero & (grad > t.old_max[g])) | (at_top & (grad < t.old_min[g])));
    const I live = act & ~gone;
    V pg = pick(at_zero, vmin(grad, zero), grad);
    if (!kSquared) pg = pick(at_top, vmax(grad, zero), pg);
    t.pg_max[g] = pick(live, vmax(t.pg_max[g], pg), t.pg_max[g]);
    t.pg_min[g] = pick(live, vmin(t.pg_min[g], pg), t.pg_min[g]);
    const I move = live & ((pg > splat(1e-12f)) | (pg < splat(-1e-12f)));
    const V next = vmin(vmax(a - grad / (norm + diag), zero), upper);
    d[g] = pick(move, (next - a) * y, zero);
    alpha[g] = pick(move, next, a);
    shrunk |= bits_of(gone) << (8 * g);
    moved |= bits_of(d[g] != zero) << (8 * g);
  }
  if (moved) update<G>(b, i, d, w);
  return shrunk;
}

template <int G, bool kSquared>
static int solve_hinge(const Block& b) {
  Lanes<G> t;
  uint32_t running = 0, shrunk = 0;  // lanes still running; lanes with an instance shrunk away
  for (int64_t i = 0; i < b.n; ++i) running |= b.active[i] = b.allowed[i];
  for (int g = 0; g < G; ++g) t.old_max[g] = splat(kInf), t.old_min[g] = splat(-kInf);
  int pass = 0;
  for (; pass < b.max_iter && running; ++pass) {
    b.visit_order(b.context, pass, b.order);
    for (int g = 0; g < G; ++g) t.pg_max[g] = splat(-kInf), t.pg_min[g] = splat(kInf);
    for (int64_t k = 0; k < b.n; ++k) {
      const int64_t i = b.order[k];
      const uint32_t on = b.active[i] & running;
      if (!on) continue;
      const uint32_t gone = hinge_step<G, kSquared>(b, i, on, t);
      b.active[i] &= ~gone;
      shrunk |= gone;
      if ((k & 1023) == 1023 && b.cancelled(b.context)) return -1;
    }
    if (b.cancelled(b.context)) return -1;
    uint32_t again = 0;
    for (int l = 0; l < 8 * G; ++l) {
      const uint32_t bit = 1u << l;
      if (!(running & bit)) continue;
      const float hi = t.pg_max[l / 8][l % 8], lo = t.pg_min[l / 8][l % 8];
      float keep_hi = hi <= 0 ? kInf : hi, keep_lo = lo >= 0 ? -kInf : lo;
      if (!(hi - lo > b.eps)) {  // converged on the lane's active set
        if (shrunk & bit)
          again |= bit, keep_hi = kInf, keep_lo = -kInf;
        else
          running &= ~bit;
      }
      t.old_max[l / 8][l % 8] = keep_hi;
      t.old_min[l / 8][l % 8] = keep_lo;
    }
    if (again) {
      shrunk &= ~again;
      for (int64_t i = 0; i < b.n; ++i) b.active[i] |= b.allowed[i] & again;
    }
  }
  return pass;
}

// Logistic loss (Yu et al. 2010): a small Newton iteration per lane in double; no shrinking.
struct LogisticLane {
  double inner_eps, worst;
  int64_t newton;
};

static inline double newton_step(double a, double b, double c, double* z, LogisticLane& t) {
  // alpha and c - alpha are the two coordinates; work on the smaller side, where the logarithm is steep.
  double z1 = *z, sign = 1;
  if (0.5 * a * ((c - z1) - z1) + b < 0) z1 = c - z1, sign = -1;
  const double old = z1;
  double x = old;
  if (c - x < 0.5 * c) x = 0.1 * x;
  double gp = a * (x - old) + sign * b + __builtin_log(x / (c - x));
  const double size = gp < 0 ? -gp : gp;
  if (size > t.worst) t.worst = size;
  int inner = 0;
  for (; inner <= 100; ++inner) {
    if ((gp < 0 ? -gp : gp) < t.inner_eps) break;
    const double tmp = x - gp / (a + c / (c - x) / x);
    x = tmp <= 0 ? x * 0.1 : (tmp >= c ? c - (c - x) * 0.1 : tmp);
    gp = a * (x - old) + sign * b + __builtin_log(x / (c - x));
    ++t.newton;
  }
  if (!inner) return 0;
  *z = sign > 0 ? x : c - x;
  return sign * (x - old);
}

// alpha as a float strictly between 0 and c: at either end its logarithm, and with it w, would be lost.
static inline float inside(double alpha, float c) {
  const float least = 1e-30f, most = c * (1 - 6e-8f), a = static_cast<float>(alpha);
  return a < least ? least : a > most ? most : a;
}

template <int G>
static int solve_logistic(const Block& b) {
  V* w = reinterpret_cast<V*>(b.w);
  LogisticLane lane[8 * G];
  uint32_t running = 0;
  for (int64_t i = 0; i < b.n; ++i) running |= b.active[i] = b.allowed[i];
  const double least = b.eps < 1e-8 ? b.eps : 1e-8;
  for (auto& t : lane) t.inner_eps = 1e-2, t.worst = 0, t.newton = 0;
  for (int64_t i = 0; i < b.n; ++i) {
    V c[G];
    bounds<G>(b, i, c);
    for (int l = 0; l < 8 * G; ++l) {
      const float top = c[l / 8][l % 8] * 0.001f;
      b.alpha[i * 8 * G + l] = top < 1e-8f ? top : 1e-8f;
    }
  }
  int pass = 0;
  for (; pass < b.max_iter && running; ++pass) {
    b.visit_order(b.context, pass, b.order);
    for (auto& t : lane) t.worst = 0, t.newton = 0;
    for (int64_t k = 0; k < b.n; ++k) {
      const int64_t i = b.order[k];
      const uint32_t on = b.active[i] & running;
      if (!on) continue;
      V s[G], c[G], d[G];
      score<G>(b, i, w, s);
      bounds<G>(b, i, c);
      for (int g = 0; g < G; ++g) d[g] = splat(0);
      for (uint32_t left = on; left; left &= left - 1) {
        const int l = __builtin_ctz(left);
        const double y = (b.positive[i] >> l) & 1 ? 1 : -1;
        double z = b.alpha[i * 8 * G + l];
        const double step = newton_step(b.norm[i], y * s[l / 8][l % 8], c[l / 8][l % 8], &z, lane[l]);
        b.alpha[i * 8 * G + l] = inside(z, c[l / 8][l % 8]);
        d[l / 8][l % 8] = static_cast<float>(step * y);
      }
      update<G>(b, i, d, w);
      if ((k & 1023) == 1023 && b.cancelled(b.context)) return -1;
    }
    for (int l = 0; l < 8 * G; ++l) {
      if (lane[l].worst < b.eps) running &= ~(1u << l);
      if (lane[l].newton <= b.n / 10 && lane[l].inner_eps > least) lane[l].inner_eps *= 0.1;
    }
    if (b.cancelled(b.context)) return -1;
  }
  return pass;
}

// clang-format off: the second and third need the first
#include "linear/primal_impl.h"
#include "linear/newton_impl.h"
#include "linear/proximal_impl.h"
// clang-format on

template <int G>
static int solve_lanes(const Block& b) {
  if (b.solver == Solver::newton) return solve_newton<G>(b);
  if (b.solver == Solver::proximal) return solve_proximal<G>(b);
  if (b.mean_start && b.loss == Loss::squared_hinge) start_dual<G>(b);
  if (b.loss == Loss::logistic) return solve_logistic<G>(b);
  return b.loss == Loss::hinge ? solve_hinge<G, false>(b) : solve_hinge<G, true>(b);
}

static int solve(const Block& b) { return b.lanes == 8 ? solve_lanes<1>(b) : solve_lanes<2>(b); }

static void axpy(float v, const float* row, float* out, int64_t m) {
  int64_t j = 0;
  for (; j + 8 <= m; j += 8) {
    V r, o;
    __builtin_memcpy(&r, row + j, 32);
    __builtin_memcpy(&o, out + j, 32);
    o += splat(v) * r;
    __builtin_memcpy(out + j, &o, 32);
  }
  for (; j < m; ++j) out[j] += v * row[j];
}
