"""Texts without labels: Multi30k and WikiText-2 from their published files, Python's own reference, a user's file."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from pydoc_data.topics import topics

from formwright.core.errors import IllegalInput
from formwright.tasks.conll import has_tags
from formwright.tasks.kind import KINDS
from formwright.tasks.metrics import check_bleu
from formwright.tasks.own_files import NamedSplits, ReadFiles, split_files, training_file
from formwright.tasks.relations import has_relations
from formwright.tasks.rows import PlainText, Splits, TranslationRows, View
from formwright.tasks.task import Task
from formwright.tasks.text_files import Faults, data_folder, ending, find_file, read_lines, read_text

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


def _multi30k(folder: Path) -> Pairs:
    check_bleu()
    files = [[find_file(folder, f"{split} set", f"{split}.{end}") for end in ("en", "de")] for split in _MULTI30K]
    return Pairs(tuple((first, second) for first, second in files))


def _wikitext_2(folder: Path) -> Paragraphs:
    return Paragraphs(tuple(_wikitext(folder, split) for split in _WIKITEXT))


@dataclass(frozen=True)
class CorpusSpec:
    """The kind and the metrics of a corpus task; `source` reads its folder."""

    source: Callable[[Path], Pairs | Paragraphs]
    kind: str
    metrics: tuple[str, ...]
    about: str


CORPORA = {
    "multi30k": CorpusSpec(_multi30k, "seq2seq-lm", ("perplexity", "bleu"), "captions from English into German"),
    "wikitext-2": CorpusSpec(_wikitext_2, "causal-lm", ("perplexity",), "the next token of articles of Wikipedia"),
}


def corpus_task(name: str, data: Path | None) -> Task:
    """Make a task of `CORPORA` from the folder of its files, or from its parent folder."""
    corpus = CORPORA[name]
    if data is None:
        raise IllegalInput(f"the task {name!r} is read from its files; give their folder with --data DIR")
    source = corpus.source(data_folder(data, name))
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


# a user's own text

_ENDS = (".txt", ".text", ".md")
_FEWEST_LINES = 10  # of a file that is divided


def has_text(path: Path) -> str:
    """Say why a file, or the training file of a folder, is a text to learn language from; empty if it is not."""
    file = training_file(path)
    if file is None or not _is_text(file) or has_tags(path) or has_relations(path):
        return ""
    return f"{file.name} is a file of text"


def own_text(
    path: Path | str, text: tuple[str, ...] = (), label: str = "", official_dev: bool = False, kind: str = "causal-lm"
) -> Task:
    """Make a task of a text file in UTF-8, or of a folder with one file each for train, validation and test.

    Every line that is not empty is a paragraph. A single file is divided 80/10/10 from its beginning to its end, so
    that neighbouring lines stay together; in a folder, missing splits are divided off in the same way.
    """
    if text or label:
        raise IllegalInput(f"{path} has no columns; leave out --text and --label")
    files = split_files(Path(path), _is_text, ", ".join(_ENDS))
    about = f"{KINDS.get(kind).about} of {', '.join(file.name for _, file in files)}"
    source = ReadFiles.of(files, read_paragraphs, official_dev)
    source()  # what cannot be read is refused before anything is planned
    return Task(str(path), kind, KINDS.get(kind).metrics[0], source, about=about)


def read_paragraphs(files: Mapping[str, Path], official_dev: bool) -> NamedSplits:
    """Read the paragraphs of each split."""
    found = {split: tuple(line for line in _lines(file) if line) for split, file in files.items()}
    for split, texts in found.items():
        if not texts:
            raise IllegalInput(f"{files[split]} holds no text")
    if official_dev and "validation" not in found:
        raise IllegalInput(f"{files['train']} comes without a validation set, so none can be kept whole")
    division = "train, validation and test as they came"
    if "validation" not in found:
        shares = (90, 10) if "test" in found else (80, 10, 10)
        division = f"the {len(found['train']):,} lines of {files['train'].name}, divided {'/'.join(map(str, shares))}"
        found |= zip(("train", "validation", "test"), _cut_by(found["train"], shares, files["train"]), strict=False)
    elif "test" not in found and not official_dev:
        division = f"the {len(found['validation']):,} lines of {files['validation'].name}, halved"
        found["validation"], found["test"] = _cut_by(found["validation"], (1, 1), files["validation"])
    parts = {split: PlainText(texts) for split, texts in found.items()}
    return NamedSplits((), Splits(parts["train"], parts["validation"], parts.get("test"), division=division))


def _cut_by(texts: tuple[str, ...], shares: tuple[int, ...], file: Path) -> list[tuple[str, ...]]:
    if len(texts) < _FEWEST_LINES:
        raise IllegalInput(f"{file} has {len(texts)} lines of text; {_FEWEST_LINES} or more are needed to divide it")
    ends = [0, *(round(len(texts) * share / sum(shares)) for share in accumulate(shares))]
    return [texts[first:behind] for first, behind in pairwise(ends)]


def _is_text(path: Path) -> bool:
    return ending(path) in _ENDS


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
