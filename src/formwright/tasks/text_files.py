"""Find and read text and JSON files, plain or gzip, with bounded memory, and collect what is wrong with them."""

import codecs
import gzip
import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import IO, Any, NoReturn

from formwright.core.errors import IllegalInput

_MOST_FAULTS = 5  # reported at once
# what is read of a file, unpacked: a small `.gz` may expand to a lot
MOST_LINES, MOST_BYTES = 5_000_000, 4 << 30
MOST_WHOLE = 1 << 30  # bytes of a file that is read at once
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
        if len(self.found) == _MOST_FAULTS:
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


def data_folder(data: Path, name: str) -> Path:
    """Return the folder of published files: the given one, or the one called `name` within it."""
    data = Path(os.path.abspath(data))
    if not os.path.isdir(data):  # unlike `Path.is_dir`, returns false for a name that is too long
        state = "a file" if os.path.exists(data) else "not there"
        raise IllegalInput(f"{data} is {state}; expected the folder {name}, or one that holds it")
    found = data / name if (data / name).is_dir() else data
    refuse_archive(found)
    return found


_ARCHIVES = (".tar.gz", ".tgz", ".tar")


def refuse_archive(path: Path) -> None:
    """Raise if a path is a packed archive, or a folder that holds nothing else; say how to unpack it."""
    with reading(path):
        inside = sorted(path.iterdir()) if os.path.isdir(path) else []
    files = [file for file in inside if not file.name.startswith(".")] or [path]
    if not all(file.name.lower().endswith(_ARCHIVES) and os.path.isfile(file) for file in files):
        return
    lines = " && ".join(["mkdir -p unpacked", *(f"tar -xf {quote(str(file))} -C unpacked" for file in files)])
    raise IllegalInput(f"{files[0]} is packed: unpack it with `{lines}` and name the folder with its files instead")


def find_file(folder: Path, what: str, *names: str) -> Path:
    """Return the first of some files that is in a folder, plain or gzip; `what` says what it holds."""
    tried = [name + ending for name in names for ending in ("", ".gz")]
    found = next((folder / name for name in tried if (folder / name).exists()), None)
    if found is None:
        raise IllegalInput(
            f"no {what} in {folder}: expected one of {', '.join(tried)}; name their folder with --data DIR"
        )
    return found


def read_lines(path: Path, faults: Faults) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, line ends included, without a byte order mark; gzip where it ends in `.gz`."""
    with opened(path) as file:
        number = size = 0
        while data := file.readline(_LONGEST + 1):
            number, size = number + 1, size + len(data)
            if number > MOST_LINES:
                faults.stop(number, f"more than {MOST_LINES:,} lines, which is more than is read; give fewer of them")
            if size > MOST_BYTES:
                faults.stop(number, f"more than {MOST_BYTES:,} bytes, unpacked; give fewer rows")
            if len(data) > _LONGEST:
                faults.stop(number, f"longer than {_LONGEST:,} bytes; expected a table of text, one row a line")
            yield _decoded(data, number, faults)


def read_text(path: Path) -> str:
    """Read a UTF-8 file at once, without a byte order mark; gzip where it ends in `.gz`."""
    with opened(path) as file:
        content = file.read(MOST_WHOLE + 1)
    if len(content) > MOST_WHOLE:
        raise IllegalInput(f"{path} holds more than {MOST_WHOLE:,} bytes, unpacked, which is more than is read at once")
    return _decoded(content, 1, Faults(str(path)))


def _decoded(data: bytes, line: int, faults: Faults) -> str:
    """Decode bytes that begin on a line."""
    if line == 1 and data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        faults.stop(line, "UTF-16; expected UTF-8, save the file in that encoding")
    if (place := data.find(b"\0")) >= 0:
        what = "a NUL byte; expected text in UTF-8, the file is binary, damaged or in another encoding"
        faults.stop(line + data.count(b"\n", 0, place), what)
    try:
        return data.removeprefix(codecs.BOM_UTF8 if line == 1 else b"").decode("utf-8")
    except UnicodeDecodeError as error:
        *before, last = error.object[: error.start].split(b"\n")
        byte = f"byte {len(last) + 1} is 0x{error.object[error.start]:02X}"
        faults.stop(line + len(before), f"{byte}, which is not UTF-8; save the file in UTF-8")


def ending(path: Path) -> str:
    """Return the end of a file's name in lower case, `.gz` aside: `.csv` of `ROWS.CSV.GZ`."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Open a file, gzip where it ends in `.gz`."""
    packed = path.suffix.lower() == ".gz"
    with reading(path), path.open("rb") as plain, gzip.open(plain) if packed else plain as file:
        yield file


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what fails while a file or a folder is read into `IllegalInput`."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        cut = "it is cut short" if isinstance(error, EOFError) else str(error)
        raise IllegalInput(f"cannot unpack {path}: {cut}; fetch the file again") from None
    except IsADirectoryError:
        raise IllegalInput(f"cannot read {path}: it is a folder; expected a file") from None
    except OSError as error:
        raise IllegalInput(f"cannot read {path}: {error.strerror or error}") from None


def files_digest(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of the bytes of some files, in hexadecimal."""
    return hashlib.sha256(b"".join(map(bytes.fromhex, file_digests(paths)))).hexdigest()


def file_digests(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return the SHA-256 of the bytes of each file, in hexadecimal."""
    found = []
    for path in paths:
        with reading(path), path.open("rb") as file:
            found.append(hashlib.file_digest(file, "sha256").hexdigest())
    return tuple(found)


_SPACE = re.compile(r"[ \t\r\n]*")
_LINE, _ARRAY = "expected one JSON object a line", "expected an array of JSON objects"

Entry = tuple[int, dict[str, Any]]  # the line it starts on, and its values by key


def json_objects(path: Path, faults: Faults) -> Iterator[Entry]:
    """Yield the objects of a file: of its array, where a `.json` file holds one, or of its lines."""
    is_array = False
    if ending(path) == ".json":
        with opened(path) as file:
            is_array = file.read(1 << 16).removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
    found = _in_array(read_text(path), faults) if is_array else _in_lines(path, faults)
    for number, entry in enumerate(found, start=1):
        if number > MOST_LINES:
            faults.stop(entry[0], f"more than {MOST_LINES:,} objects, which is more than is read; give fewer")
        yield entry


def json_kind(entry: Any) -> str:
    """Name the kind of a JSON value."""
    return {list: "array", dict: "object", str: "string", bool: "boolean", type(None): "null"}.get(
        type(entry), "number"
    )


def _in_lines(path: Path, faults: Faults) -> Iterator[Entry]:
    for line, text in enumerate(read_lines(path, faults), start=1):
        if not text.strip():
            continue
        try:
            entry = json.loads(text, object_pairs_hook=_without_repeats)
        except (ValueError, RecursionError) as error:
            faults.add(line, f"not JSON ({_reason(error)}); {_LINE}")
            continue
        if isinstance(entry, dict):
            yield line, entry
        else:
            faults.add(line, f"a JSON {json_kind(entry)}; {_LINE}")


def _in_array(text: str, faults: Faults) -> Iterator[Entry]:
    """Yield the objects of an array one by one: a fault is reported with the line on which its object starts."""
    decoder, place, line = json.JSONDecoder(object_pairs_hook=_without_repeats), 0, 1

    def next_letter(behind: int) -> str:
        nonlocal place, line
        end = _SPACE.match(text, behind).end()  # type: ignore[union-attr]
        line, place = line + text.count("\n", place, end), end
        return text[place : place + 1]

    next_letter(0)
    letter = next_letter(place + 1)  # behind the bracket
    while letter != "]":
        if letter != "{":
            faults.stop(line, f"{letter!r} where an object should begin; {_ARRAY}")
        try:
            entry, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            faults.stop(line, f"not JSON ({_reason(error)}); {_ARRAY}")
        yield line, entry
        letter = next_letter(end)
        if letter not in (",", "]"):
            faults.stop(line, f"{letter!r} after an object; expected a comma or the end of the array")
        if letter == "," and (letter := next_letter(place + 1)) == "]":
            faults.stop(line, f"a comma after the last object; {_ARRAY}")
    if letter := next_letter(place + 1):
        faults.stop(line, f"{letter!r} after the end of the array; {_ARRAY}")


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
