"""The searches of contests in a file, one line each, so that a contest that was stopped goes on."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from formwright.core.errors import IllegalInput
from formwright.study.alone import hold
from formwright.study.contest import NOTHING, Replay

_BEGINS = '{"table": '  # every line of ours


@dataclass(frozen=True)
class ContestFile:
    """A file of searches on the table with the digest `table`, of so many `rows` where they are known.

    Searches on other tables are left alone.

    The file knows nothing of the code of the methods: whoever changes a method begins another file.
    """

    path: Path
    table: str
    rows: int | None = None

    def read(self) -> list[Replay]:
        """Give what is there; a last line that was cut short is not."""
        if not self.path.exists():
            return []
        try:
            *whole, rest = self.path.read_text(encoding="utf-8").split("\n")
            _refuse_anothers(rest)
        except (OSError, ValueError) as error:
            raise IllegalInput(f"{self.path} is no file of searches: {error}") from None
        searches = [self._search(line, number) for number, line in enumerate(whole, start=1)]
        return [found for found in searches if found is not None]

    def keep(self, replays: Iterator[Replay]) -> Iterator[Replay]:
        """Pass searches on, each written down before it is; refuse a file that another process adds to."""
        try:
            with self.path.open("ab") as file:
                hold(file, f"another process works on {self.path}; wait for it, or name another file")
                _begin_on_a_line(self.path)
                for found in replays:
                    file.write(json.dumps({"table": self.table, **asdict(found)}).encode() + b"\n")
                    file.flush()
                    yield found
        except OSError as error:
            raise IllegalInput(f"cannot write {self.path}: {error.strerror or error}") from None

    def _search(self, line: str, number: int) -> Replay | None:
        """Read a line, which may have been changed by hand; None where it is of another table."""
        try:
            data = json.loads(line)
            if not isinstance(data, dict) or "table" not in data:
                raise IllegalInput("it names no table")
            if data.pop("table") != self.table:
                return None
            found = Replay.from_json(data)
            if self.rows is not None and max(found.best, default=NOTHING) >= self.rows:
                raise IllegalInput(f"the row {max(found.best)} is beyond the {self.rows:,} rows of the table")
        except (ValueError, OverflowError, RecursionError) as error:
            raise IllegalInput(f"{self.path} is no file of searches: line {number}: {error}") from None
        return found


def _refuse_anothers(rest: str) -> None:
    """Refuse a last line without an end that no search of ours can have begun: `keep` would cut it off."""
    if not (rest.startswith(_BEGINS) or _BEGINS.startswith(rest)):
        raise ValueError(f"it ends with {rest[:40]!r}")


def _begin_on_a_line(path: Path) -> None:
    os.truncate(path, path.read_bytes().rfind(b"\n") + 1)  # without a line that was cut short
