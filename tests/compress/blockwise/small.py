"""Block-wise compressions of a BERT of two layers that take a second, on a text of a few hundred words."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.compress.tiny import bert

from formwright.arch.card import Card
from formwright.compress.blockwise.choices import Selection
from formwright.compress.blockwise.costs import PartCosts
from formwright.compress.blockwise.folders import Folders
from formwright.compress.blockwise.job import Job, Started
from formwright.compress.blockwise.plan import Plan
from formwright.compress.blockwise.prepared import prepare
from formwright.compress.folders import write_json
from formwright.core.rng import derive
from formwright.cost import params
from formwright.nn.operation_times import measured_operations
from formwright.recipes.nas_bert import NAS_BERT

PLAN = Plan(round_steps=4, student_steps=4)
QUICK = replace(NAS_BERT, candidates=60, rounds=2, bins=2, least=4, batch=8, checked=2, learning_rate=3e-3)
SIZES = "3k,6k"


def pretended(card: Card) -> float:
    """Take a time that follows from the design alone."""
    assert card.encoder is not None
    return 1e-5 * params(card) + 0.01 * len(card.encoder.layers)


def text(folder: Path, lines: int = 80) -> Path:
    """Write a text of letters and numbers."""
    rng = derive(0, "text")
    words = [" ".join("abcdefgh0123456789"[index] for index in rng.integers(18, size=8)) for _ in range(lines)]
    path = folder / "text.txt"
    path.write_text("\n".join(words), encoding="utf-8")
    return path


def job(folder: Path, **changes: Any) -> Job:
    """Give a quick job; `folder` gets the model and the text."""
    model = folder / "bert" if (folder / "bert").is_dir() else bert(folder)
    values: dict[str, Any] = {
        "model": str(model),
        "text": str(text(folder)),
        "data": None,
        "sizes": SIZES,
        "hours": None,
        "length": 12,
        "rows": None,
        "method": QUICK,
        "device": "cpu",
        "seed": 0,
    }
    return Job(**{**values, **changes})


def prepared(started: Started, out: Path, plan: Plan = PLAN) -> Selection:
    """Do what comes before the blocks."""
    folders = Folders(out)
    times = measured_operations(started.menu, measured=pretended)
    write_json(folders.latency, times.to_json())
    return Selection(started, plan, PartCosts(started.menu, times), prepare(started, folders), folders)
