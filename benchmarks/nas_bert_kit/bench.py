"""What all parts of the benchmark share: a finished compression, and a file of results that grows line by line."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from formwright.core.files import read_json
from formwright.nn.hf.imported import Imported
from formwright.nn.hf.load import from_hf
from formwright.pipeline.blocks_choose import CHOICES, ChooseChains
from formwright.pipeline.blocks_source import TIMES, Source
from formwright.pipeline.blocks_students import TeachStudents
from formwright.pipeline.blocks_train import Table, TrainBlocks, TrainedBlocks
from formwright.pipeline.pacing import PLAN
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.run_folder import RUN
from formwright.pipeline.start_model import demo_folder
from formwright.search.block_choice import Blocks
from formwright.supernet.blockwise import TABLE

Row = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """A file of one JSON object a line; what is in it is not computed again."""

    path: Path

    def kept(self, part: str, key: str, compute: Callable[[], Row]) -> Row:
        """Give the row of a part under a key, computed and written where it is not there yet."""
        found = next((row for row in self.rows(part) if row["key"] == key), None)
        if found is None:
            found = {"part": part, "key": key, **compute()}
            self.path.parent.mkdir(parents=True, exist_ok=True)
            cut_short = self.path.is_file() and not self.path.read_bytes().endswith(b"\n")  # by a kill
            with self.path.open("a", encoding="utf-8") as file:
                file.write(("\n" if cut_short else "") + json.dumps(found) + "\n")
            print(part, key, file=sys.stderr, flush=True)
        return found

    def rows(self, part: str) -> list[Row]:
        """List the rows of a part; a line that was cut short by a kill is passed over."""
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []
        return [row for row in map(_row, lines) if row is not None and row["part"] == part]


def _row(line: str) -> Row | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "part" in found else None


@dataclass(frozen=True, eq=False)
class Bench:
    """A compression whose models are delivered, and the results that are kept of it."""

    out: Path
    results: Results
    seed: int

    @cached_property
    def run(self) -> PipelineRun:
        """Read the run; its sizes are those that were chosen for."""
        pipeline = Pipeline.from_json(read_json(self.out / RUN)["pipeline"])
        name, choices = pipeline.name_of(found := pipeline.of_kind(ChooseChains)[0]), found
        sizes = tuple(read_json(self.out / name / CHOICES))
        return PipelineRun(pipeline.changed({name: replace(choices, sizes=sizes)}), self.out)

    @property
    def choices(self) -> ChooseChains:
        """Give the stage that chooses, which knows those before it."""
        return self.run.pipeline.of_kind(ChooseChains)[0]

    @property
    def training(self) -> TrainBlocks:
        """Give the stage that trains blocks."""
        return self.choices.blocks

    @property
    def students(self) -> TeachStudents:
        """Give the stage that trains students."""
        return self.run.pipeline.of_kind(TeachStudents)[0]

    @cached_property
    def parts(self) -> TrainedBlocks:
        """Read what students are put together from."""
        found: TrainedBlocks = self.run.artifact(self.training)
        return found

    @property
    def source(self) -> Source:
        """Give the teacher and the text."""
        return self.parts.source

    @cached_property
    def imported(self) -> Imported:
        """Read the teacher as it was."""
        model = self.source.stage.model
        return from_hf(Path(model) if model else demo_folder(), head=False)

    def round(self, block: int, number: int) -> Path:
        """Name the file of a round, counted from 1."""
        return self.run.stage(self.training).folder / str(block) / f"round-{number}.json"

    def mark(self, effort: Mapping[str, Any] | None = None) -> str:
        """Name the compression, the seed, and how much is done: rows of another compression or effort do not count.

        A compression is known by what came out too: measured times decide who stays in a bin.
        """
        record = read_json(self.out / RUN)
        tables = sorted(self.out.glob(f"*/*/{TABLE}"))
        told = [read_json(path) for path in (self.out / PLAN, *self.out.glob(f"*/{TIMES}"), *tables)]
        facts = [record["pipeline"], record["contents"], *told, dict(effort or {})]
        return f"{hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]}/{self.seed}"

    def kept(self, name: str, effort: Mapping[str, Any]) -> Path:
        """Name a file of weights beside the results, in a folder of the same compression, seed and effort."""
        path = self.results.path.with_suffix("") / self.mark(effort).replace("/", "-") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def tables(self) -> list[Table]:
        """Give the table of each block."""
        return self.parts.tables

    @cached_property
    def blocks(self) -> Blocks:
        """Give the tables that chains are chosen from."""
        return self.parts.choices
