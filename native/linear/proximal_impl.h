// Included by kernels_impl.h after primal_impl.h: the squared hinge with an L1 regulariser (ProXML),
//   min l1 |w|_1 + sum_i C_i max(0, 1 - y w.x)^2,
// by forward-backward steps in a diagonal metric, accelerated, with restart (FISTA), all lanes of a block in step.

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
