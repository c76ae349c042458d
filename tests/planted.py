"""Two sets in which every fault that a check looks for is planted once, and two that have none."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

SUBJECTS = {
    "bread": "flour yeast oven dough baker crust loaf rye wheat butter salt bowl kneading warm rising slices",
    "boats": "sail harbour mast rudder keel wind captain anchor rope deck tide waves island fishing net storm",
    "music": "violin choir melody rhythm concert piano score singer drum opera tune orchestra tempo chord stage notes",
    "stars": "planet orbit telescope comet galaxy moon eclipse light gravity meteor sky nebula dust red giant",
}
SHORT = "the of and in for that with is are this from by it on as to was which have not".split()  # noqa: SIM905
GERMAN = (
    "Der Bäcker und die Hefe sind für das Brot in der Stadt nicht von einem Ofen zu trennen, auch wenn es warm ist.",
    "Das Schiff ist mit dem Wind in den Hafen gekommen und liegt nun an einer Kette bei der Insel, die wir sehen.",
    "Die Geige und der Chor sind auf der Bühne zu hören, wie es für ein Konzert in dieser Stadt nicht üblich ist.",
    "Der Mond ist von der Erde aus zu sehen, und das Licht der Sterne wird durch den Staub nicht gestört.",
)

Record = dict[str, Any]


def sentence(draw: random.Random, label: str, count: int = 60) -> str:
    """English enough to be told: every other word is a short one."""
    words = SUBJECTS[label].split()
    return " ".join(draw.choice(words if i % 2 else SHORT) for i in range(count))


def clean(seed: int, count: int = 40) -> list[Record]:
    """Records without a fault: each label at ten documents, no text alike."""
    draw, names = random.Random(seed), list(SUBJECTS)
    records = []
    for i in range(count):
        labels = [names[i % 4]] + ([names[(i + 1) % 4]] if i % 3 == 0 else [])
        records.append({"id": f"d{seed}-{i}", "text": sentence(draw, labels[0]), "labels": labels})
    return records


def planted() -> tuple[list[Record], list[Record]]:
    """Training and test records; what is planted stands beside each line."""
    draw = random.Random(7)
    train, test = clean(1), clean(2)
    copy, version = train[0]["text"], train[1]["text"].split()
    version[12] = "altered"

    def add(text: str, *labels: str, to: list[Record] = train, **more: Any) -> None:
        to.append({"id": f"p{len(to)}", "text": text, "labels": list(labels)} | more)

    add("", "bread")  # empty-texts
    add("?!", "boats")
    add("rye bread", "bread")  # short-texts
    add(copy.upper() + "!", *train[0]["labels"])  # duplicate-texts
    add(train[2]["text"], "stars", "bread")  # duplicate-texts, same-text-other-labels
    add(" ".join(version), *train[1]["labels"])  # near-duplicates
    add(sentence(draw, "boats") + " na\ufffdve", "boats")  # replaced-characters
    add(sentence(draw, "boats") + " naÃ¯ve", "boats")  # encoded-twice
    add(sentence(draw, "music") + " <b>loud</b> R&amp;B", "music")  # markup
    add(sentence(draw, "music") + " \x00", "music")  # control-characters
    add(sentence(draw, "stars"), "Stars ", "stars")  # label-variants
    add(sentence(draw, "stars"), "seen once")  # labels-seen-once
    add(sentence(draw, "stars"))  # documents-without-labels
    add(sentence(draw, "bread"), "bread", "bread")  # repeated-labels
    add(sentence(draw, "bread"), "['bread', 'boats']")  # labels-list
    train[-1]["id"] = "p40"  # repeated-ids
    for text in GERMAN:
        add(text, "stars")  # several-languages
    for label in SUBJECTS:
        add(" ".join(sentence(draw, label) for _ in range(20)), label)  # cut-texts
    train[5].pop("text")
    train[5]["abstract"] = sentence(draw, "boats")  # missing-field
    train[6]["text"] = sentence(draw, "music")
    add(train[8]["text"], *train[8]["labels"], to=test)  # test-texts-in-train
    old = train[9]["text"].split()
    old[5] = "altered"
    add(" ".join(old), *train[9]["labels"], to=test)  # test-texts-nearly-in-train
    add(sentence(draw, "bread"), "only here", to=test)  # labels-only-in-test
    return train, test


def write(path: Path, records: list[Record], bad: bytes = b"") -> Path:
    """The records as JSON lines, with bytes that are none behind them."""
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_bytes(lines.encode() + bad)
    return path
