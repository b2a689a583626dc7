"""Tags of words from column files: one word a line, its tag in another column, a blank line between sentences."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from formwright.core.errors import IllegalInput, nearest_hint
from formwright.tasks.metrics import metric
from formwright.tasks.own_files import NamedSplits, ReadFiles, split_files, training_file
from formwright.tasks.rows import TaggedRows
from formwright.tasks.splitting import divided
from formwright.tasks.tables import Cells, WholeTable, format_of, read_whole_table, written_table
from formwright.tasks.task import Task
from formwright.tasks.text_files import Faults, ending, read_lines

ENDS = (".conll", ".bio", ".iob", ".iob2", ".conllu")
OUTSIDE = "O"
_TAG = re.compile(r"O|[BIESUL]-\S+")
_LOOKED_AT = 50  # lines of a file by which its form is guessed
_BREAK = "-DOCSTART-"  # the line between two documents
_UNIT = "\x1f"  # ends every word of a text in which a word has a space
_CONLLU, _UPOS, _CONLLU_COLUMNS = ".conllu", 4, 10
_NO_WORD = re.compile(r"#|\d+[-.]\d+\t")  # in CoNLL-U: a comment, a range of words, or an empty node

Sentence = list[tuple[int, str, str]]  # the line of each word, the word and its tag


def has_tags(path: Path) -> str:
    """Say why a file, or the training file of a folder, has words with tags; empty if it does not seem so."""
    file = training_file(path)
    if file is None or format_of(file) is not None:
        return ""
    if _is_column_file(file):
        return f"the name {file.name} is that of a column file"
    try:
        lines = [line.split() for line in islice(read_lines(file, Faults(str(file))), _LOOKED_AT) if line.strip()]
    except IllegalInput:  # not a file of text
        return ""
    tagged = lines and all((len(line) > 1 and _TAG.fullmatch(line[-1])) or line[0] == _BREAK for line in lines)
    return f"the lines of {file.name} end in tags" if tagged else ""


def tag_task(path: Path | str, text: Sequence[str] = (), label: str = "", official_dev: bool = False) -> Task:
    """Make a task of a column file, or of a folder with one file each for train, validation and test.

    Columns are separated by tabs or spaces; the first holds words, and the last tags, or the one that `label` numbers
    from 1. Of CoNLL-U, the second holds words and the fourth tags, unless `label` says otherwise. Tags of entities are
    judged by the F1 of whole entities, others by the share of right tags.
    """
    if text:
        raise IllegalInput(f"{path} is a column file: its word column is fixed, so leave out --text")
    if label and not label.isdecimal():
        raise IllegalInput(f"the columns of {path} have no names; give --label the number of one, from 1")
    files = split_files(Path(path), lambda file: format_of(file) is None, ", ".join(ENDS))
    source = ReadFiles.of(files, ReadTags(int(label or 0)), official_dev)
    labels, splits = source.found.labels, source.found.splits
    of_entities = all(_TAG.fullmatch(name) for name in labels)
    metrics = ("entity-f1", "tag-accuracy") if of_entities else ("tag-accuracy",)
    truth = [[labels[tag] for tag in row] for row in splits.validation.tags]
    often = labels[Counter(splits.train.labels).most_common(1)[0][0]]
    chance = metric(metrics[0]).compute([[often] * len(row) for row in truth], truth)
    about = f"tags of the words of {', '.join(file.name for _, file in files)}"
    return Task(str(path), "token-classification", metrics[0], source, metrics, labels, chance, about)


@dataclass(frozen=True)
class ReadTags:
    """Read sentences with the tags of a column, from 1; 0 is the usual one. Tags are those of the training file."""

    column: int = 0

    def __call__(self, files: Mapping[str, Path], official_dev: bool) -> NamedSplits:
        read = {split: list(_sentences(file, self.column)) for split, file in files.items()}
        names = {tag for sentence in read["train"] for _, _, tag in sentence}
        labels = tuple(sorted(names, key=lambda name: (name != OUTSIDE, name.partition("-")[::-1])))
        if len(labels) < 2:
            tags = f"all words of {files['train']} have the same tag" if labels else f"{files['train']} has no words"
            raise IllegalInput(f"{tags}; expected a word and its tag a line, and at least two different tags")
        rows = {split: _rows(sentences, labels, files[split]) for split, sentences in read.items()}
        return NamedSplits(labels, divided(rows, official_dev, by_class=False))


def _sentences(file: Path, column: int) -> Iterator[Sentence]:
    """Yield the words of each sentence, with their lines and tags."""
    faults, word, tag = Faults(str(file)), _word_column(file), column
    if not tag and _is_conllu(file):
        tag = _UPOS
    least, usual = _CONLLU_COLUMNS if _is_conllu(file) else max(2, tag), 0
    for lines in _blocks(file, faults):
        found = Sentence()
        for number, cells in lines:
            usual = usual or len(cells)
            if not tag and least <= len(cells) < usual:
                faults.add(
                    number,
                    f"{len(cells)} columns, and {usual} in the first line: is the tag missing? (--label N takes the "
                    "tags from column N)",
                )
            elif len(cells) < max(least, tag):
                wanted = f" in column {tag}" if tag else ""
                found_here = f"{len(cells)} column{'' if len(cells) == 1 else 's'}"
                faults.add(number, f"{found_here}; expected {max(least, tag)} or more: a word and its tag{wanted}")
            elif not cells[word] or not cells[tag - 1]:
                empty = word + 1 if not cells[word] else tag or len(cells)
                faults.add(number, f"column {empty} is empty; expected a word and its tag (--label N: in column N)")
            else:
                found.append((number, cells[word], cells[tag - 1]))
        yield found
    faults.end()


def _blocks(file: Path, faults: Faults) -> Iterator[list[tuple[int, list[str]]]]:
    """Yield for each sentence the number of every line that is a word, and its columns."""
    found, conllu = list[tuple[int, list[str]]](), _is_conllu(file)
    for number, line in enumerate(read_lines(file, faults), start=1):
        if conllu and _NO_WORD.match(line):
            continue
        tabs = "\t" in line
        cells = [cell.strip() for cell in line.split("\t" if tabs else " ")]
        if not tabs:  # several spaces separate two columns, and between two tabs is an empty one
            cells = [cell for cell in cells if cell]
        if any(cells) and cells[0] != _BREAK:
            found.append((number, cells))
        elif found:
            yield found
            found = []
    if found:
        yield found


def _is_conllu(file: Path) -> bool:
    return ending(file) == _CONLLU


def _word_column(file: Path) -> int:
    """Return the place of the column of words: the first, after the number of the word in CoNLL-U."""
    return 1 if _is_conllu(file) else 0


def _rows(sentences: Sequence[Sentence], labels: Sequence[str], file: Path) -> TaggedRows:
    places, faults = {name: place for place, name in enumerate(labels)}, Faults(str(file))
    if not sentences:
        raise IllegalInput(f"{file} has no sentences; expected one word and its tag a line")
    for sentence in sentences:
        for number, _, tag in sentence:
            if tag not in places:
                faults.add(number, f"tag {tag!r}, which is not among those of training.{nearest_hint(tag, labels)}")
    faults.end()
    words = tuple(tuple(word for _, word, _ in sentence) for sentence in sentences)
    tags = tuple(tuple(places[tag] for _, _, tag in sentence) for sentence in sentences)
    return TaggedRows(words, tags, numbers=tuple(range(len(words))), source=str(file))


def _is_column_file(path: Path) -> bool:
    return ending(path) in ENDS


def unlabelled_words(texts: Sequence[tuple[str, ...]]) -> TaggedRows:
    """Make rows of texts without tags; spaces divide their words, but in a text of `read_words` that has such words."""
    words = tuple(tuple(_divided(" ".join(row))) for row in texts)
    return TaggedRows(words, tuple((0,) * len(row) for row in words))


def _text(words: Sequence[str]) -> str:
    """Join words by spaces, or, where a word has a space itself, by a character that no word has."""
    joined = " ".join(words)
    return joined if joined.split() == list(words) else "".join(word + _UNIT for word in words)


def _divided(text: str) -> list[str]:
    return text.split(_UNIT)[:-1] if text.endswith(_UNIT) else text.split()


def write_words(rows: Sequence[Cells], names: Sequence[str], form: str) -> str:
    """Write predicted tags as columns of words and tags, or as a table."""
    if form != "conll":
        plain = [{**row, "text": " ".join(_divided(row["text"]))} if "text" in row else row for row in rows]
        return written_table(plain, names, form)
    sentences = (zip(_divided(row["text"]), row["prediction"], strict=True) for row in rows)
    return "\n".join("".join(f"{word}\t{tag}\n" for word, tag in sentence) for sentence in sentences)


def read_words(path: Path, columns: Sequence[str]) -> WholeTable:
    """Read texts to be tagged: a column file, whose tags are ignored, or a table."""
    if format_of(path) is not None:
        return read_whole_table(path, columns)
    faults, word, found = Faults(str(path)), _word_column(path), list[str]()
    for lines in _blocks(path, faults):
        for number, cells in lines:
            if len(cells) <= word:
                faults.add(number, f"one column; expected {_CONLLU_COLUMNS}, of which the second is a word")
            elif not cells[word]:
                faults.add(number, f"column {word + 1} is empty; expected a word")
        found.append(_text([cells[word] for _, cells in lines if len(cells) > word]))
    faults.end()
    return WholeTable(("text",), tuple({"text": text} for text in found), tuple((text,) for text in found))
