"""Thousands of model folders from elsewhere: damaged by structure, digests repaired, then loaded, verified and asked.

    python tests/faults/mutants.py --linear 200000 --encoders 20000 --jobs 2

Each is opened in a process with a limit of memory, watched by another one. It must be refused by a ModelFileError or
give finite answers: no other exception, no crash, no hang, no memory beyond twice the folder and 64 MB, and nobody
opens the files that lie beside it as bait.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
FROZEN = TESTS / "files" / "v1"
LINEAR = ("xr-linear", "parabel", "dismec", "plt", "tail", "ensemble")
ENCODERS = ("onnx", "onnx-int8", "onnx", "onnx-int8", "xr-transformer", "cascadexml", "attentionxml")
QUESTIONS = ["word3 unheard words", "word7 word2 common, UNHEARD! äöü 123", ""]
SECONDS = 5.0  # of the processor, for one folder
SILENCE = 60.0  # seconds after which a worker is taken to hang
MEMORY = 64 * 2**20  # bytes beyond twice the folder
SPACE = 4 * 2**30  # bytes of address space beyond what a worker has when it begins
IN_ACCESS, IN_OPEN, IN_NONBLOCK = 0x1, 0x20, 0o4000


@dataclasses.dataclass
class Tally:
    """What became of mutants."""

    refused: int = 0  # at load
    verified: int = 0  # refused when verified
    late: int = 0  # refused when asked
    answered: int = 0
    seconds: float = 0.0  # of the processor
    slowest: float = 0.0
    failures: list[str] = dataclasses.field(default_factory=list)

    @property
    def count(self) -> int:
        """All of them."""
        return self.refused + self.verified + self.late + self.answered + len(self.failures)

    def add(self, other: dict[str, Any]) -> None:
        """Count another worker's."""
        for name in ("refused", "verified", "late", "answered", "seconds"):
            setattr(self, name, getattr(self, name) + other[name])
        self.slowest = max(self.slowest, other["slowest"])
        self.failures += other["failures"]

    def __str__(self) -> str:
        parts = f"{self.refused} refused at load, {self.verified} by verify, {self.late} when asked"
        times = (
            f"{1000 * self.seconds / max(1, self.count):.1f} s of a core for 1,000, the slowest {self.slowest:.2f} s"
        )
        return f"{self.count} mutants: {parts}, {self.answered} answered, {len(self.failures)} failures; {times}"


def templates(kind: str, folder: Path) -> list[Path]:
    """Sound models that mutants are made of: those of schema 1, and the same as they are written today."""
    import labelwood as lw

    found = []
    for name in LINEAR if kind == "linear" else ENCODERS[2:]:
        lw.load(FROZEN / name).save(folder / name)
        found.append(folder / name)
    if kind == "linear":
        return [*found, FROZEN / "xr-linear"]
    return [*found, FROZEN / "onnx", FROZEN / "onnx-int8", *_with_weights(folder)]


def _with_weights(folder: Path) -> list[Path]:
    """Models that are served by ONNX and hold weights, as they are written since schema 2, and one of transformers."""
    import labelwood as lw
    import tiny
    from toy import contract_set

    encoder = str(tiny.write(folder / "encoder"))
    texts, labels = contract_set()
    for name, setting in (
        ("a", ("runtime", "onnx")),
        ("b", ("runtime", "onnx-int8")),
        ("c", ("engine", "transformers")),
    ):
        settings = {"encoder.model": encoder, f"encoder.{setting[0]}": setting[1]}
        lw.train(texts, labels, method="dismec", settings=settings, run=lw.Run(1)).save(folder / name)
    return [folder / name for name in "abaabc"]


def run(kind: str, count: int, *, jobs: int = 2, seed: int = 0) -> Tally:
    """What becomes of so many mutants of linear models, or of those with encoders."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="labelwood-mutants-") as name:
        folder = Path(name)
        sources = templates(kind, folder)
        share = -(-count // jobs)
        ranges = [(seed + i * share, min(seed + count, seed + (i + 1) * share)) for i in range(jobs)]
        running = [Worker(sources, begin, end, folder / f"job-{i}") for i, (begin, end) in enumerate(ranges)]
        while running:
            running = [worker for worker in running if worker.step(tally)]
            time.sleep(0.05)
    return tally


class Worker:
    """A process that opens mutants; it is begun anew behind one that it does not survive."""

    def __init__(self, sources: list[Path], begin: int, end: int, folder: Path) -> None:
        self.sources, self.begin, self.end, self.folder = sources, begin, end, folder
        self.folder.mkdir()
        self.process: subprocess.Popen[bytes] | None = None
        self.seen = (-1, 0.0)  # the last mutant that was begun, and when

    def step(self, tally: Tally) -> bool:
        """Look after the process; False when all is done."""
        if self.process is None:
            if self.begin >= self.end:
                return False
            self._start()
            return True
        seed, now = self._beat(), time.monotonic()
        if seed != self.seen[0]:
            self.seen = (seed, now)
        hangs = now - self.seen[1] > SILENCE
        if self.process.poll() is None and not hangs:
            return True
        self.process.kill()
        code = self.process.wait()
        result = self.folder / "tally.json"
        if result.exists():
            tally.add(json.loads(result.read_text(encoding="utf-8")))
        if code == 0:
            self.begin = self.end
        else:
            last = (self.folder / "stderr").read_text(encoding="utf-8", errors="replace")[-500:]
            tally.failures.append(f"seed {seed}: {'a hang' if hangs else f'a crash, {code}'}: {last}")
            self.begin = seed + 1
        self.process = None
        return True

    def _start(self) -> None:
        for name in ("tally.json", "beat"):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / "beat").write_text(str(self.begin))
        (self.folder / "bait.bin").write_bytes(b"\0" * 4096)
        self.seen = (self.begin, time.monotonic())
        given = [str(self.begin), str(self.end), str(self.folder), *map(str, self.sources)]
        with (self.folder / "stderr").open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, __file__, "--work", *given], stderr=errors, cwd=self.folder
            )

    def _beat(self) -> int:
        return int((self.folder / "beat").read_text() or self.begin)


def work(begin: int, end: int, folder: Path, sources: list[Path]) -> None:
    """Open the mutants of some seeds, and keep count beside them."""
    import labelwood as lw
    from faults.mutate import Folder, mutate
    from faults.mutate_encoder import mutate_encoder

    sound = [Folder(source) for source in sources]
    for source in sources:
        model = lw.load(source)
        model.verify()
        model.predict(QUESTIONS, k=3, threads=1)
    watch = Bait(folder / "bait.bin")
    space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + SPACE
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    tally, beat = Tally(), os.open(folder / "beat", os.O_WRONLY)
    for seed in range(begin, end):
        os.pwrite(beat, b"%-20d" % seed, 0)
        rng = random.Random(seed)
        mutant = Folder.__new__(Folder)
        base = rng.choice(sound)
        mutant.body, mutant.files = json.loads(json.dumps(base.body)), dict(base.files)
        done = (mutate_encoder if "encoder" in mutant.files else mutate)(mutant, rng)
        mutant.write(folder / "mutant")
        _open(folder / "mutant", tally, f"seed {seed}, {done}", watch)
        if seed % 50 == 0 or seed == end - 1:
            (folder / "tally.new").write_text(json.dumps(dataclasses.asdict(tally)))
            (folder / "tally.new").replace(folder / "tally.json")


def _open(folder: Path, tally: Tally, what: str, watch: Bait) -> None:
    """Load, verify and ask one mutant."""
    import labelwood as lw

    size = sum(path.stat().st_size for path in folder.iterdir())
    before, start, stage = _peak(reset=True), time.process_time(), "refused"
    try:
        model = lw.load(folder)
        stage = "verified"
        model.verify()
        stage = "late"
        rows = model.predict(QUESTIONS, k=3, threads=1)
        stage = "answered"
        wrong = [score for row in rows for _, score in row if not abs(score) < float("inf")]
        error = f"answers {wrong[0]}" if wrong else ""
    except lw.ModelFileError:
        error = ""
    except BaseException:
        error = traceback.format_exc()[-1500:]
    took, more = time.process_time() - start, _peak() - before
    if took > SECONDS:
        error = f"{took:.1f} s"
    if more > 2 * size + MEMORY:
        error = f"{more / 2**20:.0f} MB of memory for a folder of {size / 2**20:.1f} MB"
    if watch.touched():
        error = "the bait was opened"
    tally.seconds += took
    tally.slowest = max(tally.slowest, took)
    if error:
        tally.failures.append(f"{what}: {error}")
    else:
        setattr(tally, stage, getattr(tally, stage) + 1)


def _peak(*, reset: bool = False) -> int:
    """Most memory in use so far, or from now on."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


class Bait:
    """Watches a file: the system tells when anyone opens or reads it, native code among them."""

    def __init__(self, path: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(IN_NONBLOCK)
        if self.fd < 0 or libc.inotify_add_watch(self.fd, os.fsencode(path), IN_ACCESS | IN_OPEN) < 0:
            raise OSError(ctypes.get_errno(), "the bait cannot be watched")
        path.read_bytes()
        assert self.touched(), "the watch is blind"

    def touched(self) -> bool:
        """Was it opened since the last question?"""
        try:
            return bool(os.read(self.fd, 65536))
        except BlockingIOError:
            return False


def main() -> int:
    """Open as many mutants as asked for and print what became of them."""
    sys.path.insert(0, str(TESTS))
    if sys.argv[1:2] == ["--work"]:
        begin, end, folder, *sources = sys.argv[2:]
        work(int(begin), int(end), Path(folder), [Path(source) for source in sources])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--linear", type=int, default=0)
    parser.add_argument("--encoders", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    bad = 0
    for kind in ("linear", "encoders"):
        count = getattr(given, kind)
        if count:
            tally = run(kind, count, jobs=given.jobs, seed=given.seed)
            print(f"{kind}: {tally}", *tally.failures[:50], sep="\n", flush=True)
            bad += len(tally.failures)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
