"""Slow, plain twins of the native functions, in float64 numpy and Python integers."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(x: int) -> int:
    x = (x + GOLDEN) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def key(seed: int, *where: int) -> int:
    k = mix(seed)
    for w in where:
        k = mix(k ^ mix(w & MASK))
    return k


class Rng:
    def __init__(self, k: int) -> None:
        self.state = k

    def below(self, n: int) -> int:
        out = mix(self.state)
        self.state = (self.state + GOLDEN) & MASK
        return ((out >> 32) * n) >> 32


def shuffled(n: int, k: int) -> list[int]:
    rng, items = Rng(k), list(range(n))
    for i in range(n - 1, 0, -1):
        j = rng.below(i + 1)
        items[i], items[j] = items[j], items[i]
    return items


class Gaps:
    """The smallest gap at any decision: below ~1e-5 float32 may decide otherwise, and both are right."""

    def __init__(self) -> None:
        self.least = math.inf

    def see(self, ordered: list[float]) -> None:
        self.least = min([self.least, *(b - a for a, b in pairwise(ordered))])

    def decide(self, *distances: float) -> None:
        self.least = min([self.least, *(abs(d) for d in distances)])


def sum_columns(m: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    """Column g is the sum of the columns c with group[c] = g."""
    out = np.zeros((len(m), groups))
    for column, g in enumerate(group):
        if g >= 0:
            out[:, g] += m[:, column]
    return out


def pifa(y: np.ndarray, x: np.ndarray, top: int | None = None, most: int | None = None) -> np.ndarray:
    """normalise(YᵀX), only the `top` largest |entries| of a row kept (ties: smaller column).

    Without `top`, where the rows could hold more than `most` entries in all, each keeps its share of them.
    """
    z = y.T.astype(float) @ x.astype(float)
    if top is None and most is not None:
        could = sum(min(x.shape[1], int((x[row > 0] != 0).sum())) for row in y.T)
        top = max(1, most // len(z)) if could > most else None
    if top is not None:
        for row in z:
            drop = sorted(range(len(row)), key=lambda c: (-abs(row[c]), c))[top:]
            row[drop] = 0
    norm = np.linalg.norm(z, axis=1, keepdims=True)
    return z / np.where(norm > 0, norm, 1)


def _unit(v: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(v)
    return v / norm if norm > 0 else v * 0


def bisect(
    z: np.ndarray, members: list[int], left: int, k: int, max_iter: int, gaps: Gaps
) -> tuple[list[int], list[int]]:
    """Balanced spherical 2-means of sorted members."""
    rng, n = Rng(k), len(members)
    r = rng.below(n)
    others = [(r + 1 + rng.below(n - 1)) % n for _ in range(8)]
    gaps.see(sorted({float(z[members[o]] @ z[members[r]]) for o in others})[:2])
    c = z[members[r]] - z[members[min(others, key=lambda o: z[members[o]] @ z[members[r]])]]
    halves: tuple[list[int], list[int]] = ([], [])
    before = None
    for _ in range(max_iter):
        order = sorted(range(n), key=lambda i: (z[members[i]] @ c, i))
        gaps.see([float(z[members[i]] @ c) for i in order[left - 1 : left + 1]])
        halves = (sorted(order[:left]), sorted(order[left:]))
        if halves == before:
            break
        before = halves
        low, high = (z[[members[i] for i in side]].sum(axis=0) for side in halves)
        c = _unit(high) - _unit(low)
    return [members[i] for i in halves[0]], [members[i] for i in halves[1]]


def split_bisect(z, members: list[int], begin: int, parts: int, seed: int, max_iter: int, gaps: Gaps) -> list:
    """Cut one segment into `parts` lists."""
    if parts == 1:
        return [sorted(members)]
    end = begin + len(members)
    left_parts = parts // 2
    left = len(members) * left_parts // parts
    a, b = bisect(z, sorted(members), left, key(seed, 0, begin, end, parts), max_iter, gaps)
    return [
        *split_bisect(z, a, begin, left_parts, seed, max_iter, gaps),
        *split_bisect(z, b, begin + left, parts - left_parts, seed, max_iter, gaps),
    ]


def split_kway(z, members: list[int], begin: int, parts: int, seed: int, max_iter: int, gaps: Gaps) -> list:
    members, n = sorted(members), len(members)
    start = shuffled(n, key(seed, 0, begin, begin + n, parts))
    choice, before = [-1] * n, None
    for c in range(parts):
        choice[start[c]] = c
    for _ in range(max_iter):
        if choice == before:
            break
        before = choice
        centres = [_unit(z[[members[i] for i in range(n) if choice[i] == c]].sum(axis=0)) for c in range(parts)]
        sim = [[float(z[m] @ centre) for centre in centres] for m in members]
        gaps.see(sorted(v for row in sim for v in row))
        choice = assign_balanced(sim, parts)
    return [[members[i] for i in range(n) if choice[i] == c] for c in range(parts)]


def split_uneven(
    z, members: list[int], begin: int, parts: int, seed: int, max_iter: int, gaps: Gaps, sample: int = 100
) -> list:
    """Every label to its nearest centre; labels alone at theirs move to the nearest one with company.

    Centres are fitted on `sample` labels for each, then all labels join and the centres move once more.
    """
    members, n = sorted(members), len(members)
    start = shuffled(n, key(seed, 0, begin, begin + n, parts))
    rows, choice, before, last = sorted(start[: sample * parts]), [-1] * n, None, 0.0
    for c in range(parts):
        choice[start[c]] = c

    def assign(rows: list[int]) -> tuple[list[int], float, dict[int, list[float]]]:
        centres = [_unit(z[[members[i] for i in range(n) if choice[i] == c]].sum(axis=0)) for c in range(parts)]
        sim = {i: [float(z[members[i]] @ centre) for centre in centres] for i in range(n)}
        for i in rows:
            gaps.see(sorted(sim[i]))
        found = [max(range(parts), key=lambda c, i=i: (sim[i][c], -c)) if i in rows else -1 for i in range(n)]
        return found, sum(sim[i][found[i]] for i in rows), sim

    for iteration in range(max_iter):
        if choice == before:
            break
        before = choice
        choice, total, sim = assign(rows)
        if iteration > 0:
            gaps.decide(total - last - 1e-4 * len(rows))
            if total - last < 1e-4 * len(rows):
                break
        last = total
    for _ in range(2 if len(rows) < n else 0):
        choice, _, sim = assign(list(range(n)))
    sizes = [choice.count(c) for c in range(parts)]
    company = [c for c in range(parts) if sizes[c] > 1]
    for i in range(n):
        if sizes[choice[i]] == 1:
            choice[i] = max(company, key=lambda c, i=i: (sim[i][c], -c)) if company else 0
    found = [[members[i] for i in range(n) if choice[i] == c] for c in range(parts)]
    return [part for part in found if part]


def assign_balanced(sim: list[list[float]], parts: int) -> list[int]:
    n = len(sim)
    pairs = sorted(((i, c) for i in range(n) for c in range(parts)), key=lambda p: (-sim[p[0]][p[1]], p))
    choice, used, spare = [-1] * n, [0] * parts, n % parts
    for i, c in pairs:
        if choice[i] >= 0 or used[c] > n // parts or (used[c] == n // parts and spare == 0):
            continue
        spare -= used[c] == n // parts
        choice[i] = c
        used[c] += 1
    return choice


def solve_hinge(x, y, cost, visit, eps, max_iter, squared, gaps, mean=False):
    """Label by label dual coordinate descent with LIBLINEAR's shrinking. x includes the bias column."""
    n = len(x)
    diag = 0.5 / cost if squared else np.zeros(n)
    upper = np.full(n, np.inf) if squared else cost
    norm = (x**2).sum(axis=1)
    w, alpha, active = np.zeros(x.shape[1]), np.zeros(n), np.ones(n, bool)
    if mean and (y > 0).any():
        u, v = mean_start(x, y, gaps)
        start = np.where(y > 0, u / (y > 0).sum() + v / n, -v / n)
        gaps.decide(start.min())
        alpha = start if (start >= 0).all() else alpha
        w = x.T @ (alpha * y)
    old_max, old_min = np.inf, -np.inf
    for p in range(max_iter):
        high, low = -np.inf, np.inf
        for i in visit(p):
            if not active[i]:
                continue
            g = y[i] * (w @ x[i]) - 1 + alpha[i] * diag[i]
            if alpha[i] == 0 or alpha[i] >= upper[i]:
                gaps.decide(g - (old_max if alpha[i] == 0 else old_min), g)
            if (alpha[i] == 0 and g > old_max) or (alpha[i] >= upper[i] and g < old_min):
                active[i] = False
                continue
            pg = min(g, 0) if alpha[i] == 0 else (max(g, 0) if alpha[i] >= upper[i] else g)
            high, low = max(high, pg), min(low, pg)
            if abs(pg) > 1e-12:
                new = alpha[i] - g / (norm[i] + diag[i])
                gaps.decide(new, new - upper[i])
                new = min(max(new, 0), upper[i])
                w += (new - alpha[i]) * y[i] * x[i]
                alpha[i] = new
        old_max, old_min = (np.inf if high <= 0 else high), (-np.inf if low >= 0 else low)
        gaps.decide(high - low - eps, high, low)
        if not high - low > eps:
            if active.all():
                break
            active[:] = True
            old_max, old_min = np.inf, -np.inf
    return w


def solve_logistic(x, y, cost, visit, eps, max_iter, gaps):
    """Yu et al. 2010, label by label."""
    n = len(x)
    norm = (x**2).sum(axis=1)
    w, alpha = np.zeros(x.shape[1]), np.minimum(0.001 * cost, 1e-8)
    inner_eps, least = 1e-2, min(1e-8, eps)
    for p in range(max_iter):
        worst, newton = 0.0, 0
        for i in visit(p):
            a, b, c, z, sign = norm[i], y[i] * (w @ x[i]), cost[i], alpha[i], 1
            gaps.decide(0.5 * a * ((c - z) - z) + b)
            if 0.5 * a * ((c - z) - z) + b < 0:
                z, sign = c - z, -1
            old = v = z
            if c - v < 0.5 * c:
                v *= 0.1
            gp = a * (v - old) + sign * b + math.log(v / (c - v))
            worst, inner = max(worst, abs(gp)), 0
            while inner <= 100:
                if inner_eps > 1e-5:  # a step more or less is seen in the weights: near ties are within 1 %, or 1e-5
                    gaps.decide(1e-3 * (abs(gp) / inner_eps - 1), abs(gp) - inner_eps)
                if abs(gp) < inner_eps:
                    break
                t = v - gp / (a + c / (c - v) / v)
                v = v * 0.1 if t <= 0 else (c - (c - v) * 0.1 if t >= c else t)
                gp = a * (v - old) + sign * b + math.log(v / (c - v))
                newton, inner = newton + 1, inner + 1
            if inner:
                alpha[i] = v if sign > 0 else c - v
                w += sign * (v - old) * y[i] * x[i]
        gaps.decide(worst - eps)
        if worst < eps:
            break
        if newton <= n / 10 and inner_eps > least:
            inner_eps *= 0.1
    return w


def mean_start(x, y, gaps):
    """(u, v) of w0 = u P + v A with w0·P = 1 and w0·(mean of negatives) = -2; zeros where the means coincide.

    Where they nearly do, rounding is magnified by what their determinant lacks: a near tie.
    """
    p, a, share = x[y > 0].mean(axis=0), x.mean(axis=0), (y > 0).mean()
    det = (p @ a) ** 2 - (p @ p) * (a @ a)
    gaps.decide(-det / max((p @ p) * (a @ a), 1e-30) / 100, (p @ a) / max(p @ p, 1e-30) / 100)
    if share in (0, 1) or not det < -1e-6 * (p @ p) * (a @ a) or not p @ a > 1e-6 * (p @ p):
        return 0.0, 0.0
    u = ((3 * share - 2) * (p @ a) - a @ a) / det
    return u, (1 - u * (p @ p)) / (p @ a)


def solve_newton(x, y, cost, eps, max_iter, mean, gaps, given=None):
    """Newton's method with preconditioned conjugate gradients and a halving line search, one label."""
    n, d = x.shape
    w = np.zeros(d)
    slack = np.maximum(0, 1 - y * (x @ w))
    first = np.linalg.norm(-2 * x.T @ (cost * y * slack))
    few = max(min((y > 0).sum(), (y < 0).sum()), 1)
    if mean and (y > 0).any():
        u, v = mean_start(x, y, gaps)
        w = u * x[y > 0].mean(axis=0) + v * x.mean(axis=0)
    if given is not None:
        w = given.astype(float)
    for _ in range(max_iter):
        slack = np.maximum(0, 1 - y * (x @ w))
        gaps.decide(*(1 - y * (x @ w)))
        grad = w - 2 * x.T @ (cost * y * slack)
        gaps.decide(np.linalg.norm(grad) - eps * few / n * first)
        if np.linalg.norm(grad) <= eps * few / n * first:
            break
        h = np.eye(d) + 2 * (x.T * (cost * (slack > 0))) @ x
        step = conjugate(h, grad, 1 + 0.02 * (x**2).T @ (cost * (slack > 0)), gaps)
        before = 0.5 * w @ w + (cost * slack**2).sum()
        for t in 0.5 ** np.arange(20):
            after = w + t * step
            loss = (cost * np.maximum(0, 1 - y * (x @ after)) ** 2).sum()
            promise = 0.5 * after @ after + loss - before - 0.01 * t * (grad @ step)
            gaps.decide(promise)
            if promise <= 0:
                w = after
                break
        else:
            break
    return w


def conjugate(h, grad, pre, gaps):
    """-H⁻¹ grad, until the quadratic model gains little (LIBLINEAR's rule)."""
    step, res, model = np.zeros(len(grad)), -grad, 0.0
    way = res / pre
    for k in range(1, 31):
        rz = res @ (res / pre)
        gaps.decide(rz)
        if rz == 0:
            break
        a = rz / (way @ h @ way)
        step, res = step + a * way, res - a * (h @ way)
        now = -0.5 * step @ (res - grad)
        gaps.decide(k * (now - model) - 0.5 * now)
        if not k * (now - model) < 0.5 * now:
            break
        model, way = now, res / pre + (res @ (res / pre)) / rz * way
    return step


def solve_proximal(x, y, cost, l1, eps, max_iter, bias, gaps):
    """FISTA in the metric of the Hessian's diagonal, with step search and restart, from the best bias; one label."""
    w = np.zeros(x.shape[1])
    if bias:
        w[-1] = (cost * y).sum() / cost.sum() / bias
    old, point, steep, pace = w, w, 1.0, 1.0
    metric = 1e-6 + 2 * (x**2).T @ cost

    def loss(v):
        return (cost * np.maximum(0, 1 - y * (x @ v)) ** 2).sum()

    for _ in range(max_iter):
        grad = -2 * x.T @ (cost * y * np.maximum(0, 1 - y * (x @ point)))
        steep *= 0.9
        while True:
            free = point - grad / metric / steep
            w = np.sign(free) * np.maximum(np.abs(free) - l1 / metric / steep, 0)
            change = w - point
            bound = loss(point) + grad @ change + 0.5 * steep * (metric * change**2).sum() + 1e-6 * loss(point)
            gaps.decide(loss(w) - bound)
            if loss(w) <= bound:
                break
            steep *= 2
        worst = np.abs(change * metric).max() * steep
        gaps.decide(worst - eps * l1)
        if not worst > eps * l1:
            break
        turn = (point - w) @ (w - old)
        gaps.decide(turn)
        pace = 1.0 if turn > 0 else pace
        following = (1 + math.sqrt(1 + 4 * pace**2)) / 2
        point, old, pace = w + (pace - 1) / following * (w - old), w, following
    return w


def pair_distances(x, z, ids):
    """|x - z|² for the rows of z that ids names."""
    return np.array([[((x[i] - z[j]) ** 2).sum() if j >= 0 else 0 for j in row] for i, row in enumerate(ids)])


def train_level(
    x, y, cost, m, child_ptr, *, loss, cp, cn, eps, max_iter, bias, threshold, seed, tree, level, gaps,
    solver="dual", mean=False, l1=0.1, negative=None, first=None,
):  # fmt: skip
    """W (d + 1, K) with pruning; y, cost (n, K), m (n, parents) dense 0/1; first (K, last features and bias)."""
    n = len(x)
    xb = np.hstack([x, np.full((n, 1), bias)])
    w = np.zeros((xb.shape[1], y.shape[1]))
    for parent in range(len(child_ptr) - 1):
        children = range(child_ptr[parent], child_ptr[parent + 1])
        pool = [i for i in range(n) if m[i, parent] or any(y[i, c] for c in children)]
        for c in children:
            # Positives outside the shortlist join only their own label's problem; the order is the pool's.
            use = {i for i in pool if m[i, parent] or y[i, c]}

            def visit(p, pool=pool, use=use, parent=parent):
                order = shuffled(len(pool), key(key(seed, tree, level, parent), p))
                rank = {i: r for r, i in enumerate(sorted(use))}
                return [rank[pool[o]] for o in order if pool[o] in use]

            rows = sorted(use)
            if not rows:
                continue
            sign = np.where(y[rows, c] > 0, 1.0, -1.0)
            costs = np.where(y[rows, c] > 0, cp * cost[rows, c], cn * (1 if negative is None else negative[c]))
            if solver == "newton":
                given = None if first is None else np.zeros(len(w))
                if given is not None:
                    given[len(w) - first.shape[1] :] = [*first[c, :-1], first[c, -1] / bias if bias else 0]
                w[:, c] = solve_newton(xb[rows], sign, costs, eps, max_iter, mean, gaps, given)
            elif solver == "proximal":
                w[:, c] = solve_proximal(xb[rows], sign, costs, l1, eps, max_iter, bias, gaps)
            elif loss == "logistic":
                w[:, c] = solve_logistic(xb[rows], sign, costs, visit, eps, max_iter, gaps)
            else:
                w[:, c] = solve_hinge(xb[rows], sign, costs, visit, eps, max_iter, loss == "squared-hinge", gaps, mean)
    return np.where(np.abs(w) >= threshold, w, 0)


def beam(x, weights, child_ptrs, combiners, keeps, discount=1.0, bias=1.0):
    """Lists of (node, score) for each row; weights are (d + 1, K_t) per level."""
    out = []
    for row in np.hstack([x, np.full((len(x), 1), bias)]):
        nodes = [(0, 0.0)]
        for t, w in enumerate(weights):
            margins = row @ w
            scored = []
            for parent, score in nodes:
                children = range(child_ptrs[t][parent], child_ptrs[t][parent + 1])
                if len(children) == 1 and t + 1 < len(weights) and combiners[t] != "noop":
                    scored.append((children[0], score))  # an only child above the labels is its parent
                    continue
                for c in children:
                    scored.append((c, _combine(combiners[t], discount * score, margins[c])))
            scored.sort(key=lambda pair: (-pair[1], pair[0]))
            nodes = scored[: keeps[t]]
            if combiners[t] == "noop" and t + 1 < len(weights):
                nodes = [(c, 0.0) for c, _ in nodes]
        last = combiners[-1]
        out.append([(c, s if last == "noop" else math.exp(s)) for c, s in nodes])
    return out


def _combine(combiner: str, parent: float, margin: float) -> float:
    if combiner == "noop":
        return margin
    if combiner == "sigmoid":
        return parent - np.logaddexp(0, -margin)
    return parent - max(0.0, 1 - margin) ** int(combiner[1])


def merge(
    lists: list[tuple[np.ndarray, np.ndarray, float, bool]], average: str, length: int, keep: int
) -> list[list[tuple[int, np.float32]]]:
    """One ranking from members' (ids, scores, weight, margins), row by row and label by label."""
    merged = []
    for i in range(len(lists[0][0])):
        labels = sorted({int(v) for ids, *_ in lists for v in ids[i] if v >= 0})
        total = dict.fromkeys(labels, 0.0)
        for m, (ids, scores, weight, margins) in enumerate(lists):
            named = [(int(v), float(s)) for v, s in zip(ids[i], scores[i], strict=True) if v >= 0]
            rank = {v: r for r, (v, _) in enumerate(named)}
            score = dict(named)
            exps = sum(np.exp(s - named[0][1]) for _, s in named)
            for v in labels:
                if average == "round-robin":
                    turn = rank.get(v, length) * len(lists) + m
                    total[v] = max(total[v], 1 - turn / (length * len(lists)))
                elif v not in rank:
                    total[v] += weight * (min(0.0, named[-1][1]) if average == "mean" and named else 0.0)
                elif average == "mean":
                    total[v] += weight * score[v]
                elif average == "softmax":
                    total[v] += weight * np.exp(score[v] - named[0][1]) / exps
                elif average == "sigmoid":
                    total[v] += weight * (1 / (1 + np.exp(-score[v])) if margins else score[v])
                else:
                    total[v] += weight * (length - rank[v]) / length
        order = sorted(labels, key=lambda v: (-total[v], v))
        merged.append([(v, np.float32(total[v])) for v in order[:keep]])
    return merged


def unit_rows(x: np.ndarray) -> np.ndarray:
    """Every row scaled to length one, in double; a row of zeros stays."""
    lengths = np.sqrt((x.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    return x / np.where(lengths > 0, lengths, 1)


def repeated(strings: list[str]) -> int:
    """The smallest position whose string stands earlier too, of the string smallest in bytes; -1: none."""
    seen: dict[str, list[int]] = {}
    for i, string in enumerate(strings):
        seen.setdefault(string, []).append(i)
    again = sorted((string.encode(), places[1]) for string, places in seen.items() if len(places) > 1)
    return again[0][1] if again else -1
