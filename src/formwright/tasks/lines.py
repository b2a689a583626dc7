"""Read text files line by line, plain or gzip, and gather what is wrong with them."""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NoReturn

from formwright.core.errors import IllegalInput

_MOST = 5  # faults told at once
_BLOCK = 1 << 20  # bytes read at once
MOST_LINES, MOST_BYTES = 5_000_000, 4 << 30  # of a file, unpacked
_LONGEST = 1 << 24  # bytes of a line: reading never fills the memory, whatever the file is


@dataclass(frozen=True)
class Faults:
    """Gather what is wrong with one source, so that a user reads of several faults at once."""

    where: str
    unit: str = "line"
    found: list[str] = field(default_factory=list)

    def add(self, line: int, what: str) -> None:
        """Note a fault of a line, and give up on the source when there are enough."""
        self.note(f"{self.unit} {line}", what)

    def note(self, place: str, what: str) -> None:
        """Note a fault at a place that is no line, and give up on the source when there are enough."""
        self.found.append(f"{place}: {what}")
        if len(self.found) == _MOST:
            self.end(" (and perhaps more)")

    def stop(self, line: int, what: str) -> NoReturn:
        """Note a fault after which nothing else can be read."""
        self.found.append(f"{self.unit} {line}: {what}")
        self.end()
        raise AssertionError("faults were found")

    def end(self, more: str = "") -> None:
        """Raise `IllegalInput` with all faults, where there are any."""
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
    """Yield the text of a UTF-8 file block by block, for files whose lines mean nothing; otherwise as `read_lines`."""
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
    """A file of which no more is read, or unpacked, than memory can bear: a small `.gz` may hold a lot."""

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
