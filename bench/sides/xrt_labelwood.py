"""labelwood's xr-transformer on the same texts, encoder, tokens, steps and batch as `xrt_pecos.py`.

python xrt_labelwood.py FOLDER OUT.json
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from side import cpu_seconds

import labelwood as lw
from labelwood.base.progress import Silent


def main(folder: Path, out: Path) -> None:
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    texts, held = (json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("texts", "held"))
    y = sparse.load_npz(folder / "y.npz")
    lists = [[str(label) for label in row.indices] for row in y]
    branch, codes, leaf = about["tree"]
    settings = {
        "encoder.model": about["encoder"], "encoder.max_tokens": about["tokens"], "finetune.batch": about["batch"],
        "finetune.steps": about["steps"], "optimiser.lr": about["lr"], "coarse.branch": branch,
        "coarse.min_codes": codes, "coarse.leaf": leaf, **about["settings"],
    }  # fmt: skip
    progress = Silent()
    start, cpu = time.perf_counter(), cpu_seconds()
    model = lw.train(
        texts, lists, method="xr-transformer", settings=settings, run=lw.Run(about["threads"], progress=progress)
    )
    result = {"train s": time.perf_counter() - start, "train CPU s": cpu_seconds() - cpu}
    result["tuning s"] = sum(s for name, s in progress.timings.items() if name.startswith("fine-tuning"))
    model.predict(held[:64])
    start = time.perf_counter()
    ids, _ = model.predict_arrays(held, k=10, threads=about["threads"])
    result["docs/s"] = len(held) / (time.perf_counter() - start)
    numbers = np.array([int(name) for name in model.labels] + [-1])
    np.save(out.with_suffix(".npy"), numbers[ids])
    times = []
    for text in held[:40]:
        start = time.perf_counter()
        model.predict([text], k=10, threads=about["threads"])
        times.append(1000 * (time.perf_counter() - start))
    result["one ms"] = float(np.median(times[2:]))
    out.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
