"""What all parts of the benchmark share: a finished compression, and a file of results that grows line by line."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from formwright.compress.blockwise.assignments import selection_of
from formwright.compress.blockwise.choices import Selection
from formwright.compress.blockwise.costs import blocks_of
from formwright.compress.blockwise.folders import Folders
from formwright.compress.blockwise.job import Job
from formwright.compress.blockwise.method import Method
from formwright.compress.blockwise.plan import Plan
from formwright.compress.folders import RECORD, read_json
from formwright.recipes.nas_bert import NAS_BERT
from formwright.search.block_choice import Blocks
from formwright.space.zoo.chains import Chain
from formwright.supernet.blockwise import BlockNetwork

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
    def selection(self) -> Selection:
        """Read the compression."""
        folders = Folders(self.out)
        return selection_of(self.job.started(), self.out, Plan.from_json(read_json(folders.plan)))

    @cached_property
    def job(self) -> Job:
        """Read the job off the record of the compression; its sizes are those that were chosen for."""
        told = read_json(self.out / RECORD)
        numbers = {field.name: told[field.name] for field in fields(Method) if field.name in told}
        own = {field.name: told[field.name] for field in fields(Job) if field.name in told}
        sizes = ",".join(read_json(Folders(self.out).choices))
        return Job(**{**own, "sizes": sizes}, method=replace(NAS_BERT, **numbers))

    def mark(self, effort: Mapping[str, Any] | None = None) -> str:
        """Name the compression, the seed, and how much is done: rows of another compression or effort do not count.

        A compression is known by what came out too: measured times decide who stays in a bin.
        """
        folders = Folders(self.out)
        tables = sorted(folders.table(0).parent.parent.glob(f"*/{folders.table(0).name}"))
        told = [read_json(path) for path in (self.out / RECORD, folders.plan, folders.latency, *tables)]
        digest = hashlib.sha256(json.dumps([*told, dict(effort or {})], sort_keys=True).encode()).hexdigest()
        return f"{digest[:12]}/{self.seed}"

    def kept(self, name: str, effort: Mapping[str, Any]) -> Path:
        """Name a file of weights beside the results, in a folder of the same compression, seed and effort."""
        path = self.results.path.with_suffix("") / self.mark(effort).replace("/", "-") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @cached_property
    def tables(self) -> list[list[tuple[Chain, float]]]:
        """Read the table of each block."""
        return self.selection.tables()

    @cached_property
    def networks(self) -> list[BlockNetwork]:
        """Read the weights of each block."""
        return self.selection.networks()

    @cached_property
    def blocks(self) -> Blocks:
        """Give the tables that chains are chosen from."""
        return blocks_of(self.selection.costs, self.selection.prepared.losses, self.tables)
