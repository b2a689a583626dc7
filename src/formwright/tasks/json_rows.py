"""Read the objects of JSON Lines files, and of files that hold one JSON array of objects."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from formwright.tasks import lines
from formwright.tasks.lines import Faults, read_blocks, read_lines

_LONGEST = 1 << 24  # letters of one object of an array, as many as a line may have bytes
_TAIL = 12  # letters at the end of a block that may be half a word of JSON, as in `fals`
_EXPECTED = {"line": "expected one JSON object a line", "array": "expected an array of JSON objects"}
_SPACE = " \t\r\n"

Entry = tuple[int, dict[str, Any]]  # the line it starts on, and its values by key


def json_objects(path: Path, faults: Faults) -> Iterator[Entry]:
    """Yield the objects of a file: of its array, where a `.json` file holds one, or of its lines."""
    named_json = path.name.removesuffix(".gz").lower().endswith(".json")
    array = named_json and _first_letter(path, faults) == "["
    for number, entry in enumerate((_array if array else _lines)(path, faults), start=1):
        if number > lines.MOST_LINES:
            faults.stop(entry[0], f"more than {lines.MOST_LINES:,} objects, which is more than is read; give fewer")
        yield entry


def json_kind(entry: Any) -> str:
    """Name the kind of a JSON value."""
    return {list: "array", dict: "object", str: "string", bool: "boolean", type(None): "null"}.get(
        type(entry), "number"
    )


def _first_letter(path: Path, faults: Faults) -> str:
    return next((block.lstrip(_SPACE)[0] for block in read_blocks(path, faults) if block.strip(_SPACE)), "")


def _lines(path: Path, faults: Faults) -> Iterator[Entry]:
    for line, text in enumerate(read_lines(path, faults), start=1):
        if not text.strip():
            continue
        try:
            entry = json.loads(text, object_pairs_hook=_without_repeats)
        except (ValueError, RecursionError) as error:
            faults.add(line, f"not JSON ({_reason(error)}); {_EXPECTED['line']}")
            continue
        if isinstance(entry, dict):
            yield line, entry
        else:
            faults.add(line, f"a JSON {json_kind(entry)}; {_EXPECTED['line']}")


class _Reader:
    """Walk through a file block by block, so that the memory holds one object at a time, however long the array."""

    def __init__(self, path: Path, faults: Faults) -> None:
        self.faults = faults
        self.line = 1
        self._blocks = read_blocks(path, faults)
        self._text, self._place = "", 0
        self._decoder = json.JSONDecoder(object_pairs_hook=_without_repeats)

    def letter(self) -> str:
        """Give the next letter that is no space, without going past it; empty at the end of the file."""
        while self._place < len(self._text) or self._more():
            letter = self._text[self._place]
            if letter not in _SPACE:
                return letter
            self.skip()
        return ""

    def skip(self) -> None:
        """Go past one letter."""
        self.line += self._text[self._place] == "\n"
        self._place += 1

    def value(self) -> Any:
        """Read one value, and go past it."""
        while True:
            try:
                entry, end = self._decoder.raw_decode(self._text, self._place)
            except json.JSONDecodeError as error:
                if self._may_go_on(error) and self._more():
                    continue
                self.faults.stop(self.line, f"not JSON ({_reason(error)}); {_EXPECTED['array']}")
            except (ValueError, RecursionError) as error:
                self.faults.stop(self.line, f"not JSON ({_reason(error)}); {_EXPECTED['array']}")
            self.line += self._text.count("\n", self._place, end)
            self._place = end
            return entry

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        """Say whether the error may come from the end of what has been read so far."""
        if len(self._text) - self._place > _LONGEST:
            self.faults.stop(self.line, f"an object longer than {_LONGEST:,} letters; {_EXPECTED['array']}")
        return error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _TAIL

    def _more(self) -> bool:
        block = next(self._blocks, "")
        self._text, self._place = self._text[self._place :] + block, 0
        return bool(block)


def _array(path: Path, faults: Faults) -> Iterator[Entry]:
    reader = _Reader(path, faults)
    reader.letter()
    reader.skip()
    more = reader.letter() != "]"
    while more:
        line, begins = reader.line, reader.letter()
        if begins != "{":
            faults.stop(line, f"{begins!r} where an object should begin; {_EXPECTED['array']}")
        yield line, reader.value()
        more = reader.letter() == ","
        if more:
            reader.skip()
            reader.letter()
        elif reader.letter() != "]":
            faults.stop(reader.line, f"{reader.letter()!r} after an object; expected a comma or the end of the array")
    reader.skip()
    if reader.letter():
        faults.stop(reader.line, f"{reader.letter()!r} after the end of the array; {_EXPECTED['array']}")


class _RepeatedKey(ValueError):
    pass


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    return str(error) if isinstance(error, _RepeatedKey) else "a value too large or too deep"


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry = dict(pairs)
    if len(entry) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedKey(f"the key {next(name for name in names if names.count(name) > 1)!r} twice")
    return entry
