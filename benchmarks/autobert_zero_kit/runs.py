"""Runs, each a line of a file: what is there is not run again."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from autobert_zero_kit.setting import Setting
from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed
from formwright.study.processes import in_processes

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One run: its kind, what it is about, and the seed. `card` holds the canonical JSON of a design to be trained."""

    kind: str
    name: str
    seed: int
    card: str = ""

    @classmethod
    def of(cls, kind: str, card: Card, seed: int) -> Job:
        """Name a training by its design."""
        return cls(kind, card.digest[:16], seed, card.canonical.decode())

    @property
    def key(self) -> tuple[str, str, int]:
        return self.kind, self.name, self.seed

    @property
    def design(self) -> Card:
        return Card.from_json(json.loads(self.card))


Execute = Callable[[Job], Row]


@dataclass(frozen=True)
class Results:
    """The rows of a file that were made by a setting, and the folder beside it where unfinished runs are kept."""

    path: Path
    setting: Setting

    @property
    def folder(self) -> Path:
        return self.path.with_name(f"{self.path.stem}-files")

    def rows(self) -> dict[tuple[str, str, int], Row]:
        """Read what is there; a last line that was cut short does not count."""
        if not self.path.exists():
            return {}
        found = map(json.loads, self.path.read_text(encoding="utf-8").split("\n")[:-1])
        mine = [row for row in found if row["settings"] == self.setting.facts(row["kind"])]
        return {(row["kind"], row["name"], row["seed"]): row for row in mine}

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """List the jobs that are not there yet, each once."""
        known = self.rows()
        return list({job.key: job for job in jobs if job.key not in known}.values())

    def complete(self, jobs: Iterable[Job], execute: Execute, workers: int) -> None:
        """Run what is not there yet."""
        missing, began = self.missing(jobs), time.monotonic()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            os.truncate(self.path, self.path.read_bytes().rfind(b"\n") + 1)  # without a line that was cut short
            for number, row in enumerate(in_processes(partial(recorded, execute), missing, workers), start=1):
                file.write(json.dumps({**row, "settings": self.setting.facts(row["kind"])}).encode() + b"\n")
                file.flush()
                told = f"{number} of {len(missing)}: {row['kind']} {row['name']} {row['seed']}, {row['seconds']} CPU s"
                print(f"{told}, {time.monotonic() - began:.0f} s since the start of these", file=sys.stderr, flush=True)


def recorded(execute: Execute, job: Job) -> Row:
    """Run a job and account for it; a training that fails is a result too."""
    began = time.process_time()
    try:
        found = execute(job)
    except EvaluationFailed as failure:
        found = {"failure": str(failure)}
    seconds = round(time.process_time() - began, 2)
    return {"kind": job.kind, "name": job.name, "seed": job.seed, **found, "seconds": seconds}
