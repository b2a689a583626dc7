"""SQuAD 1.1 and 2.0, from files in the official layout or from the Hugging Face hub."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from formwright.core.codec import loads
from formwright.core.errors import IllegalInput
from formwright.core.extras import need
from formwright.core.rng import derive
from formwright.tasks.draw import shuffled
from formwright.tasks.hub import Dataset, hub_tables, split_of
from formwright.tasks.rows import Answer, SpanRows, Splits
from formwright.tasks.tables import HALF_LETTER
from formwright.tasks.task import Task
from formwright.tasks.text_files import Faults, data_folder, find_file, read_text

_LAYOUT = "an object of data[] > paragraphs[] > context, qas[] > answers[]"
_KINDS = {str: "text", int: "a whole number", list: "a list", bool: "true or false"}


@dataclass(frozen=True)
class Question:
    """A question about a paragraph of an article, and its answers: none where it cannot be answered."""

    article: str
    context: str
    text: str
    answers: tuple[Answer, ...]
    number: int = field(default=0, compare=False)  # its place among all questions of its file


def read_squad(path: Path) -> tuple[Question, ...]:
    """Read the questions of a JSON file, plain or gzip; raise with up to five of its faults."""
    faults, content = Faults(str(path)), read_text(path)
    try:
        whole = loads(content)
    except ValueError as error:
        raise IllegalInput(f"{path} is not JSON: {error}; expected a file of SQuAD") from None
    if not isinstance(whole, dict):
        raise IllegalInput(f"{path} holds {_short(whole)}; expected {_LAYOUT}")
    found = list(_questions(whole, faults))
    faults.end()
    if not found:
        raise IllegalInput(f"{path} holds no questions; expected {_LAYOUT}")
    return tuple(Question(*parts, number=number) for number, parts in enumerate(found))


def rows_of(questions: Sequence[Question], source: str) -> SpanRows:
    """Return questions as rows."""
    return SpanRows(
        tuple(question.text for question in questions),
        tuple(question.context for question in questions),
        tuple(question.answers for question in questions),
        numbers=tuple(question.number for question in questions),
        source=source,
    )


def _questions(whole: dict[str, Any], faults: Faults) -> Iterator[tuple[str, str, str, tuple[Answer, ...]]]:
    """Yield article, context, text and answers of each question."""
    for article, data in _objects(whole, "data", "", faults):
        title = data.get("title")
        for paragraph, entries in _objects(data, "paragraphs", article, faults):
            context = _get(entries, "context", str, paragraph, faults)
            for place, entry in _objects(entries, "qas", paragraph, faults):
                named = f"question {entry['id']!r}" if isinstance(entry.get("id"), str) else place
                text = _get(entry, "question", str, named, faults)
                if context is not None and text is not None:
                    answers = tuple(_answers(named, context, entry, faults))
                    yield title if isinstance(title, str) and title else article, context, text, answers


def _answers(where: str, context: str, data: dict[str, Any], faults: Faults) -> Iterator[Answer]:
    if "is_impossible" in data and _get(data, "is_impossible", bool, where, faults):
        return
    if data.get("answers") == []:
        faults.note(where, "has no answer; expected one, or is_impossible to be true")
    for place, entry in _objects(data, "answers", where, faults):
        text, start = _get(entry, "text", str, place, faults), _get(entry, "answer_start", int, place, faults)
        if text is None or start is None:
            continue
        if text and start >= 0 and context.startswith(text, start):
            yield text, start
        else:
            there = _short(context[max(start, 0) :][: max(len(text), 1)])
            faults.note(where, f"the answer {_short(text)} does not stand at character {start}; there is {there}")


def _objects(data: dict[str, Any], key: str, where: str, faults: Faults) -> list[tuple[str, dict[str, Any]]]:
    """Return the objects of a list with their places; record and skip other values."""
    entries = _get(data, key, list, where, faults) or []
    named = [(f"{where}.{key}[{place}]".removeprefix("."), entry) for place, entry in enumerate(entries)]
    for place, entry in named:
        if not isinstance(entry, dict):
            faults.note(place, f"expected an object, not {_short(entry)}")
    return [(place, entry) for place, entry in named if isinstance(entry, dict)]


def _get(data: dict[str, Any], key: str, kind: type, where: str, faults: Faults) -> Any:
    value: Any = data.get(key)
    if type(value) is not kind:  # true is a whole number to isinstance
        found = f"not {_short(value)}" if key in data else "which is missing"
        faults.note(where or "the whole", f"expected {key!r} to be {_KINDS[kind]}, {found}")
        return None
    if isinstance(value, str) and HALF_LETTER.search(value):
        faults.note(where, f"{key!r} holds half a letter (a lone surrogate); expected text")
        return None
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_COLUMNS = ("title", "context", "question", "answers")


def hub_questions(dataset: Dataset, split: str) -> tuple[Question, ...]:
    """Return the questions of one split; raise for rows without a question or with misplaced answers."""
    rows, where = split_of(dataset, split, _COLUMNS)
    faults, found = Faults(where, "row"), []
    for number, row in enumerate(zip(*(rows[column] for column in _COLUMNS), strict=True), start=1):
        title, context, question, answers = row
        if all(isinstance(text, str) for text in (title, context, question)):
            marked = tuple(_hub_answers(number, context, answers, faults))
            found.append(Question(title, context, question, marked, number - 1))
        else:
            faults.add(number, "no text in 'title', 'context' or 'question'; expected some in each")
    faults.end()
    if not found:
        raise IllegalInput(f"{where} holds no questions")
    return tuple(found)


def _hub_answers(number: int, context: str, answers: Any, faults: Faults) -> Iterator[Answer]:
    """Yield the answers of a question; there are none where it cannot be answered."""
    try:
        pairs = list(zip(answers["text"], answers["answer_start"], strict=True))
    except (KeyError, TypeError, ValueError):
        faults.add(number, "expected 'answers' to hold equally many of 'text' and 'answer_start'")
        return
    for text, start in pairs:
        whole = isinstance(text, str) and isinstance(start, int)
        if whole and text and start >= 0 and context.startswith(text, start):
            yield text, start
        else:
            faults.add(number, f"the answer {text!r} does not stand at character {start!r} of its text")


Version = Literal["1.1", "2.0"]

_SEED = 0
_NAMES = {"1.1": "squad", "2.0": "squad_v2"}
_TRAIN = {"1.1": ("train-v1.1", "train-v2.0", "train-v2.0-subset"), "2.0": ("train-v2.0", "train-v2.0-subset")}
_DEV = {"1.1": ("dev-v1.1",), "2.0": ("dev-v2.0", "dev-v2.0-half")}


@dataclass(frozen=True)
class SquadRows:
    """Read a version of SQuAD from its training and dev files, or without files from the Hugging Face hub.

    The dev set is divided by article into validation and test unless `official_dev` keeps it whole.
    """

    version: Version
    files: tuple[Path, Path] | None
    official_dev: bool

    def __call__(self) -> Splits[SpanRows]:
        if self.files is None:
            found = hub_tables(
                f"rajpurkar/{_NAMES[self.version]}", None, "give the folder of its files with --data DIR"
            )
            train, dev = (hub_questions(found, split) for split in ("train", "validation"))
            sources = [f"split {split} of {found.name}" for split in ("train", "validation")]
            name = sources[1]
        else:
            train, dev = (self._read(path) for path in self.files)
            sources, name = [str(path) for path in self.files], self.files[1].name
        learned, where = rows_of(train, sources[0]), sources[1]
        if self.official_dev:
            division = f"all {len(dev):,} questions of {name}, and no test"
            return Splits(learned, rows_of(dev, where), None, division=division)
        validation, test = (rows_of(half, where) for half in _halves(dev, where))
        sizes = f"{len(validation):,} questions of {name}, and test the other {len(test):,}"
        return Splits(learned, validation, test, division=f"{sizes}, divided by article with seed {_SEED}")

    def _read(self, path: Path) -> tuple[Question, ...]:
        """Read the questions of a file; version 1.1 has only those with an answer."""
        found = tuple(question for question in read_squad(path) if question.answers or self.version != "1.1")
        if not found:
            raise IllegalInput(f"{path} holds no question that has an answer")
        return found


def squad_task(version: Version, data: Path | None = None, official_dev: bool = False) -> Task:
    """Make the task `squad` (version 1.1) or `squad_v2` (2.0) from the folder of its files, or else from the hub.

    The official test set is not public, so the dev set is divided by article into validation and test; with
    `official_dev` all of it is the validation set, as in publications, and there is no test. If the training file of
    version 1.1 is missing, the answerable questions of version 2.0 replace it.
    """
    answerable = version == "1.1"
    files = None
    about = "find the part of a text that answers a question" + ("" if answerable else ", or that there is none")
    if data is None:
        need("datasets", "hub")  # before anything is planned
        about += "; from the Hugging Face hub"
    else:
        folder = data_folder(data, "squad")
        train, dev = (
            find_file(folder, f"{part} set of SQuAD {version}", *(f"{stem}.json" for stem in stems[version]))
            for part, stems in (("train", _TRAIN), ("dev", _DEV))
        )
        files = (train, dev)
        borrowed = "the questions with answers in " if answerable and "-v2.0" in train.name else ""
        about += f"; trained on {borrowed}{train.name}, judged on {dev.name}"
    chance, metrics = 0.0 if answerable else None, ("span-f1", "exact")
    source = SquadRows(version, files, official_dev)
    return Task(_NAMES[version], "span-extraction", "span-f1", source, metrics, chance=chance, about=about)


def _halves(questions: tuple[Question, ...], where: str) -> list[list[Question]]:
    """Divide questions so that both halves have about as many, and no article is in both."""
    sizes = Counter(question.article for question in questions)
    if len(sizes) < 2:
        raise IllegalInput(f"{where} holds one article, which cannot be divided into validation and test")
    titles = list(sizes)
    halves: tuple[set[str], set[str]] = (set(), set())
    for place in shuffled(derive(_SEED, "squad"), len(titles)):
        smaller = min(halves, key=lambda half: sum(sizes[title] for title in half))
        smaller.add(titles[place])
    return [[question for question in questions if question.article in half] for half in halves]
