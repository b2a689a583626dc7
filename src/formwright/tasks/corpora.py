"""Texts without labels: Multi30k and WikiText-2 from their published files, Python's own reference, a user's file."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pydoc_data.topics import topics

from formwright.core.errors import IllegalInput
from formwright.tasks.metrics import check_bleu
from formwright.tasks.rows import PlainText, Splits, TranslationRows, View
from formwright.tasks.task import Kind, Task
from formwright.tasks.text_files import Faults, data_folder, find_file, read_lines, read_text

_MULTI30K = ("train", "val", "test_2016_flickr")
_WIKITEXT = ("train", "valid", "test")


@dataclass(frozen=True)
class Pairs:
    """Read sentences and their translations: two files for each split, line by line."""

    files: tuple[tuple[Path, Path], ...]

    def __call__(self) -> Splits[TranslationRows]:
        return Splits(*(_pairs(*both) for both in self.files))


@dataclass(frozen=True)
class Paragraphs:
    """Read texts: one file for each split, a paragraph in every line that is not empty."""

    files: tuple[Path, ...]

    def __call__(self) -> Splits[PlainText]:
        found = [tuple(line for line in _lines(file) if line) for file in self.files]
        for file, texts in zip(self.files, found, strict=True):
            if not texts:
                raise IllegalInput(f"{file} holds no text")
        return Splits(*map(PlainText, found))


@dataclass(frozen=True)
class CorpusSpec:
    """The kind and the metrics of a corpus task."""

    kind: Kind
    metrics: tuple[str, ...]
    about: str


CORPORA = {
    "multi30k": CorpusSpec("seq2seq-lm", ("perplexity", "bleu"), "captions of images, from English into German"),
    "wikitext-2": CorpusSpec("causal-lm", ("perplexity",), "predict the next token of articles of Wikipedia"),
}


def corpus_task(name: str, data: Path | None) -> Task:
    """Make a task of `CORPORA` from the folder of its files, or from its parent folder."""
    corpus = CORPORA[name]
    if data is None:
        raise IllegalInput(f"the task {name!r} is read from its files; give their folder with --data DIR")
    folder = data_folder(data, name)
    source: Pairs | Paragraphs
    if corpus.kind == "seq2seq-lm":
        check_bleu()
        files = [[find_file(folder, f"{split} set", f"{split}.{end}") for end in ("en", "de")] for split in _MULTI30K]
        source = Pairs(tuple((first, second) for first, second in files))
    else:
        source = Paragraphs(tuple(_wikitext(folder, split) for split in _WIKITEXT))
    return Task(name, corpus.kind, corpus.metrics[0], source, corpus.metrics, about=corpus.about)


def _wikitext(folder: Path, split: str) -> Path:
    return find_file(folder, f"{split} set of WikiText-2", f"{split}.txt", f"wiki.{split}.tokens")


def _pairs(source: Path, target: Path) -> TranslationRows:
    sources, targets = _lines(source), _lines(target)
    if len(sources) != len(targets):
        raise IllegalInput(
            f"{source} has {len(sources):,} lines and {target} {len(targets):,}; line by line they are translations"
        )
    empty = next((number for number, pair in enumerate(zip(sources, targets, strict=True), 1) if not all(pair)), None)
    if empty is not None:
        raise IllegalInput(f"line {empty} of {source} or {target} is empty; expected a sentence in each")
    return TranslationRows(sources, targets)


def _lines(file: Path) -> tuple[str, ...]:
    return tuple(line.strip() for line in read_lines(file, Faults(str(file))))


# Python's reference

_FEWEST_IN_PARAGRAPH = 6  # words: headings, rules and lone labels are no prose


def _topic_place(topic: str) -> float:
    """Return for each topic a fixed place from 0 to 1, which does not depend on the other topics."""
    return int.from_bytes(hashlib.sha256(topic.encode()).digest()[:8], "big") / 2**64


@cache
def pydoc_splits() -> Splits[PlainText]:
    """Return the prose of Python's own reference, which every Python carries.

    Whole topics are dealt to the splits, about 80, 10 and 10 percent; a repeated paragraph stays where it was first.
    The text differs between versions of Python, and with it the scores: compare only what one version has measured.
    """
    dealt: tuple[list[str], list[str], list[str]] = ([], [], [])
    seen: set[str] = set()
    for topic in sorted(topics, key=_topic_place):
        split = sum(_topic_place(topic) >= end for end in (0.8, 0.9))
        found = (paragraph.split() for paragraph in re.split(r"\n\s*\n", topics[topic]))
        prose = [" ".join(words) for words in found if len(words) >= _FEWEST_IN_PARAGRAPH]
        fresh = [paragraph for paragraph in prose if paragraph not in seen]
        dealt[split].extend(dict.fromkeys(fresh))
        seen.update(fresh)
    return Splits(*(PlainText(tuple(paragraphs)) for paragraphs in dealt))


PYDOC_MASKED = Task(
    "pydoc/masked", "masked-lm", "perplexity", pydoc_splits, about="fill in masked tokens of Python's reference"
)
PYDOC_CAUSAL = Task(
    "pydoc/causal", "causal-lm", "perplexity", pydoc_splits, about="predict the next token of Python's reference"
)


# pieces of text that students are taught on

_FEWEST_IN_PIECE = 3  # words: headings and empty lines teach nothing
_WORDS_A_TOKEN = 0.75
_HELD = 10  # one piece in ten is held out where the text has no validation part of its own
_FEWEST_PIECES = 20


def text_pieces(name: str, data: Path | None, length: int) -> View[PlainText]:
    """Read a text by its name, in different pieces of about `length` tokens at most.

    An empty name stands for the prose of Python's reference, `wikitext` or `wikitext-2` for the files of WikiText-2 in
    the folder `data`, and everything else for a file of text in UTF-8, of which a tenth is held out for validation.
    """
    if name in ("wikitext", "wikitext-2"):
        if data is None:
            raise IllegalInput("--text wikitext is read from files; name their folder with --data")
        folder = data_folder(data, "wikitext-2")
        return View(*(_pieces(read_text(_wikitext(folder, part)), length, name) for part in ("train", "valid")))
    if data is not None:
        raise IllegalInput("--data is the folder of --text wikitext; other texts need none")
    if not name:
        view = pydoc_splits().view
        return View(*(_pieces("\n".join(rows.texts), length, name) for rows in (view.train, view.validation)))
    pieces = _pieces(read_text(Path(name)), length, name).texts
    train = tuple(piece for number, piece in enumerate(pieces, 1) if number % _HELD)
    return View(PlainText(train), PlainText(pieces[_HELD - 1 :: _HELD]))


def _pieces(text: str, length: int, name: str) -> PlainText:
    most = max(int(_WORDS_A_TOKEN * length), _FEWEST_IN_PIECE)
    lines = (line.split() for line in text.splitlines())
    pieces = (words[start : start + most] for words in lines for start in range(0, len(words), most))
    found = tuple(dict.fromkeys(" ".join(piece) for piece in pieces if len(piece) >= _FEWEST_IN_PIECE))
    if len(found) < _FEWEST_PIECES:
        raise IllegalInput(
            f"the text {name} has {len(found)} pieces of at least {_FEWEST_IN_PIECE} words; {_FEWEST_PIECES} or more "
            "are needed"
        )
    return PlainText(found)
