// Included by kernels_impl.h. Solvers of the primal problem for the squared hinge, all lanes of a block in step, and
// the mean-separating start. Lanes stop by mask and never mix; sums over instances and features run in ascending order.
//
//   newton    min 1/2 |w|^2 + sum_i C_i max(0, 1 - y w.x)^2: Newton steps by preconditioned conjugate gradients
//   proximal  min l1 |w|_1  + sum_i C_i max(0, 1 - y w.x)^2: forward-backward steps in a diagonal metric, accelerated,
//             with restart (FISTA)

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

// --- Newton's method -------------------------------------------------------------------------------------------------

template <int G>
struct Newton {
  const Block& b;
  int64_t rows;
  V *w, *grad, *step, *res, *dir, *hdir, *pre, *z, *zs;
  explicit Newton(const Block& block) : b(block), rows(rows_of(block)) {
    V* at = reinterpret_cast<V*>(b.work);
    w = reinterpret_cast<V*>(b.w);
    z = reinterpret_cast<V*>(b.alpha);
    V** places[] = {&grad, &step, &res, &dir, &hdir, &pre};
    for (V** row : places) *row = at, at += rows * G;
    zs = at;
  }

  // pre = 0.99 + 0.01 diag(H): H = 1 + 2 sum over the active C x x^T. On the diagonal alone rare features would
  // weigh 1.
  bool preconditioner(uint32_t on) {
    for (int64_t j = 0; j < rows * G; ++j) pre[j] = splat(1);
    return over_active(on, [&](int64_t i, const V* c) {
      V d[G];
      for (int g = 0; g < G; ++g) d[g] = splat(0.02f) * c[g];
      add_squares<G>(b, i, d, pre);
    });
  }

  // hdir = H dir.
  bool hessian(uint32_t on) {
    __builtin_memcpy(hdir, dir, rows * G * sizeof(V));
    return over_active(on, [&](int64_t i, const V* c) {
      V s[G];
      score<G>(b, i, dir, s);
      for (int g = 0; g < G; ++g) s[g] *= splat(2) * c[g];
      update<G>(b, i, s, hdir);
    });
  }

  // f(i, C of the lanes in `on` for which instance i is within the margin): the others drop out of every product.
  template <typename F>
  bool over_active(uint32_t on, F&& f) {
    for (int64_t i = 0; i < b.n; ++i) {
      if (stop_here(b, i)) return false;
      const uint32_t act = b.active[i] & on;
      if (!act) continue;
      V c[G];
      bounds<G>(b, i, c);
      for (int g = 0; g < G; ++g) c[g] = pick(lanes_of(act >> (8 * g)), c[g], splat(0));
      f(i, c);
    }
    return true;
  }

  // step ~ -H^-1 grad, lane by lane until the quadratic model stops gaining (LIBLINEAR's rule, 0.5), 30 products at
  // most.
  bool conjugate(uint32_t on) {
    __builtin_memset(step, 0, rows * G * sizeof(V));
    for (int64_t j = 0; j < rows * G; ++j) res[j] = -grad[j], dir[j] = res[j] / pre[j];
    Sum<G> rz = dot<G>(res, dir, rows);
    double model[8 * G] = {};
    for (int k = 1; k <= 30 && on; ++k) {
      if (!hessian(on)) return false;
      const Sum<G> curve = dot<G>(dir, hdir, rows);
      Scalars<G> a, again;
      for (int l = 0; l < 8 * G; ++l)
        if ((on >> l & 1) && curve[l] > 0) a.set(l, rz[l] / curve[l]);
      Sum<G> next, gain;
      for (int64_t j = 0; j < rows; ++j)
        for (int g = 0; g < G; ++g) {
          const int64_t at = j * G + g;
          step[at] += a.v[g] * dir[at];
          res[at] -= a.v[g] * hdir[at];
          next.add(g, res[at] * res[at] / pre[at]);
          gain.add(g, step[at] * (res[at] - grad[at]));
        }
      for (int l = 0; l < 8 * G; ++l) {
        if (!(on >> l & 1)) continue;
        const double now = -0.5 * gain[l];
        if (!(rz[l] > 0) || !(k * (now - model[l]) < 0.5 * now)) on &= ~(1u << l);
        model[l] = now;
        if (rz[l] > 0) again.set(l, next[l] / rz[l]);
      }
      for (int64_t j = 0; j < rows; ++j)
        for (int g = 0; g < G; ++g) dir[j * G + g] = res[j * G + g] / pre[j * G + g] + again.v[g] * dir[j * G + g];
      rz = next;
    }
    return true;
  }

  // w += t step with the largest t = 1, 1/2, ... that gains a hundredth of what the slope promises; lanes without:
  // stop.
  uint32_t line_search(uint32_t on) {
    const Sum<G> slope = dot<G>(grad, step, rows), ws = dot<G>(w, step, rows), ss = dot<G>(step, step, rows);
    Scalars<G> t;
    const Sum<G> before = loss_at<G>(b, z, nullptr, t);
    uint32_t open = on;
    for (int l = 0; l < 8 * G; ++l)
      if (on >> l & 1) t.set(l, 1);
    for (int k = 0; k < 20 && open; ++k) {
      const Sum<G> after = loss_at<G>(b, z, zs, t);
      for (int l = 0; l < 8 * G; ++l) {
        if (!(open >> l & 1)) continue;
        const double x = t.v[l / 8][l % 8];
        const double change = after[l] - before[l] + x * ws[l] + 0.5 * x * x * ss[l];
        if (change <= 0.01 * x * slope[l])
          open &= ~(1u << l);
        else
          t.set(l, x / 2);
      }
    }
    for (int l = 0; l < 8 * G; ++l)
      if (open >> l & 1) t.set(l, 0);
    for (int64_t j = 0; j < rows; ++j)
      for (int g = 0; g < G; ++g) w[j * G + g] += t.v[g] * step[j * G + g];
    for (int64_t i = 0; i < b.n; ++i)
      for (int g = 0; g < G; ++g) z[i * G + g] += t.v[g] * zs[i * G + g];
    return on & ~open;
  }
};

// Stops when |gradient| <= eps min(positives, negatives) / n of |gradient at 0|, as DiSMEC does.
template <int G>
static int solve_newton(const Block& b) {
  Newton<G> t(b);
  const Counts<G> count(b);
  uint32_t running = 0;
  for (int64_t i = 0; i < b.n; ++i) running |= b.allowed[i];
  __builtin_memset(t.grad, 0, t.rows * G * sizeof(V));
  if (!add_gradient<G>(b, t.z, running, t.grad)) return -1;
  const Sum<G> first = dot<G>(t.grad, t.grad, t.rows);
  if (b.mean_start) {
    Scalars<G> u, v;
    __builtin_memset(t.res, 0, t.rows * G * sizeof(V));
    __builtin_memset(t.dir, 0, t.rows * G * sizeof(V));
    mean_start<G>(b, count, &u, &v, t.res, t.dir);
    for (int64_t j = 0; j < t.rows; ++j)
      for (int g = 0; g < G; ++g) t.w[j * G + g] = u.v[g] * t.res[j * G + g] + v.v[g] * t.dir[j * G + g];
    if (!margins<G>(b, t.w, running, t.z)) return -1;
  }
  int pass = 0;
  for (; pass < b.max_iter && running; ++pass) {
    __builtin_memcpy(t.grad, t.w, t.rows * G * sizeof(V));
    if (!add_gradient<G>(b, t.z, running, t.grad)) return -1;
    const Sum<G> now = dot<G>(t.grad, t.grad, t.rows);
    for (int l = 0; l < 8 * G; ++l) {
      const int64_t p = count.positive[l], n = count.all[l], few = p < n - p ? p : n - p;
      const double eps = b.eps * static_cast<double>(few < 1 ? 1 : few) / static_cast<double>(n < 1 ? 1 : n);
      if (now[l] <= eps * eps * first[l]) running &= ~(1u << l);
    }
    if (!running) break;
    if (!t.preconditioner(running) || !t.conjugate(running) || !margins<G>(b, t.step, running, t.zs)) return -1;
    running &= t.line_search(running);
    if (b.cancelled(b.context)) return -1;
  }
  return pass;
}

// --- forward-backward ------------------------------------------------------------------------------------------------

static inline V soften(V x, V by) { return vmax(x - by, splat(0)) + vmin(x + by, splat(0)); }

template <int G>
struct Proximal {
  const Block& b;
  int64_t rows;
  V *w, *old, *point, *grad, *metric;
  V *z, *z_old, *z_point;            // margins now, before, and where the gradient is taken
  double steep[8 * G], pace[8 * G];  // 1 / step, in units of the metric; FISTA's t
  explicit Proximal(const Block& block) : b(block), rows(rows_of(block)) {
    V* at = reinterpret_cast<V*>(b.work);
    w = reinterpret_cast<V*>(b.w);
    z = reinterpret_cast<V*>(b.alpha);
    V** places[] = {&old, &point, &grad, &metric};
    for (V** row : places) *row = at, at += rows * G;
    z_old = at;
    z_point = at + b.n * G;
    for (int l = 0; l < 8 * G; ++l) steep[l] = pace[l] = 1;
    measure();
    start();
  }

  // From the best bias alone: from 0 every feature would first be driven down by all the negatives, only to be taken
  // back to 0 one small step at a time. |y - m|^2 is least at the weighted mean of y, which is within the margins.
  void start() {
    if (b.bias == 0) return;
    Sum<G> all, signs;
    for (int64_t i = 0; i < b.n; ++i) {
      const Part<G> p(b, i, z + i * G);
      for (int g = 0; g < G; ++g) all.add(g, p.c[g]), signs.add(g, p.c[g] * p.y[g]);
    }
    Scalars<G> m;
    for (int l = 0; l < 8 * G; ++l)
      if (all[l] > 0) m.set(l, signs[l] / all[l]);
    for (int g = 0; g < G; ++g) {
      const int64_t at = (rows - 1) * G + g;
      w[at] = old[at] = point[at] = m.v[g] / splat(b.bias);
    }
    for (int64_t i = 0; i < b.n; ++i)
      for (int g = 0; g < G; ++g) z[i * G + g] = z_old[i * G + g] = z_point[i * G + g] = m.v[g];
  }

  // metric = diagonal of the Hessian with every instance within the margin: frequent features, the bias above all, are
  // so much steeper than rare ones that a step fit for one is no step for the other.
  void measure() {
    for (int64_t j = 0; j < rows * G; ++j) metric[j] = splat(1e-6f);
    for (int64_t i = 0; i < b.n; ++i) {
      V c[G];
      bounds<G>(b, i, c);
      for (int g = 0; g < G; ++g) c[g] = pick(lanes_of(b.allowed[i] >> (8 * g)), splat(2) * c[g], splat(0));
      add_squares<G>(b, i, c, metric);
    }
  }

  // One step of every lane in `on`, the slope doubled until the quadratic bound holds; violation = largest |change| /
  // step.
  bool forward_backward(uint32_t on, V* violation) {
    __builtin_memset(grad, 0, rows * G * sizeof(V));
    if (!add_gradient<G>(b, z_point, on, grad)) return false;
    const Sum<G> before = loss_at<G>(b, z_point, nullptr, {});
    for (int l = 0; l < 8 * G; ++l) steep[l] *= 0.9;  // the loss flattens as instances leave the margin
    for (uint32_t open = on; open;) {
      Scalars<G> step, by;
      for (int l = 0; l < 8 * G; ++l) step.set(l, 1 / steep[l]), by.set(l, static_cast<double>(b.l1) / steep[l]);
      Sum<G> slope, square;
      V most[G];
      for (int g = 0; g < G; ++g) most[g] = splat(0);
      for (int64_t j = 0; j < rows; ++j)
        for (int g = 0; g < G; ++g) {
          const int64_t at = j * G + g;
          const V next = soften(point[at] - step.v[g] * grad[at] / metric[at], by.v[g] / metric[at]);
          const V change = next - point[at], pull = change * metric[at];
          w[at] = pick(lanes_of(open >> (8 * g)), next, w[at]);
          slope.add(g, grad[at] * change);
          square.add(g, change * pull);
          most[g] = vmax(most[g], vmax(pull, -pull));
        }
      if (!margins<G>(b, w, open, z)) return false;
      const Sum<G> after = loss_at<G>(b, z, nullptr, {});
      for (int l = 0; l < 8 * G; ++l) {
        if (!(open >> l & 1)) continue;
        const double bound = before[l] + slope[l] + 0.5 * steep[l] * square[l];
        if (after[l] <= bound + 1e-6 * before[l] || steep[l] > 1e30) {
          open &= ~(1u << l);
          violation[l / 8][l % 8] = static_cast<float>(most[l / 8][l % 8] * steep[l]);
        } else {
          steep[l] *= 2;
        }
      }
    }
    return true;
  }

  // The next point: past w, along the last change; from w itself when the lane turned round (O'Donoghue & Candes 2015).
  void accelerate(uint32_t on) {
    Sum<G> turn;
    for (int64_t j = 0; j < rows * G; j += G)
      for (int g = 0; g < G; ++g) turn.add(g, (point[j + g] - w[j + g]) * (w[j + g] - old[j + g]));
    Scalars<G> beta;
    for (int l = 0; l < 8 * G; ++l) {
      if (!(on >> l & 1)) continue;
      if (turn[l] > 0) pace[l] = 1;
      const double next = 0.5 * (1 + __builtin_sqrt(1 + 4 * pace[l] * pace[l]));
      beta.set(l, (pace[l] - 1) / next);
      pace[l] = next;
    }
    advance(w, old, point, rows, beta);
    advance(z, z_old, z_point, b.n, beta);
  }
  static void advance(const V* now, V* old, V* point, int64_t rows, const Scalars<G>& beta) {
    for (int64_t j = 0; j < rows; ++j)
      for (int g = 0; g < G; ++g) {
        const int64_t at = j * G + g;
        point[at] = now[at] + beta.v[g] * (now[at] - old[at]);
        old[at] = now[at];
      }
  }
};

// Stops when every weight satisfies its condition of optimality within eps l1.
template <int G>
static int solve_proximal(const Block& b) {
  Proximal<G> t(b);
  uint32_t running = 0;
  for (int64_t i = 0; i < b.n; ++i) running |= b.allowed[i];
  int pass = 0;
  for (; pass < b.max_iter && running; ++pass) {
    V violation[G];
    if (!t.forward_backward(running, violation)) return -1;
    for (int l = 0; l < 8 * G; ++l)
      if ((running >> l & 1) && !(violation[l / 8][l % 8] > b.eps * b.l1)) running &= ~(1u << l);
    t.accelerate(running);
    if (b.cancelled(b.context)) return -1;
  }
  return pass;
}
