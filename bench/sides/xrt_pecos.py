"""PECOS's XR-Transformer on prepared texts: train, measure where its time goes, predict. Runs in an environment with
libpecos 1.2.8, transformers 4.46.3 and peft 0.13.2; later ones lack what it imports.

    python xrt_pecos.py FOLDER OUT.json
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from pecos.utils.featurization.text.preprocess import Preprocessor  # noqa: F401 — fails early where PECOS is broken
from pecos.xmc.xtransformer import matcher
from pecos.xmc.xtransformer.model import XTransformer
from pecos.xmc.xtransformer.module import MLProblemWithText
from scipy import sparse
from side import best, cpu_seconds

WORKERS = 1  # 0 kills the process after fine-tuning (its matrix product divides by the number of workers)


def main(folder: Path, out: Path) -> None:
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    texts, held = (json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("texts", "held"))
    x, y, held_x = (sparse.load_npz(folder / f"{name}.npz").astype(np.float32) for name in ("x", "y", "held_x"))
    torch.set_num_threads(about["threads"])
    chain = {
        "model_shortcut": about["encoder"], "negative_sampling": "tfn+man", "loss_function": "weighted-squared-hinge",
        "bootstrap_method": "weighted-linear", "threshold": 0.001, "batch_size": about["batch"],
        "batch_gen_workers": WORKERS, "max_steps": 0, "learning_rate": about["lr"], "warmup_steps": about["warmup"],
        "save_steps": 0, "logging_steps": 10_000, "cost_sensitive_ranker": True, "use_gpu": False,
    }  # fmt: skip
    levels = [{**chain, "max_steps": steps, "save_steps": steps} for steps in about["steps"]]
    splits, codes, leaf = about["tree"]
    train = XTransformer.TrainParams.from_dict(
        {
            "preliminary_indexer_params": {"nr_splits": splits, "min_codes": codes, "max_leaf_size": leaf},
            "refined_indexer_params": {"nr_splits": 16, "max_leaf_size": 100},
            "matcher_params_chain": levels,
            "ranker_params": {"hlm_args": {"model_chain": {"threshold": 0.001}}},
        },
        recursive=True,
    )
    chained = {"only_topk": 10, "post_processor": "l3-hinge", "truncate_length": about["tokens"],
               "ensemble_method": "concat-only"}  # fmt: skip
    pred = XTransformer.PredParams.from_dict({"matcher_params_chain": [chained] * len(levels)}, recursive=True)
    spent = watch()
    start, cpu = time.perf_counter(), cpu_seconds()
    model = XTransformer.train(
        MLProblemWithText(texts, y, X_feat=x), train_params=train, pred_params=pred, threads=about["threads"]
    )
    result = {"train s": time.perf_counter() - start, "train CPU s": cpu_seconds() - cpu, "tuning s": spent[0]}
    options = {"batch_size": 64, "batch_gen_workers": WORKERS, "use_gpu": False, "threads": about["threads"]}
    start = time.perf_counter()
    found = model.predict(held, X_feat=held_x, only_topk=10, **options)
    result["docs/s"] = len(held) / (time.perf_counter() - start)
    np.save(out.with_suffix(".npy"), best(found, 10))
    for name, workers in (("one ms", 0), ("one ms as it comes", WORKERS)):
        times = []
        for i in range(40 if workers == 0 else 12):
            start = time.perf_counter()
            model.predict([held[i]], X_feat=held_x[i], only_topk=10, **{**options, "batch_gen_workers": workers})
            times.append(1000 * (time.perf_counter() - start))
        result[name] = float(np.median(times[2:]))
    out.write_text(json.dumps(result), encoding="utf-8")


def watch() -> list[float]:
    """Seconds spent in its fine-tuning loops, as they come."""
    spent, inner = [0.0], matcher.TransformerMatcher.fine_tune_encoder

    def timed(self, *given, **named):  # type: ignore[no-untyped-def]
        start = time.perf_counter()
        try:
            return inner(self, *given, **named)
        finally:
            spent[0] += time.perf_counter() - start

    matcher.TransformerMatcher.fine_tune_encoder = timed
    return spent


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
