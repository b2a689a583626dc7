"""Multi30k and WikiText-2, from a folder with their published files, plain or gzip."""

import os
from dataclasses import dataclass
from pathlib import Path

from formwright.core.errors import IllegalInput
from formwright.tasks.lines import Faults, read_lines
from formwright.tasks.metrics import check_bleu
from formwright.tasks.rows import PlainText, Splits, TranslationRows
from formwright.tasks.task import Kind, Task

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
        return Splits(*(_paragraphs(file) for file in self.files))


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
    corpus, folder = CORPORA[name], _folder(name, data)
    if "bleu" in corpus.metrics:
        check_bleu()
    source: Pairs | Paragraphs
    if corpus.kind == "seq2seq-lm":
        source = Pairs(tuple((_file(folder, f"{split}.en"), _file(folder, f"{split}.de")) for split in _MULTI30K))
    else:
        source = Paragraphs(tuple(_file(folder, f"{split}.txt", f"wiki.{split}.tokens") for split in _WIKITEXT))
    return Task(name, corpus.kind, corpus.metrics[0], source, corpus.metrics, about=corpus.about)


def _folder(name: str, data: Path | None) -> Path:
    if data is None:
        raise IllegalInput(f"the task {name!r} is read from its files; give their folder with --data DIR")
    data = Path(os.path.abspath(data))
    if not os.path.isdir(data):
        state = "a file" if os.path.exists(data) else "not there"
        raise IllegalInput(f"{data} is {state}; expected the folder {name}, or one that holds it")
    return data / name if (data / name).is_dir() else data


def _file(folder: Path, *names: str) -> Path:
    tried = [name + ending for name in names for ending in ("", ".gz")]
    found = next((folder / name for name in tried if (folder / name).exists()), None)
    if found is None:
        raise IllegalInput(f"{folder} has none of {', '.join(tried)}; give the folder that has with --data DIR")
    return found


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


def _paragraphs(file: Path) -> PlainText:
    texts = tuple(line for line in _lines(file) if line)
    if not texts:
        raise IllegalInput(f"{file} holds no text")
    return PlainText(texts)


def _lines(file: Path) -> tuple[str, ...]:
    return tuple(line.strip() for line in read_lines(file, Faults(str(file))))
