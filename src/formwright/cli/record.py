"""What the folder of a run says of it, so that another run never goes on with its weights."""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.core.files import write_whole
from formwright.study.alone import LOCK

RECORD = "training.json"


@dataclass(frozen=True)
class Identity:
    """Everything that decides what a run comes to: its options, and the digests of what these stand for.

    Files change under their names; `digests` tells by content, rows with their number. None stands for what a run has
    none of. `record` is the file that says it, `what` how such a run is called.
    """

    options: Mapping[str, Any]
    digests: Mapping[str, Any]
    record: str = RECORD
    what: str = "training run"

    @property
    def digest(self) -> str:
        """Give the SHA-256 of it all, in hexadecimal."""
        return hashlib.sha256(json.dumps(self._facts, sort_keys=True).encode()).hexdigest()

    def refuse(self, out: Path, force: bool) -> None:
        """Refuse a folder of another run, unless with `force`, and in any case files that are no run of ours."""
        if os.path.isfile(out / self.record):
            if not force:
                self._refuse_another(out / self.record)
        elif os.path.lexists(out) and not _is_free(out):
            raise IllegalInput(f"{out} holds files that are no {self.what}; name another folder with --out")

    def claim(self, out: Path, force: bool, kept: str) -> None:
        """Take a folder for this run, unless it is to be refused.

        With `force` the run that stands there is removed, but not what is called `kept` in it.
        """
        self.refuse(out, force)
        record = out / self.record
        if os.path.isfile(record) and not force:
            return
        try:
            out.mkdir(parents=True, exist_ok=True)
            # the record is replaced last, so that a run half removed is still known for one; the lock may be held
            _clear(out, {self.record, kept, LOCK})
            write_whole(record, json.dumps(self._facts, indent=1))
        except OSError as error:
            raise IllegalInput(f"cannot write {out}: {error.strerror or error}") from None

    def check(self, out: Path) -> None:
        """Refuse to write where another run has taken the folder meanwhile."""
        self._refuse_another(out / self.record)

    @property
    def _facts(self) -> dict[str, Any]:
        return {**self.options, "digests": dict(self.digests)}

    @property
    def _task(self) -> str:
        """Name the task, whose rows may be what changed."""
        task = self.options.get("task")
        name = task.get("name") if isinstance(task, Mapping) else task
        return f" (the task is {name})" if name else ""

    def _refuse_another(self, record: Path) -> None:
        from formwright.tasks.contents import changes

        try:
            stored = json.loads(record.read_text(encoding="utf-8"))
            wanted = json.loads(json.dumps(self._facts))
            others = [f"{key} {stored[key]}" for key in self.options if stored[key] != wanted[key]]
            changed = changes(stored["digests"], wanted["digests"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise IllegalInput(f"{record} cannot be read; use --force to overwrite it") from None
        told = [f"with other options ({', '.join(others)})"] if others else []
        told += [f"whose inputs have changed since: {', '.join(changed)}{self._task}"] if changed else []
        if told:
            raise IllegalInput(
                f"{record.parent} holds a run {', and '.join(told)}; name another folder with --out, "
                "or use --force to overwrite it"
            )


def _is_free(folder: Path) -> bool:
    return folder.is_dir() and all(entry.name == LOCK for entry in folder.iterdir())


def _clear(folder: Path, kept: set[str]) -> None:
    for entry in folder.iterdir():
        if entry.name in kept:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
