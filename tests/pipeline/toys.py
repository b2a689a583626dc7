"""Toy stages: numbers that are added up, step by step, and saved in between."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

from formwright.core.errors import IllegalInput
from formwright.core.files import write_whole
from formwright.core.options import STAGES, Stage, option
from formwright.core.registry import Registry
from formwright.pipeline.run import StageRun


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
