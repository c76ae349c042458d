"""One training and one bulk prediction of labelwood, run by the interpreter of any checkout: CPU seconds, as JSON.

python pair_labelwood.py DATA '{"method": "xr-linear", "preset": "fast"}' THREADS
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

import labelwood as lw


def main(data: Path, options: dict[str, str], threads: int) -> None:
    """Train on X and Y in memory, answer all held-out rows; the answer's P@1 and P@5 go along."""
    warnings.simplefilter("ignore")
    x, y, held, truth = (sparse.load_npz(data / f"{name}.npz") for name in ("x", "y", "held_x", "truth"))
    start = time.process_time()
    how = {"run": lw.Run(threads)} if hasattr(lw, "Run") else {"threads": threads}  # older checkouts
    model = lw.train(X=x, labels=y, **how, **options)
    trained = time.process_time()
    ids, _ = model.predict_arrays(X=held, k=5, threads=threads)
    done = time.process_time()
    names = np.array([int(name) for name in model.labels])
    rows = np.repeat(np.arange(held.shape[0]), 5)
    hits = np.asarray(truth[rows, names[ids].ravel()]).reshape(ids.shape) > 0
    found = {"training": trained - start, "prediction": done - trained}
    print(json.dumps(found | {"P@1": 100 * hits[:, 0].mean(), "P@5": 100 * hits.mean()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3]))
