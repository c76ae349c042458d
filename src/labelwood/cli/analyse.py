"""`labelwood analyse`: what a trained network does inside, as a table, JSON and figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.progress import Terminal
from ..data import ReadOptions, read
from ..errors import MissingExtraError, needs
from ..models.ensemble import load
from . import show
from .files import write
from .options import DATA_FLAGS, ModelFolder, Threads, expand

if TYPE_CHECKING:
    from ..evaluation.network_analysis import Analysis


@expand("options", ReadOptions(split="test"), DATA_FLAGS)
def analyse(
    model: ModelFolder,
    test: Annotated[Path, typer.Argument(metavar="TEST", help="Held-out data.", show_default=False)],
    *,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where JSON and figures go.")] = Path("analysis"),
    beside: Annotated[
        Path | None, typer.Option("--beside", metavar="DIR", help="Another model, drawn into the same figures.")
    ] = None,
    most: Annotated[int, typer.Option("--most", help="Documents that are looked at.", min=1)] = 4000,
    threads: Threads = 0,
    options: ReadOptions,
) -> None:
    """Look inside a model with an encoder.

    Recall of each level's shortlist, attention of the first token by layer, and how alike the layers' vectors are, next
    to the pretrained encoder.
    """
    from ..evaluation.network_analysis import analyse as look

    data, found = read(test, options), []
    for folder in (model, *([] if beside is None else [beside])):
        found.append(look(load(folder), data, threads=threads, most=most, progress=Terminal()))
        _say(folder, found[-1], first=len(found) == 1)
    out.mkdir(parents=True, exist_ok=True)
    for name, one in zip(("analysis", "beside"), found, strict=False):
        write(str(out / f"{name}.json"), [json.dumps(one.to_json(), indent=2).encode() + b"\n"])
    try:
        figures(found, out)
    except MissingExtraError as error:
        show.say(f"no figures: {error}")
        return
    show.say(f"JSON and figures are in {out}")


def _say(model: Path, found: Analysis, *, first: bool) -> None:
    show.heading(f"{model}: {found.method}, {found.documents:,} documents", first=first)
    rows = [(str(k.level), f"{k.clusters:,}", f"{k.kept:,}", f"{k.recall:.2f}") for k in found.shortlists]
    if rows:
        show.table(rows, ("level", "clusters", "kept", "recall %"), right=[0, 1, 2, 3])
        show.say(f"labels whose whole path is kept: {found.paths:.2f} %")
    if found.remark:
        show.say(found.remark)


def figures(models: list[Analysis], out: Path) -> None:
    """attention.svg (Fig. 2 and 3 of CascadeXML's appendix) and similarity.svg (Fig. 4); the first model's pretrained
    encoder stands beside all of them."""
    with needs("drawing figures", "figures"):
        import matplotlib as mpl

        mpl.use("svg")
        from matplotlib import pyplot as plt
    mpl.rcParams["svg.hashsalt"] = "labelwood"
    found = models[0]
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    titles = {"self_mean": "first token to itself, mean of heads", "self_max": "first token to itself, largest head"}
    titles["entropy"] = "entropy of its attention, nats"
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        for model, color in zip(models, ("tab:green", "tab:purple"), strict=False):
            _line(axis, getattr(model.attention, name), model.method, color)
        if found.pretrained_attention is not None:
            _line(axis, getattr(found.pretrained_attention, name), "pretrained", "0.5", "o--")
        last = [max(read_) for read_ in found.layers]
        for layer in sorted(set(last)):
            levels = [str(t) for t, read_ in enumerate(last, 1) if read_ == layer]
            axis.axvline(layer, color="0.85", zorder=0)
            axis.annotate(f"level {', '.join(levels)}", (layer, 1), (0, 2), xycoords=("data", "axes fraction"),
                          textcoords="offset points", fontsize=7, ha="center", va="bottom")  # fmt: skip
        axis.set_title(title, pad=16)
        axis.set(xlabel="layer", xticks=range(1, len(found.similarity) + 1))
        axis.set_ylim(bottom=0)
    axes[0].legend(frameon=False)
    figure.savefig(out / "attention.svg", metadata={"Date": None})
    plt.close(figure)
    tables = [(f"{model.method} ({model.pooling})", model.similarity) for model in models]
    if found.pretrained_similarity is not None:
        tables.append((f"pretrained ({found.pooling})", found.pretrained_similarity))
    figure, axes = plt.subplots(1, len(tables), figsize=(4.6 * len(tables), 4), layout="constrained", squeeze=False)
    for axis, (name, table) in zip(axes[0], tables, strict=True):
        axis.imshow(table, vmin=0, vmax=1, cmap="viridis")
        for i, row in enumerate(table):
            for j, value in enumerate(row):
                axis.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8, color="w" if value < 0.6 else "k")
        axis.set(title=f"PWCCA, {name}", xlabel="layer", ylabel="layer")
        axis.set_xticks(range(len(table)), [str(t + 1) for t in range(len(table))])
        axis.set_yticks(range(len(table)), [str(t + 1) for t in range(len(table))])
    figure.savefig(out / "similarity.svg", metadata={"Date": None})
    plt.close(figure)


def _line(axis: Any, values: list[float], label: str, color: str, style: str = "o-") -> None:
    axis.plot(range(1, len(values) + 1), values, style, color=color, label=label)
