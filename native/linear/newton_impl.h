// Included by kernels_impl.h after primal_impl.h: Newton's method for the squared hinge,
//   min 1/2 |w|^2 + sum_i C_i max(0, 1 - y w.x)^2,
// by preconditioned conjugate gradients, all lanes of a block in step.

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
  }
  for (int64_t j = 0; b.given_start && j < t.rows; ++j)  // who has no instance at all is 0, as from any start
    for (int g = 0; g < G; ++g) t.w[j * G + g] = pick(lanes_of(running >> (8 * g)), t.w[j * G + g], splat(0));
  if ((b.mean_start || b.given_start) && !margins<G>(b, t.w, running, t.z)) return -1;
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
