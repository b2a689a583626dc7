"""A study small enough that a trial takes half a second: is a film good or bad?"""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from formwright.study.config import Config, TaskChoice, TrainingChoice
from formwright.study.place import Opened, Place, create
from formwright.study.stop import Stop

SOURCE = Path(__file__).parents[2] / "src"
STEPS = 20


def films_config(folder: Path, trials: int = 4, steps: int = STEPS, **others: Any) -> Config:
    """Write a space and rows to a folder, and describe a random search over them."""
    (folder / "mine.py").write_text("from formwright.testing.spaces import small\n\nspace = small()\n")
    rows = [f"a {'good' if i % 2 else 'bad'} film number {i},{'yes' if i % 2 else 'no'}" for i in range(60)]
    (folder / "films.csv").write_text("\n".join(["text,label", *rows]))
    settings: dict[str, Any] = {"objectives": ("accuracy:max",), "searcher": "random"}
    return Config(
        f"{folder / 'mine.py'}:space",
        TaskChoice(str(folder / "films.csv"), text=("text",), label="label"),
        stop=Stop(trials=trials),
        training=TrainingChoice(steps=steps, batch=8, length=16),
        **settings | others,
    )


def films_study(folder: Path, storage: str | None = None, **settings: Any) -> Place:
    return create(folder / "films", films_config(folder, **settings), storage)


def start(*arguments: object, **options: Any) -> "subprocess.Popen[str]":
    """Start `formwright` in a process of its own, with one thread."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    command = [sys.executable, "-m", "formwright.cli.app", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    return subprocess.Popen(command, **pipes | options)


def check_whole(opened: Opened, trials: int) -> None:
    """Check that all trials have an outcome, each once, and that no design was tried twice."""
    events = opened.log.read()
    asked = {event.number: event.data["card"] for event in events if event.kind == "asked"}
    told = Counter(event.number for event in events if event.kind == "told")
    assert told == dict.fromkeys(range(trials), 1), [event for event in events if event.kind == "failed"]
    assert sorted(asked) == list(range(trials))
    assert len({str(card) for card in asked.values()}) == trials
    assert opened.log.leases() == {}
