"""Relations between two marked words of a sentence: SemEval-2010 task 8, and a user's own files or tables like it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from formwright.core.errors import IllegalInput, nearest_hint
from formwright.tasks.constant_answers import commonest_class
from formwright.tasks.metrics import metric
from formwright.tasks.own_files import Files, NamedSplits, ReadFiles, split_files, training_file
from formwright.tasks.pretrained_tokeniser import with_tokens
from formwright.tasks.rows import PlainText, RowsOfText, TextRows
from formwright.tasks.splitting import divided
from formwright.tasks.tables import format_of
from formwright.tasks.task import Task
from formwright.tasks.text_files import Faults, data_folder, find_file, read_lines
from formwright.tasks.tokeniser import Tokeniser, train_wordpiece
from formwright.tasks.user_tables import OwnFiles, own_task

MARKERS = ("<e1>", "</e1>", "<e2>", "</e2>")  # around the two words of a sentence
SEMEVAL = "semeval2010_task8"
METRICS = ("relation-f1", "accuracy")
ABOUT = "the relation between two marked nouns of a sentence, and its direction"
_SENTENCE = re.compile(r'(\d+)\s+"?(.*?)"?\s*')
_ENDS = ".txt, or with .gz"


def has_relations(path: Path) -> str:
    """Say why a file, or the training file of a folder, has relations; empty if it does not seem so."""
    file = training_file(path)
    if file is None or format_of(file) is not None:
        return ""
    try:
        first = next((line for line in read_lines(file, Faults(str(file))) if line.strip()), "")
    except IllegalInput:  # not a file of text
        return ""
    is_one = _SENTENCE.fullmatch(first.strip()) and all(marker in first for marker in MARKERS)
    return f"the first line of {file.name} is a numbered sentence with {' and '.join(MARKERS[::2])}" if is_one else ""


def relation_task(path: Path | str, text: tuple[str, ...] = (), label: str = "", official_dev: bool = False) -> Task:
    """Make a task of sentences with marked words: a file in the form of SemEval-2010 task 8, a table, or a folder.

    The text of a table has the markers `<e1>`, `</e1>`, `<e2>` and `</e2>`; `text` and `label` name its columns.
    """
    file = training_file(Path(path))
    if file is not None and format_of(file) is not None:
        found = own_task(path, text, label, "sequence-classification", official_dev)
        source = found.splits
        assert isinstance(source, OwnFiles)
        for table in source.tables.values():
            texts = (" ".join(row[: len(source.text)]) for row in table.rows)
            _check_markers(table.where, zip(table.lines, texts, strict=True))
        return _with_metrics(found)
    if text or label:
        raise IllegalInput(f"{path} has no columns; leave out --text and --label")
    return _task(str(path), split_files(Path(path), lambda one: format_of(one) is None, _ENDS), official_dev)


def semeval_task(data: Path | None, official_dev: bool = False) -> Task:
    """Make the task of the files TRAIN_FILE.TXT and TEST_FILE_FULL.TXT in a folder, or in its parent folder."""
    if data is None:
        raise IllegalInput(f"the task {SEMEVAL!r} is read from its files; give their folder with --data DIR")
    folder = data_folder(data, SEMEVAL)
    names = {"train": "TRAIN_FILE.TXT", "test": "TEST_FILE_FULL.TXT"}
    files = tuple((split, find_file(folder, f"{split} set", name)) for split, name in names.items())
    return _task(SEMEVAL, files, official_dev)


def _task(name: str, files: Files, official_dev: bool) -> Task:
    source = ReadFiles.of(files, read_relations, official_dev)
    return _with_metrics(Task(name, "", METRICS[0], source, METRICS, source.found.labels, about=ABOUT))


def _with_metrics(task: Task) -> Task:
    """Return a task of classes as one of relations."""
    view, labels = task.search_view(), task.labels
    _, often = commonest_class(np.asarray(view.train.labels), labels)
    truth = [labels[int(label)] for label in view.validation.labels]
    chance = metric(METRICS[0]).compute([labels[often]] * len(truth), truth)
    return replace(task, kind="relation-classification", metric=METRICS[0], metrics=METRICS, chance=chance, guess="")


def read_relations(files: Mapping[str, Path], official_dev: bool) -> NamedSplits:
    """Read the sentences of each split; the relations are those of the training file."""
    read = {split: list(_blocks(file)) for split, file in files.items()}
    labels = tuple(sorted({label for _, _, label in read["train"]}))
    if len(labels) < 2:
        raise IllegalInput(f"all sentences of {files['train']} have the same relation; expected at least two")
    rows = {}
    for split, found in read.items():
        faults = Faults(str(files[split]))
        _check_markers(str(files[split]), ((line, text) for line, text, _ in found))
        for number, _, label in found:
            if label not in labels:
                faults.add(number, f"relation {label!r} is not among those of training.{nearest_hint(label, labels)}")
        faults.end()
        texts, numbers = tuple((text,) for _, text, _ in found), tuple(labels.index(label) for *_, label in found)
        rows[split] = TextRows(texts, numbers, numbers=tuple(range(len(texts))), source=str(files[split]))
    return NamedSplits(labels, divided(rows, official_dev, by_class=True))


def _blocks(file: Path) -> Iterator[tuple[int, str, str]]:
    """Yield for each sentence its line, its text and its relation; comments are skipped."""
    faults, text, line = Faults(str(file)), "", 0
    for number, content in enumerate(read_lines(file, faults), start=1):
        words = content.strip()
        found = _SENTENCE.fullmatch(words)
        sentence, comment = found and all(marker in words for marker in MARKERS), words.startswith("Comment:")
        if text and (sentence or comment):
            faults.add(line, f"a sentence without its relation, which is expected in line {line + 1}")
            text = ""
        if sentence and found:
            text, line = found[2], number
        elif text and words:
            yield line, text, words
            text = ""
        elif words and not comment:
            faults.add(number, "expected a number and a sentence with <e1>, </e1>, <e2> and </e2>, or its relation")
    if text:
        faults.add(line, "a sentence without its relation, at the end of the file")
    faults.end()


def unlabelled_relations(texts: Sequence[tuple[str, ...]]) -> TextRows:
    """Make rows without answers of texts in which two words are marked."""
    _check_markers("the rows to predict", enumerate((" ".join(row) for row in texts), start=1), unit="row")
    return TextRows(tuple(texts), (0,) * len(texts))


def _check_markers(where: str, sentences: Iterable[tuple[int, str]], unit: str = "line") -> None:
    """Raise if a sentence of a file, given with its line, does not have every marker once."""
    faults = Faults(where, unit)
    for line, sentence in sentences:
        absent = [marker for marker in MARKERS if sentence.count(marker) != 1]
        if absent:
            faults.add(line, f"expected each of {', '.join(MARKERS)} once; look for {', '.join(absent)}")
    faults.end()


def train_marked_wordpiece(rows: RowsOfText, size: int = 1_000) -> Tokeniser:
    """Train a tokeniser that knows the markers as tokens."""
    texts = tuple(re.sub("|".join(MARKERS), " ", text) for text in rows.all_texts)
    return with_tokens(train_wordpiece(PlainText(texts), size - len(MARKERS)), MARKERS)
