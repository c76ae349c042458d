"""The metrics once more, said as plainly as they can be: lists, sets and fsum. Slow, and easy to check by eye."""

from __future__ import annotations

from math import fsum, log, log2


def inverse_propensity(count, n_train, a, b):
    c = max(0.0, log(n_train) - 1) * (b + 1) ** a
    return 1 + c * (count + b) ** (-a)


def ratio(top, bottom):
    return 100 * top / bottom if bottom else 0.0


def metrics(predicted, truth, label_counts, n_train, config):
    """`predicted`: lists of ids, best first (-1: none); `truth`: sets of ids. Returns {"P@1": percent, ...}."""

    def count(label):
        return label_counts[label] if label < len(label_counts) else 0

    def q(label):
        return inverse_propensity(count(label), n_train, *config.constants)

    pairs = list(zip(predicted, truth, strict=True))
    if config.unseen == "drop":
        pairs = [(ranked, {label for label in true if count(label) > 0}) for ranked, true in pairs]
        pairs = [(ranked, true) for ranked, true in pairs if true]
    found = {}
    for k in config.ks:
        precision, recall, ndcg, ps, ps_best, psn, psn_best = [], [], [], [], [], [], []
        for ranked, true in pairs:
            hits = [(rank, label) for rank, label in enumerate(ranked[:k], start=1) if label in true]
            best = sorted((q(label) for label in true), reverse=True)[:k]
            ideal = fsum(1 / log2(rank + 1) for rank in range(1, min(k, len(true)) + 1)) or 1.0
            precision.append(len(hits) / k)
            recall.append(len(hits) / max(1, len(true)))
            ndcg.append(fsum(1 / log2(rank + 1) for rank, _ in hits) / ideal)
            ps.append(fsum(q(label) for _, label in hits))
            ps_best.append(fsum(best))
            scale = ideal if config.psndcg == "xclib" else 1.0
            psn.append(fsum(q(label) / log2(rank + 1) for rank, label in hits) / scale)
            psn_best.append(fsum(value / log2(rank + 1) for rank, value in enumerate(best, start=1)) / scale)
        found[f"P@{k}"] = ratio(fsum(precision), len(pairs))
        found[f"R@{k}"] = ratio(fsum(recall), len(pairs))
        found[f"nDCG@{k}"] = ratio(fsum(ndcg), len(pairs))
        found[f"PSP@{k}"] = ratio(fsum(ps), fsum(ps_best))
        found[f"PSnDCG@{k}"] = ratio(fsum(psn), fsum(psn_best))
        found[f"coverage@{k}"], found[f"macro-F1@{k}"] = by_label(pairs, k)
    return found


def by_label(pairs, k):
    labels = set().union(*(true for _, true in pairs)) if pairs else set()
    covered, f1 = 0, []
    for label in labels:
        tp = sum(label in true and label in ranked[:k] for ranked, true in pairs)
        positives = sum(label in true for _, true in pairs)
        chosen = sum(label in ranked[:k] for ranked, _ in pairs)
        covered += tp > 0
        f1.append(2 * tp / (positives + chosen))
    return ratio(covered, len(labels)), ratio(fsum(f1), len(labels))
