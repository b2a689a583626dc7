"""`formwright evaluate`: evaluate a delivered model again, and compare with the recorded scores."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from formwright.cli.options import DATA, AsJson, Data, ModelFolder, Series, TaskKind, columns_of, flag
from formwright.cli.output import echo, note, print_json, print_table
from formwright.core.errors import IllegalInput

if TYPE_CHECKING:
    from formwright.evaluate.repeat_score import RepeatedScore

_SPLITS = ("validation", "test")
_TASK = "A task (`formwright list tasks`), or a CSV, TSV or JSON file (default: the recorded task)."
_SPLIT = "validation or test. Opening the test rows is recorded in the folder."


def evaluate(
    folder: ModelFolder,
    task: Annotated[str | None, flag(_TASK, DATA)] = None,
    data: Data = None,
    text: Annotated[str, flag("Text columns of your own file (default: the recorded ones).", DATA)] = "",
    label: Annotated[str, flag("Label column of your own file (default: the recorded one).", DATA)] = "",
    task_kind: TaskKind = "",
    series: Series = "",
    official_dev: Annotated[bool, flag("Validate on the whole official dev set.", DATA, "--official-dev")] = False,
    split: Annotated[str, flag(_SPLIT, DATA)] = "validation",
    as_json: AsJson = False,
) -> None:
    """Evaluate a delivered model on its task, and compare with the scores that its folder records."""
    from formwright.evaluate.loaded_model import load_model
    from formwright.evaluate.repeat_score import find_task, repeat_score

    if split not in _SPLITS:
        raise IllegalInput(f"--split is {' or '.join(_SPLITS)}, not {split!r}")
    loaded = load_model(folder)
    given = {"data": data, "text": columns_of(text), "label": label, "official_dev": official_dev, "kind": task_kind}
    given["series"] = series
    found = repeat_score(loaded, find_task(loaded, task, given), split)  # type: ignore[arg-type]
    if found.changed:
        note(f"warning: these are not the rows that the folder records; changed: {', '.join(found.changed)}")
    if as_json:
        print_json(_facts(folder, found))
    else:
        _print(found)


def _facts(folder: Path, found: "RepeatedScore") -> dict[str, Any]:
    return {
        "folder": str(folder),
        "task": found.task,
        "split": found.split,
        "rows": found.rows,
        "length": found.length or None,
        "metric": found.metric,
        "metrics": dict(found.metrics),
        "evidence": asdict(found.evidence),
        "recorded": None if found.recorded is None else dict(found.recorded),
        "repeats": found.repeats,
        "changed": list(found.changed),
        "test_openings": found.openings,
    }


def _print(found: "RepeatedScore") -> None:
    from formwright.pipeline.conclusion import between, score_line

    known, recorded = found.evidence.intervals, found.recorded or {}
    rows = [
        (
            name,
            f"{value:.4f}",
            between(known[name]) if name in known else "-",
            f"{recorded[name]:.4f}" if name in recorded else "-",
        )
        for name, value in found.metrics.items()
    ]
    print_table([f"{found.task}, {found.split}", ">score", ">95 % interval", ">recorded"], rows)
    echo(score_line(found.metric, found.split, found.metrics[found.metric], found.evidence))
    if found.repeats is not None:
        echo("the scores equal the recorded ones" if found.repeats else "the scores differ from the recorded ones")
    if found.openings:
        times = "once" if found.openings == 1 else f"{found.openings} times"
        echo(f"`evaluate` has opened the test rows {times} for this folder (test-openings.json)")
