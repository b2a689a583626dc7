"""The searches of contests in a file, one line each, so that a contest that was stopped goes on."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from formwright.core.errors import IllegalInput
from formwright.study.contest import Replay

_BEGINS = '{"table": '  # every line of ours


@dataclass(frozen=True)
class ContestFile:
    """A file of searches on the table with the digest `table`; those on other tables are left alone.

    The file knows nothing of the code of the methods: whoever changes a method begins another file.
    """

    path: Path
    table: str

    def read(self) -> list[Replay]:
        """Give what is there; a last line that was cut short is not."""
        if not self.path.exists():
            return []
        try:
            *whole, rest = self.path.read_text(encoding="utf-8").split("\n")
            _refuse_anothers(rest)
            lines = [json.loads(line) for line in whole]
            return [Replay.from_json(line) for line in lines if line["table"] == self.table]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise IllegalInput(f"{self.path} is no file of searches: {error}") from None

    def keep(self, replays: Iterator[Replay]) -> Iterator[Replay]:
        """Pass searches on, each written down before it is."""
        try:
            with self.path.open("ab") as file:
                _begin_on_a_line(self.path)
                for found in replays:
                    file.write(json.dumps({"table": self.table, **asdict(found)}).encode() + b"\n")
                    file.flush()
                    yield found
        except OSError as error:
            raise IllegalInput(f"cannot write {self.path}: {error.strerror or error}") from None


def _refuse_anothers(rest: str) -> None:
    """Refuse a last line without an end that no search of ours can have begun: `keep` would cut it off."""
    if not (rest.startswith(_BEGINS) or _BEGINS.startswith(rest)):
        raise ValueError(f"it ends with {rest[:40]!r}")


def _begin_on_a_line(path: Path) -> None:
    os.truncate(path, path.read_bytes().rfind(b"\n") + 1)  # without a line that was cut short
