"""Heads over 30 thousand to 3 million labels: time of a training step, memory, and time of a search.

    python bench/heads.py --labels 30000 300000 3000000 --steps 200 --out heads.json --figure docs/results/heads.svg
    python bench/heads.py --documents 32 128 256 --threads 1
    python bench/heads.py --products --threads 1

Synthetic documents of 32 random tokens with 5 random labels each; the encoder is the default one. Trees have 2^10, 2^13
and 2^16 clusters where there are labels enough, as CascadeXML's largest; second moments are kept by row. A step is
measured with all heads, and with the first level alone: the difference is what the labels cost. A search is that of the
trained heads from given vectors, one document at a time on one thread; beside it a beam of ten over a tree of 32
children, as XR-Transformer's classifiers have, on the same vectors. Each row runs in a process of its own. --out keeps
the rows; those of the same version, steps and threads that it has are not measured again.

--documents measures steps of so many documents at a million labels, where no two documents have a candidate in common:
each has 256 of 2^16 clusters of its own. --products measures the rule by which a step multiplies pairs or whole
matrices (neural/training/products.py): forward and backward products at several shares of the nodes that are
candidates. Both say CPU time: other processes may run beside them.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from prepare import version

KEPT = (128, 256, 95)  # clusters kept at each level, as for Amazon-3M
DOCS, LENGTH, BATCH = 4096, 32, 32


def pointers(sizes: list[int]) -> list[np.ndarray]:
    """Children of equal numbers, level by level."""
    return [np.linspace(0, b, a + 1).astype(np.int64) for a, b in zip([1, *sizes[:-1]], sizes, strict=True)]


def clusters(labels: int) -> list[int]:
    return [size for size in (2**10, 2**13, 2**16) if size * 4 <= labels]


def one(labels: int, steps: int, threads: int) -> dict[str, Any]:
    """All figures at one number of labels."""
    import torch

    from labelwood.neural.encoders import encoder as encoders
    from labelwood.neural.encoders import pretrained
    from labelwood.neural.encoders.tokens import Tokens
    from labelwood.neural.training.head import Head
    from labelwood.neural.training.trainer import DynamicShortlist, Task
    from labelwood.recipes.encoder_settings import EncoderConfig, Reading

    torch.set_num_threads(threads)
    rng = np.random.default_rng(0)
    sizes = [*clusters(labels), labels]
    ptrs = pointers(sizes)
    net = encoders.load(pretrained.find("minilm"), EncoderConfig(model="minilm"))
    net.read([Reading((max(1, net.depth - len(sizes) + 1 + t),), "cls") for t in range(len(sizes))])
    tokens = Tokens(rng.integers(1000, 20000, DOCS * LENGTH).astype(np.int32), np.arange(DOCS + 1) * LENGTH, 2)
    truth = random_truth(ptrs, sizes, rng)
    base = peak()
    generator = torch.Generator().manual_seed(0)
    heads = [Head.random(size, net.width, generator, glorot=True, moments="row") for size in sizes]
    tasks = [
        Task(head, t, y, None, ptr, "logistic", 1.0, 1e-3, 0.2, 1.0, DynamicShortlist(KEPT[t - 1]) if t else None)
        for t, (head, y, ptr) in enumerate(zip(heads, truth, ptrs, strict=True))
    ]
    found = trained(net, tokens, tasks, steps)
    found |= {"peak GB": peak(), "base GB": base, "rows": sum(head.moments.used for head in heads)}
    found |= {"weights GB": sum(head.table.numel() for head in heads) * 4 / 1e9}
    found |= searched(net.embed(tokens.first(64)), net.width, [head.table.numpy() for head in heads], ptrs)
    return {"labels": labels, "levels": "-".join(map(str, sizes)), **found}


def peak() -> float:
    """Gigabytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def random_truth(ptrs: list[np.ndarray], sizes: list[int], rng: np.random.Generator) -> list[Any]:
    """Y of every level: random labels, and their clusters."""
    from labelwood.arrays.sparse import Csr

    nodes = [np.sort(rng.integers(0, sizes[-1], (DOCS, 5)), axis=1)]
    for ptr in reversed(ptrs[1:]):
        nodes.insert(0, np.searchsorted(ptr, nodes[0], "right") - 1)
    found = []
    for level, size in zip(nodes, sizes, strict=True):
        rows = [np.unique(row) for row in level]
        flat = np.concatenate(rows).astype(np.int32)
        found.append(Csr(np.cumsum([0, *map(len, rows)]), flat, np.ones(len(flat), np.float32), size))
    return found


def trained(net: Any, tokens: Any, tasks: list[Any], steps: int) -> dict[str, Any]:
    """Median seconds of a step with all heads, what of it the levels below the first take, and candidates."""
    from labelwood.neural.training.trainer import Schedule, Trainer

    schedule = Schedule(steps, BATCH, 16384, 1e-4, 0.1, 0.0, 0.0, None, 1)
    seconds, width = [], 0.0
    for some, count in ((tasks[:1], 10), (tasks, steps)):
        trainer = Trainer(net, some, tokens, np.arange(DOCS), schedule, key=(0, 0))
        times = []
        for _ in range(count):
            start = time.perf_counter()
            _, width = trainer.advance()
            times.append(time.perf_counter() - start)
        seconds.append(float(np.median(times[2:])))
    return {"step": seconds[1], "heads": seconds[1] - seconds[0], "candidates": width}


def disjoint(documents: int, steps: int = 6) -> dict[str, Any]:
    """CPU time and memory of a step whose documents have 256 clusters of their own among a million labels."""
    import torch

    from labelwood.arrays.sparse import Csr
    from labelwood.neural.encoders import encoder as encoders
    from labelwood.neural.encoders import pretrained
    from labelwood.neural.encoders.tokens import Tokens
    from labelwood.neural.training.head import Head
    from labelwood.neural.training.trainer import Schedule, Task, Trainer
    from labelwood.recipes.encoder_settings import EncoderConfig

    labels, parents, own = 1_000_000, 2**16, 256
    rng, ptr = np.random.default_rng(0), np.linspace(0, labels, parents + 1).astype(np.int64)
    net = encoders.load(pretrained.find("minilm"), EncoderConfig(model="minilm"))
    tokens = Tokens(
        rng.integers(1000, 20000, documents * LENGTH).astype(np.int32), np.arange(documents + 1) * LENGTH, 2
    )
    each, rows = np.arange(documents + 1), np.arange(documents * own, dtype=np.int32)
    m = Csr(each * own, rows, np.ones(len(rows), np.float32), parents)
    y = Csr(each, ptr[each[:-1] * own].astype(np.int32), np.ones(documents, np.float32), labels)
    few = Csr(each, np.zeros(documents, np.int32), np.ones(documents, np.float32), 2)
    generator, found = torch.Generator().manual_seed(0), []
    for nodes, truth, shortlist in ((2, few, None), (labels, y, m)):
        head = Head.random(nodes, net.width, generator)
        task = Task(head, 0, truth, shortlist, ptr if shortlist else np.array([0, 2]), "logistic", 1.0, 1e-3)
        schedule = Schedule(steps, documents, 16384, 1e-4, 0.1, 0.0, 0.0, 1.0, 1)
        trainer = Trainer(net, [task], tokens, np.arange(documents), schedule, key=(0, 0))
        times = []
        for _ in range(steps):
            start = time.process_time()
            _, width = trainer.advance()
            times.append(time.process_time() - start)
        found.append(float(np.median(times[2:])))
    heads = (found[1] - found[0]) / documents
    return {"documents": documents, "candidates": width, "step": found[1], "ms": 1000 * heads, "peak GB": peak()}


def shares(nodes: int, documents: int = 32, width: int = 384) -> list[tuple[float, float, float]]:
    """Milliseconds of the products of pairs, and of whole matrices, forward and backward, at shares of candidates."""
    import torch

    from labelwood.neural.training import products
    from labelwood.neural.training.candidates import Candidates

    rng, rows = np.random.default_rng(0), []
    table, x = torch.randn(nodes, width + 1), torch.randn(documents, width + 1, requires_grad=True)
    for share in (0.05, 0.1, 0.2, 0.25, 0.33, 0.5, 1.0):
        mask = np.repeat(rng.random((documents, nodes // 16)) < share, 16, axis=1)
        candidates = Candidates(np.concatenate([[0], np.cumsum(mask.sum(1))]), np.nonzero(mask)[1])
        grad, medians = torch.randn(candidates.pairs), []
        for products.WHOLE in (0, 10**9):
            times = []
            for _ in range(9):
                start = time.process_time()
                products.products(x, table, candidates).backward(grad)
                times.append(time.process_time() - start)
            medians.append(1000 * float(np.median(times)))
        rows.append((share, *medians))
    return rows


def searched(x: np.ndarray, width: int, tables: list[np.ndarray], ptrs: list[np.ndarray]) -> dict[str, Any]:
    """Milliseconds of a search down the heads, and of a beam over a tree of 32 children with the last head's rows."""
    from labelwood.parts.linear_level import from_weights
    from labelwood.parts.search import Search, SearchConfig, search

    depth, last = len(tables), tables[-1]
    levels = [
        from_weights(table[:, :-1], table[:, -1].copy(), ptr, "float16", t * width)
        for t, (table, ptr) in enumerate(zip(tables, ptrs, strict=True))
    ]
    config = SearchConfig(beam=(*KEPT[: depth - 1], 1), combiner=("noop",) * (depth - 1) + ("sigmoid",))
    cascade = timed(lambda row: search(row, levels, Search(config, depth, 10, cols=(0, x.shape[1])), threads=1), x)
    sizes = [*(k for k in (32, 1024, 32768) if k * 8 <= len(last)), len(last)]
    beam = [
        from_weights(last[:size, :-1], last[:size, -1].copy(), ptr, "float16")
        for size, ptr in zip(sizes, pointers(sizes), strict=True)
    ]
    dense = np.ascontiguousarray(x[:, -width:])
    others = timed(lambda row: search(row, beam, Search(SearchConfig(), len(beam), 10), threads=1), dense)
    return {"cascade ms": cascade, "beam ms": others}


def timed(call: Any, x: np.ndarray) -> float:
    """Median milliseconds of one row."""
    from labelwood.arrays.sparse import Features

    times = []
    for i in range(len(x)):
        row = Features(dense=x[i : i + 1])
        start = time.perf_counter()
        call(row)
        times.append(1000 * (time.perf_counter() - start))
    return float(np.median(times[8:]))


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| labels | levels | candidates a document | step s | of it for the labels s | weights GB | peak GB | "
        "before the heads GB | search ms | beam of ten ms |",
        "|---" * 10 + "|",
    ]
    for r in rows:
        lines.append(
            f"| {r['labels']:,} | {r['levels']} | {r['candidates']:,.0f} | {r['step']:.2f} | {r['heads']:.2f} | "
            f"{r['weights GB']:.2f} | {r['peak GB']:.2f} | {r['base GB']:.2f} | {r['cascade ms']:.2f} | "
            f"{r['beam ms']:.2f} |"
        )
    return "\n".join(lines)


def draw(rows: list[dict[str, Any]], file: Path) -> None:
    """Step time, memory and search time by the number of labels."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "labelwood"
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained", sharex=True)
    panels = (
        ("a training step of 32 documents, s", {"whole": "step", "of it for the labels": "heads"}),
        ("memory, GB", {"peak": "peak GB", "weights of the heads": "weights GB"}),
        ("search of one document, ms", {"the heads' shortlists": "cascade ms", "a beam of ten": "beam ms"}),
    )
    labels = [r["labels"] for r in rows]
    for axis, (title, lines) in zip(axes, panels, strict=True):
        for name, key in lines.items():
            axis.plot(labels, [r[key] for r in rows], "o-", label=name)
        axis.set(title=title, xlabel="labels", xscale="log", ylim=(0, None))
        axis.legend(frameon=False)
    figure.savefig(file, metadata={"Date": None})


def steps_and_products(options: argparse.Namespace) -> None:
    """The rows of --documents, each in a process of its own, and those of --products."""
    import torch

    torch.set_num_threads(options.threads)
    documents = options.documents or []
    if options.one:
        print(json.dumps(disjoint(documents[0])))
        return
    if documents:
        print("| documents | candidates each | step s | of it for the labels, ms a document | peak GB |")
        print("|---" * 5 + "|")
    for count in documents:
        command = [sys.executable, __file__, "--one", "--documents", str(count), "--threads", str(options.threads)]
        r = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        print(
            f"| {count} | {r['candidates']:,.0f} | {r['step']:.2f} | {r['ms']:.1f} | {r['peak GB']:.2f} |", flush=True
        )
    if options.products:
        print("| nodes | documents | share of candidates | pairs ms | whole ms |")
        print("|---" * 5 + "|")
        for nodes, count in ((1024, 32), (16384, 32), (16384, 256)):
            for share, pairs, whole in shares(nodes, count):
                print(f"| {nodes:,} | {count} | {share:.2f} | {pairs:.2f} | {whole:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, nargs="+", default=[30_000, 100_000, 300_000, 1_000_000, 3_000_000])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--documents", type=int, nargs="+", help="documents of a step, none with a candidate in common")
    parser.add_argument("--products", action="store_true", help="measure the rule of products.py")
    parser.add_argument("--one", action="store_true", help="this process measures one row and prints it as JSON")
    parser.add_argument("--out", type=Path, help="a JSON file of the rows")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    if options.documents or options.products:
        steps_and_products(options)
        return
    if options.one:
        print(json.dumps(one(options.labels[0], options.steps, options.threads)))
        return
    common = {"steps": options.steps, "threads": options.threads, "version": version()}
    kept = options.out is not None and options.out.exists()
    rows = json.loads(options.out.read_text(encoding="utf-8")) if kept else []
    rows = [row for row in rows if common.items() <= row.items()]
    for labels in options.labels:
        if any(row["labels"] == labels for row in rows):
            continue
        command = [sys.executable, __file__, "--one", "--labels", str(labels), "--steps", str(options.steps)]
        done = subprocess.run([*command, "--threads", str(options.threads)], check=True, stdout=subprocess.PIPE)
        rows.append({**json.loads(done.stdout), **common})
        print(table(rows[-1:]).splitlines()[-1], flush=True)
        if options.out is not None:
            options.out.write_text(json.dumps(rows), encoding="utf-8")
    print("\n" + table(rows))
    if options.figure is not None:
        draw(rows, options.figure)


if __name__ == "__main__":
    main()
