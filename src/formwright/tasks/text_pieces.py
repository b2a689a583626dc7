"""The text that students are taught on: Python's own prose, WikiText-2, or a file of the user's own."""

import gzip
from dataclasses import dataclass
from pathlib import Path

from formwright.core.errors import IllegalInput
from formwright.tasks.pydoc import pydoc_splits
from formwright.tasks.rows import PlainText

WIKITEXT = ("wikitext", "wikitext-2")  # the second is the name of the task
_FEWEST_WORDS = 3  # headings and empty lines teach nothing
_WORDS_A_TOKEN = 0.75
_HELD = 10  # one piece of so many is held out where the text has no validation part of its own
_LEAST = 20  # pieces


@dataclass(frozen=True)
class Text:
    """Pieces of text to learn from, and others to judge by."""

    learned: PlainText
    held: PlainText


def read_text(name: str, data: Path | None, length: int) -> Text:
    """Read a text by its name, in pieces of about `length` tokens at most.

    Nothing stands for the prose of Python's reference, `wikitext` or `wikitext-2` for the files of WikiText-2 in the
    folder `data`, and everything else for a file of text in UTF-8, of which a tenth is held out.
    """
    if name in WIKITEXT:
        return Text(*(_checked(_pieces(_part(data, part), length), name) for part in ("train", "valid")))
    if data is not None:
        raise IllegalInput("--data is the folder of --text wikitext; other texts need none")
    if not name:
        view = pydoc_splits().view
        return Text(*(PlainText(_pieces("\n".join(rows.texts), length)) for rows in (view.train, view.validation)))
    pieces = _checked(_pieces(_read(Path(name)), length), name).texts
    held = pieces[_HELD - 1 :: _HELD]
    return Text(PlainText(tuple(piece for number, piece in enumerate(pieces, 1) if number % _HELD)), PlainText(held))


def _part(data: Path | None, part: str) -> str:
    if data is None:
        raise IllegalInput("--text wikitext is read from files; name their folder with --data")
    names = [f"{folder}{part}.txt{ending}" for folder in ("", "wikitext-2/") for ending in ("", ".gz")]
    found = next((data / name for name in names if (data / name).is_file()), None)
    if found is None:
        raise IllegalInput(f"{data} holds no WikiText-2: there is neither {part}.txt nor {part}.txt.gz")
    return _read(found)


def _read(path: Path) -> str:
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    except (OSError, EOFError) as error:
        told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise IllegalInput(f"cannot read the text {path}: {told}") from None
    except UnicodeDecodeError as error:
        raise IllegalInput(f"{path} is not text in UTF-8: {error.reason} at byte {error.start}") from None


def _pieces(text: str, length: int) -> tuple[str, ...]:
    """Cut lines into pieces of about so many tokens, each different piece once."""
    most = max(int(_WORDS_A_TOKEN * length), _FEWEST_WORDS)
    lines = (line.split() for line in text.splitlines())
    pieces = (words[start : start + most] for words in lines for start in range(0, len(words), most))
    return tuple(dict.fromkeys(" ".join(piece) for piece in pieces if len(piece) >= _FEWEST_WORDS))


def _checked(pieces: tuple[str, ...], name: str) -> PlainText:
    if len(pieces) < _LEAST:
        raise IllegalInput(
            f"the text {name} has {len(pieces)} pieces of at least {_FEWEST_WORDS} words; {_LEAST} are the least to "
            "learn from"
        )
    return PlainText(pieces)
