"""Figures of reports, as SVG files that are the same bytes for the same numbers (extra `figures`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import needs

if TYPE_CHECKING:
    from ..evaluation.network_analysis import Analysis
    from .leaderboard import Standing

MARKS = "osD^v<>Pp*X"  # of a figure's points, so that colours are not all that tells them apart
ATTENTION = {
    "self_mean": "first token to itself, mean of heads",
    "self_max": "first token to itself, largest head",
    "entropy": "entropy of its attention, nats",
}


def draw_leaderboard(rows: Sequence[Standing], file: Path) -> None:
    """P@1 against the time of one text and against training time; the legend is in the order of the leaderboard."""
    plt = _pyplot("drawing a figure")
    drawn, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
    for axis, (name, title) in zip(axes, (("latency", "one text, ms"), ("training", "training, s")), strict=True):
        for i, row in enumerate(rows):
            x, y = max(1e-3, getattr(row, name)), row.metrics["P@1"]
            low, high = row.metrics["intervals"].get("P@1", (y, y))
            bar = [[max(0.0, y - low)], [max(0.0, high - y)]]
            look = {"fmt": MARKS[i % len(MARKS)], "color": f"C{i % 10}", "elinewidth": 0.8, "alpha": 0.9}
            axis.errorbar(x, y, yerr=bar, label=row.name, **look)
        axis.set(xscale="log", xlabel=title)
        axis.grid(alpha=0.3)
        axis.margins(x=0.1)
    axes[0].set_ylabel("P@1, with its 95 % interval")
    if rows:
        drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    drawn.savefig(file, metadata={"Date": None})
    plt.close(drawn)


def draw_analysis(models: Sequence[Analysis], folder: Path) -> None:
    """attention.svg (Fig. 2 and 3 of CascadeXML's appendix) and similarity.svg (Fig. 4).

    The first model's pretrained encoder stands beside all of them.
    """
    plt = _pyplot("drawing figures")
    _draw_attention(plt, models, folder / "attention.svg")
    _draw_similarity(plt, models, folder / "similarity.svg")


def _draw_attention(plt: Any, models: Sequence[Analysis], file: Path) -> None:
    first = models[0]
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for axis, (name, title) in zip(axes, ATTENTION.items(), strict=True):
        for model, color in zip(models, ("tab:green", "tab:purple"), strict=False):
            _line(axis, getattr(model.attention, name), model.method, color)
        if first.pretrained_attention is not None:
            _line(axis, getattr(first.pretrained_attention, name), "pretrained", "0.5", "o--")
        _mark_levels(axis, first)
        axis.set_title(title, pad=16)
        axis.set(xlabel="layer", xticks=range(1, len(first.similarity) + 1))
        axis.set_ylim(bottom=0)
    axes[0].legend(frameon=False)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def _draw_similarity(plt: Any, models: Sequence[Analysis], file: Path) -> None:
    first = models[0]
    tables = [(f"{model.method} ({model.pooling})", model.similarity) for model in models]
    if first.pretrained_similarity is not None:
        tables.append((f"pretrained ({first.pooling})", first.pretrained_similarity))
    figure, axes = plt.subplots(1, len(tables), figsize=(4.6 * len(tables), 4), layout="constrained", squeeze=False)
    for axis, (name, table) in zip(axes[0], tables, strict=True):
        axis.imshow(table, vmin=0, vmax=1, cmap="viridis")
        for i, row in enumerate(table):
            for j, value in enumerate(row):
                axis.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8, color="w" if value < 0.6 else "k")
        axis.set(title=f"PWCCA, {name}", xlabel="layer", ylabel="layer")
        axis.set_xticks(range(len(table)), [str(t + 1) for t in range(len(table))])
        axis.set_yticks(range(len(table)), [str(t + 1) for t in range(len(table))])
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def _mark_levels(axis: Any, model: Analysis) -> None:
    """A line at each layer that a level reads last."""
    last = [max(layers) for layers in model.layers]
    for layer in sorted(set(last)):
        levels = [str(t) for t, read in enumerate(last, 1) if read == layer]
        axis.axvline(layer, color="0.85", zorder=0)
        axis.annotate(
            f"level {', '.join(levels)}", (layer, 1), (0, 2), xycoords=("data", "axes fraction"),
            textcoords="offset points", fontsize=7, ha="center", va="bottom",
        )  # fmt: skip


def _line(axis: Any, values: list[float], label: str, color: str, style: str = "o-") -> None:
    axis.plot(range(1, len(values) + 1), values, style, color=color, label=label)


def _pyplot(what: str) -> Any:
    with needs(what, "figures"):
        import matplotlib as mpl

        mpl.use("svg")
        from matplotlib import pyplot as plt
    mpl.rcParams["svg.hashsalt"] = "labelwood"
    return plt
