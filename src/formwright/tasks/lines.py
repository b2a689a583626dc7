"""Read text and JSON files, plain or gzip, with bounded memory, and collect what is wrong with them."""

import codecs
import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NoReturn

from formwright.core.errors import IllegalInput

_MOST = 5  # faults told at once
_BLOCK = 1 << 20  # bytes read at once
MOST_LINES, MOST_BYTES = 5_000_000, 4 << 30  # of a file, unpacked
_LONGEST = 1 << 24  # bytes of a line: reading never fills the memory, whatever the file is


@dataclass(frozen=True)
class Faults:
    """Collect the faults of one source, so that the user sees several at once."""

    where: str
    unit: str = "line"
    found: list[str] = field(default_factory=list)

    def add(self, line: int, what: str) -> None:
        """Record a fault of a line; raise when there are enough."""
        self.note(f"{self.unit} {line}", what)

    def note(self, place: str, what: str) -> None:
        """Record a fault at a place other than a line; raise when there are enough."""
        self.found.append(f"{place}: {what}")
        if len(self.found) == _MOST:
            self.end(" (and perhaps more)")

    def stop(self, line: int, what: str) -> NoReturn:
        """Record a fault after which reading cannot continue, and raise."""
        self.found.append(f"{self.unit} {line}: {what}")
        self.end()
        raise AssertionError("faults were found")

    def end(self, more: str = "") -> None:
        """Raise `IllegalInput` with all faults, if there are any."""
        if len(self.found) == 1:
            raise IllegalInput(f"{self.where}, {self.found[0]}")
        if self.found:
            raise IllegalInput("\n  ".join([f"{self.where} has {len(self.found)} faults{more}:", *self.found]))


def read_lines(path: Path, faults: Faults) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, line ends included, without a byte order mark; gzip where it ends in `.gz`."""
    with readable(path, faults) as file:
        number = 0
        while data := file.readline(_LONGEST + 1):
            number += 1
            if number > MOST_LINES:
                faults.stop(number, f"more than {MOST_LINES:,} lines, which is more than is read; give fewer of them")
            yield _decode(data, number, faults)


def read_blocks(path: Path, faults: Faults) -> Iterator[str]:
    """Yield the text of a UTF-8 file in blocks, for formats that are not line-based; otherwise as `read_lines`."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    with readable(path, faults) as file:
        number, data = 1, b"-"
        while data:
            data = file.read(_BLOCK)
            if b"\0" in data:  # UTF-16 has one in every Latin letter
                faults.stop(number, "a NUL byte; expected text in UTF-8, the file is binary or in another encoding")
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                number += error.object[: error.start].count(b"\n")
                faults.stop(number, f"byte 0x{error.object[error.start]:02X} is not UTF-8; save the file in UTF-8")
            number += data.count(b"\n")
            if text:
                yield text


def _decode(data: bytes, number: int, faults: Faults) -> str:
    if len(data) > _LONGEST:
        faults.stop(number, f"longer than {_LONGEST:,} bytes; expected a table of text, one row a line")
    if number == 1 and data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        faults.stop(number, "UTF-16; expected UTF-8, save the file in that encoding")
    if b"\0" in data:
        faults.stop(number, "a NUL byte; expected text in UTF-8, the file is binary or damaged")
    try:
        return data.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        byte = data[error.start]
        faults.stop(number, f"byte {error.start + 1} is 0x{byte:02X}, which is not UTF-8; save the file in UTF-8")


@dataclass
class Bounded:
    """A file with a limit on the bytes read or unpacked: a small `.gz` may expand to a lot."""

    file: IO[bytes] | gzip.GzipFile
    where: str
    left: int

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes, or all."""
        return self._counted(self.file.read(self.left + 1 if size < 0 else size))

    def readline(self, size: int) -> bytes:
        """Read a line, or up to `size` bytes of it."""
        return self._counted(self.file.readline(size))

    def _counted(self, data: bytes) -> bytes:
        self.left -= len(data)
        if self.left < 0:
            raise IllegalInput(f"{self.where} holds more than {MOST_BYTES:,} bytes, unpacked; give fewer rows")
        return data


@contextmanager
def readable(path: Path, faults: Faults) -> Iterator[Bounded]:
    """Open a file, gzip where it ends in `.gz`, and turn what fails while it is read into `IllegalInput`."""
    try:
        with path.open("rb") as plain, gzip.open(plain) if path.suffix == ".gz" else plain as file:
            yield Bounded(file, faults.where, MOST_BYTES)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        cut = "it is cut short" if isinstance(error, EOFError) else str(error)
        raise IllegalInput(f"cannot unpack {faults.where}: {cut}; fetch the file again") from None
    except IsADirectoryError:
        raise IllegalInput(f"cannot read {faults.where}: it is a folder; expected a file") from None
    except OSError as error:
        raise IllegalInput(f"cannot read {faults.where}: {error.strerror or error}") from None


_LONGEST_OBJECT = 1 << 24  # letters of one object of an array, as many as a line may have bytes
_TAIL = 12  # letters at the end of a block that may be half a word of JSON, as in `fals`
_EXPECTED = {"line": "expected one JSON object a line", "array": "expected an array of JSON objects"}
_SPACE = " \t\r\n"

Entry = tuple[int, dict[str, Any]]  # the line it starts on, and its values by key


def json_objects(path: Path, faults: Faults) -> Iterator[Entry]:
    """Yield the objects of a file: of its array, where a `.json` file holds one, or of its lines."""
    named_json = path.name.removesuffix(".gz").lower().endswith(".json")
    array = named_json and _first_letter(path, faults) == "["
    for number, entry in enumerate((_array if array else _lines)(path, faults), start=1):
        if number > MOST_LINES:
            faults.stop(entry[0], f"more than {MOST_LINES:,} objects, which is more than is read; give fewer")
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
    """Read a JSON array block by block, so that memory holds one object at a time."""

    def __init__(self, path: Path, faults: Faults) -> None:
        self.faults = faults
        self.line = 1
        self._blocks = read_blocks(path, faults)
        self._text, self._place = "", 0
        self._decoder = json.JSONDecoder(object_pairs_hook=_without_repeats)

    def letter(self) -> str:
        """Return the next non-space character without consuming it; empty at the end of the file."""
        while self._place < len(self._text) or self._more():
            letter = self._text[self._place]
            if letter not in _SPACE:
                return letter
            self.skip()
        return ""

    def skip(self) -> None:
        """Consume one character."""
        self.line += self._text[self._place] == "\n"
        self._place += 1

    def value(self) -> Any:
        """Read and consume one value."""
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
        """Return whether the error may come from the end of what has been read so far."""
        if len(self._text) - self._place > _LONGEST_OBJECT:
            self.faults.stop(self.line, f"an object longer than {_LONGEST_OBJECT:,} letters; {_EXPECTED['array']}")
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
