"""Small pipelines of a search and its delivery, and folders of runs made quickly."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

from tests.cli.training import table

from formwright.core.errors import IllegalInput
from formwright.core.files import write_whole
from formwright.core.options import STAGES, Stage, inputs_of, option
from formwright.core.registry import Registry
from formwright.pipeline.deliver import Deliver
from formwright.pipeline.evaluators import EVALUATORS, UntrainedScores
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun, StageRun
from formwright.pipeline.run_events import work_at
from formwright.pipeline.run_folder import RunRecord, claim_folder
from formwright.pipeline.search import Search
from formwright.pipeline.study_place import Opened, Place, absolute_storage
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.search import searcher
from formwright.study.stop import Stop

SOURCE = Path(__file__).parents[2] / "src"
STEPS = 20
_RENAMED = {"final_steps": "steps", "final_weights": "weights"}


@dataclass(frozen=True)
class Given(Stage):
    """Stand for a stage that is done: give what it made."""

    NAME: ClassVar[str] = "given"
    what: Any = option(about="what it made")

    def load(self, run: StageRun) -> Any:
        return self.what


def pipeline(**options: Any) -> Pipeline:
    """Give a search and its delivery; parts may be named, options of the delivery begin with `final_` where unclear."""
    of_search = {one.name for one in fields(Search)}
    for name, make in (("searcher", searcher), ("evaluator", lambda kind: EVALUATORS.get(kind)())):
        if isinstance(options.get(name), str):
            options[name] = make(options[name])
    search = Search(**{name: value for name, value in options.items() if name in of_search})
    rest = {_RENAMED.get(name, name): value for name, value in options.items() if name not in of_search}
    rest["weights"] = rest.get("weights") or (search.evaluator.DELIVERS if search.evaluator else None)
    before = dict.fromkeys((*inputs_of(search), *filter(None, [rest.get("teacher")])))
    return Pipeline(*before, search, Deliver(search, **rest))


def quick(**changes: Any) -> Pipeline:
    """Give a study that trains nothing while it searches, and very little in the end; every option is settled."""
    values: dict[str, Any] = {
        "space": "flexibert-nano",
        "task": TaskChoice("mini-glue/sst2"),
        "objectives": ("synflow:max",),
        "stop": Stop(4),
        "searcher": "random",
        "evaluator": UntrainedScores(("synflow",)),
        "training": TrainingChoice(steps=5, batch=8, length=16, device="cpu"),
        "final_steps": 5,
    }
    return pipeline(**{**values, **changes})


def own_rows(folder: Path, **changes: Any) -> Pipeline:
    """Give a quick study of a hundred short rows."""
    return quick(task=TaskChoice(str(table(folder)), text=("words",), label="b"), **changes)


def films(folder: Path, trials: int = 4, steps: int = STEPS, **changes: Any) -> Pipeline:
    """Write a space and rows to a folder, and give a random search over them whose trials take half a second."""
    (folder / "mine.py").write_text("from formwright.testing.toy_problem import small\n\nspace = small()\n")
    rows = [f"a {'good' if i % 2 else 'bad'} film number {i},{'yes' if i % 2 else 'no'}" for i in range(60)]
    (folder / "films.csv").write_text("\n".join(["text,label", *rows]))
    values: dict[str, Any] = {
        "space": f"{folder / 'mine.py'}:space",
        "task": TaskChoice(str(folder / "films.csv"), text=("text",), label="label"),
        "objectives": ("accuracy:max",),
        "evaluator": "full",
        "stop": Stop(trials=trials),
        "training": TrainingChoice(steps=steps, batch=8, length=16, device="cpu"),
        "final_steps": 3 * steps,
    }
    return quick(**{**values, **changes})


def films_study(folder: Path, storage: str | None = None, **settings: Any) -> Place:
    return create(folder / "films", films(folder, **settings), storage)


def create(folder: Path, made: Pipeline, storage: str | None = None, name: str | None = None) -> Place:
    """Make the folder and the study of a run as the runner does, without any work; options are as they are given."""
    run = PipelineRun(made, folder, storage=absolute_storage(storage), study_name=name or folder.resolve().name)
    claim_folder(folder, RunRecord.of(run, {}), force=False)
    stage = search_of(made)
    place = stage.place(run.stage(stage))
    place.create(made, made.name_of(stage))
    return place


def search_of(made: Pipeline) -> Search:
    return made.of_kind(Search)[0]


def here(made: Pipeline, out: Path = Path("absent"), kind: type[Stage] = Search) -> StageRun:
    """Give what a stage of a pipeline is given, without a folder."""
    return PipelineRun(made, out).stage(made.of_kind(kind)[0])


def changed(made: Pipeline, **changes: Any) -> Pipeline:
    """Change options of the search."""
    return made.changed({"search": replace(search_of(made), **changes)})


def work(place: Place) -> None:
    """Work on a study in this process until it is over."""
    assert work_at(place, lambda: False) == 0


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


@dataclass(frozen=True)
class Sum(Stage):
    """Add numbers up, beginning with what another stage found; the number so far is saved after each step."""

    NAME: ClassVar[str] = "sum"
    seed: int = option(1, "the number that is added")
    steps: int = option(3, "how often")
    before: Stage | None = option(None, "the stage that is begun with")
    file: str = option("", "a file whose content is part of the sum")
    shown: int = option(0, "how much is shown", extent=True)

    def resolved(self, run: StageRun) -> "Sum":
        return self

    def check(self, run: StageRun) -> None:
        if self.steps < 1:
            raise IllegalInput(f"steps is at least 1, not {self.steps}")

    def contents(self, run: StageRun) -> Mapping[str, Any]:
        return {"numbers": Path(self.file).read_text()} if self.file else {}

    def make(self, run: StageRun) -> None:
        saved, first = run.checkpoints / "so-far.json", 0 if self.before is None else run.artifact(self.before)
        first += int(Path(self.file).read_text()) if self.file else 0
        step, total = json.loads(saved.read_text()) if saved.is_file() else (0, first)
        run.checkpoints.mkdir(parents=True, exist_ok=True)
        with run.progress("adding", self.steps) as tell:
            while step < self.steps:
                step, total = step + 1, total + self.seed
                write_whole(saved, json.dumps([step, total]))
                tell(step, None)
                run.stop_if_asked(f"step {step}")
        run.folder.mkdir(parents=True, exist_ok=True)
        write_whole(run.folder / "steps.txt", str(step))
        write_whole(run.folder / "sum.json", json.dumps(total))

    def load(self, run: StageRun) -> int:
        return int(json.loads((run.folder / "sum.json").read_text()))


@contextmanager
def registered(**stages: str) -> Iterator[None]:
    """Let further stages be known by name, as another package's entry points do."""
    table = {**STAGES.table, "sum": f"{__name__}:Sum", **stages}
    with patch("formwright.core.options.STAGES", Registry("stage", table, "none.at.all")):
        yield
