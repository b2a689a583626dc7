"""`formwright compress` on a tiny BERT: its arguments, and what it left behind."""

import json
from pathlib import Path
from typing import Any

from tests.cli.training import table
from tests.pipeline.compressions import LENGTH, bert

from formwright.pipeline.study_place import find


def setting(**options: object) -> tuple[str, ...]:
    """Give options of stages as `--set`, such as `teacher__epochs=6`."""
    given = (f"{name.replace('__', '.')}={json.dumps(value)}" for name, value in options.items())
    return tuple(word for one in given for word in ("--set", one))


QUICK = ("--batch", 16, "--length", LENGTH, "--trials", 5)
STAGES = setting(teacher__epochs=6, super_network__epochs=2, space__configurations=3)
RATES = ("--learning-rate", 3e-3, *setting(super_network__learning_rate=3e-3))  # thirty steps are to teach something
TARGETS = ("--target", "macs=75%", "--target", "macs=50%")
ALONE = ("--workers", 1, "--threads", 1, "--device", "cpu", "--accept-weak-teacher")  # ten rows prove nothing


def on_rows(folder: Path, *, scored: bool = False) -> tuple[object, ...]:
    """Write a table of a hundred rows, and give the options that name it."""
    return ("--task", table(folder, scored=scored), "--text", "words", "--label", "b")


def line(
    folder: Path, *options: object, model: Path | None = None, task: tuple[object, ...] = (), out: str = "out"
) -> list[str]:
    """Give the arguments of a quick compression; `folder` gets a model and rows where none are given."""
    model = model or (folder / "bert" if (folder / "bert").is_dir() else bert(folder))
    targets = () if "--target" in options else TARGETS
    parts = (
        "compress",
        model,
        *(task or on_rows(folder)),
        *QUICK,
        *STAGES,
        *RATES,
        *targets,
        *ALONE,
        "--out",
        folder / out,
        *options,
    )
    return [str(part) for part in parts]


def everything(folder: Path) -> dict[str, bytes]:
    """Read all files of a folder but its log, which notes every call, and the page made of it."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in files
        if not path.name.startswith(("study.db", "report.html"))
    }


def trials(folder: Path) -> list[dict[str, Any]]:
    """List the designs that were judged, and what they scored."""
    with find(str(folder)).open() as opened:
        events = opened.log.read()
    asked = {event.number: event.data["card"] for event in events if event.kind == "asked"}
    told = {event.number: event.data["observation"]["metrics"] for event in events if event.kind == "told"}
    return [{"card": json.dumps(card, sort_keys=True), "metrics": told[number]} for number, card in asked.items()]


def models(facts: dict[str, Any]) -> list[tuple[Any, ...]]:
    """List of the delivered models what does not depend on the machine's mood."""
    names = ("name", "role", "digest", "params", "steps", "validation", "test", "trial")
    return [tuple(model[name] for name in names) for model in facts["models"]]
