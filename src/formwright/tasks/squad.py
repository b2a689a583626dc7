"""SQuAD 1.1 and 2.0, from files in the official layout or from the Hugging Face hub."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Literal

from formwright.core.codec import loads
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.rng import derive
from formwright.tasks.draw import shuffled
from formwright.tasks.hub import Dataset, check_datasets, hub_tables, split_of
from formwright.tasks.lines import Faults, readable
from formwright.tasks.rows import Answer, SpanRows, Splits
from formwright.tasks.task import Task

_LARGEST = 1 << 30  # bytes; a larger file is none of SQuAD's
_SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can write what no text may hold
_LAYOUT = "an object of data[] > paragraphs[] > context, qas[] > answers[]"
_KINDS = {str: "text", int: "a whole number", list: "a list", bool: "true or false"}


@dataclass(frozen=True)
class Question:
    """A question, the paragraph it is about, and its answers: none where it cannot be answered."""

    text: str
    context: str
    answers: tuple[Answer, ...]
    number: int = field(default=0, compare=False)  # its place among all questions of its file


@dataclass(frozen=True)
class Article:
    """The questions about one article."""

    title: str
    questions: tuple[Question, ...]


def read_squad(path: Path) -> tuple[Article, ...]:
    """Read the articles of a JSON file, plain or gzip; raise with up to five of its faults."""
    faults = Faults(str(path))
    whole = _parse(path, faults)
    if not isinstance(whole, dict):
        raise IllegalInput(f"{path} holds {_short(whole)}; expected {_LAYOUT}")
    found = [_article(where, data, faults) for where, data in _objects(whole, "data", "", faults)]
    faults.end()
    kept = numbered(article for article in found if article.questions)
    if not kept:
        raise IllegalInput(f"{path} holds no questions; expected {_LAYOUT}")
    return kept


def numbered(articles: Iterable[Article]) -> tuple[Article, ...]:
    """Return all questions of a file their numbers, in its order."""
    places = count()
    return tuple(
        replace(article, questions=tuple(replace(found, number=next(places)) for found in article.questions))
        for article in articles
    )


def rows_of(articles: tuple[Article, ...], source: str) -> SpanRows:
    """Return the questions of some articles as rows."""
    found = [question for article in articles for question in article.questions]
    return SpanRows(
        tuple(question.text for question in found),
        tuple(question.context for question in found),
        tuple(question.answers for question in found),
        numbers=tuple(question.number for question in found),
        source=source,
    )


def _parse(path: Path, faults: Faults) -> Any:
    with readable(path, faults) as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise IllegalInput(f"{path} is larger than {_LARGEST:,} bytes; expected a file of SQuAD")
    try:
        return loads(content.decode("utf-8-sig"))
    except ValueError as error:  # also what is not UTF-8
        raise IllegalInput(f"{path} is not JSON in UTF-8: {error}; expected a file of SQuAD") from None


def _article(where: str, data: dict[str, Any], faults: Faults) -> Article:
    title = data.get("title")
    paragraphs = _objects(data, "paragraphs", where, faults)
    questions = [question for place, found in paragraphs for question in _paragraph(place, found, faults)]
    return Article(title if isinstance(title, str) and title else where, tuple(questions))


def _paragraph(where: str, data: dict[str, Any], faults: Faults) -> Iterator[Question]:
    context = _get(data, "context", str, where, faults)
    for place, entry in _objects(data, "qas", where, faults):
        named = f"question {entry['id']!r}" if isinstance(entry.get("id"), str) else place
        text = _get(entry, "question", str, named, faults)
        if context is not None and text is not None:
            yield Question(text, context, tuple(_answers(named, context, entry, faults)))


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
    if isinstance(value, str) and _SURROGATE.search(value):
        faults.note(where, f"{key!r} holds half a letter (a lone surrogate); expected text")
        return None
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_COLUMNS = ("title", "context", "question", "answers")


def hub_articles(dataset: Dataset, split: str) -> tuple[Article, ...]:
    """Group the questions of one split by article; raise for rows without a question or with misplaced answers."""
    rows, where = split_of(dataset, split, _COLUMNS)
    faults, found = Faults(where, "row"), dict[str, list[Question]]()
    for number, row in enumerate(zip(*(rows[column] for column in _COLUMNS), strict=True), start=1):
        title, context, question, answers = row
        if not all(isinstance(text, str) for text in (title, context, question)):
            faults.add(number, "no text in 'title', 'context' or 'question'; expected some in each")
            continue
        told = tuple(_hub_answers(number, context, answers, faults))
        found.setdefault(title, []).append(Question(question, context, told, number - 1))
    faults.end()
    if not found:
        raise IllegalInput(f"{where} holds no questions")
    return tuple(Article(title, tuple(questions)) for title, questions in found.items())


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
class SquadFile:
    """A file, and whether to keep only its answerable questions."""

    path: Path
    answerable: bool

    def articles(self) -> tuple[Article, ...]:
        """Read the articles."""
        articles = read_squad(self.path)
        if not self.answerable:
            return articles
        kept = [replace(one, questions=tuple(found for found in one.questions if found.answers)) for one in articles]
        found = tuple(article for article in kept if article.questions)
        if not found:
            raise IllegalInput(f"{self.path} holds no question that has an answer")
        return found


@dataclass(frozen=True)
class SquadFiles:
    """Read the rows of both files; the official dev set is divided by article unless `official_dev` keeps it whole."""

    train: SquadFile
    dev: SquadFile
    official_dev: bool

    def __call__(self) -> Splits[SpanRows]:
        sources = (str(self.train.path), str(self.dev.path))
        return _splits(self.train.articles(), self.dev.articles(), self.dev.path.name, sources, self.official_dev)


@dataclass(frozen=True)
class SquadHub:
    """Download the rows from the Hugging Face hub; its validation set is divided like the dev file."""

    name: str
    official_dev: bool

    def __call__(self) -> Splits[SpanRows]:
        found = hub_tables(f"rajpurkar/{self.name}", None, "give the folder of its files with --data DIR")
        train, dev = (hub_articles(found, split) for split in ("train", "validation"))
        sources = (f"split train of {found.name}", f"split validation of {found.name}")
        return _splits(train, dev, sources[1], sources, self.official_dev)


def squad_task(version: Version, data: Path | None = None, official_dev: bool = False) -> Task:
    """Make the task `squad` (version 1.1) or `squad_v2` (2.0) from the folder of its files, or else from the hub.

    The official test set is not public, so the dev set is divided by article into validation and test; with
    `official_dev` all of it is the validation set, as in publications, and there is no test. If the training file of
    version 1.1 is missing, the answerable questions of version 2.0 replace it.
    """
    if version not in _NAMES:
        raise UnknownName("version of SQuAD", version, _NAMES)
    answerable = version == "1.1"
    source: SquadFiles | SquadHub = SquadHub(_NAMES[version], official_dev)
    about = "find the part of a text that answers a question" + ("" if answerable else ", or that there is none")
    if data is None:
        check_datasets()
        about += "; from the Hugging Face hub"
    else:
        folder = _folder(data)
        train, dev = _find(folder, _TRAIN[version]), _find(folder, _DEV[version])
        source = SquadFiles(SquadFile(train, answerable), SquadFile(dev, answerable), official_dev)
        borrowed = "the questions with answers in " if answerable and "-v2.0" in train.name else ""
        about += f"; trained on {borrowed}{train.name}, judged on {dev.name}"
    chance, metrics = 0.0 if answerable else None, ("span-f1", "exact")
    return Task(_NAMES[version], "span-extraction", "span-f1", source, metrics, chance=chance, about=about)


def _folder(data: Path) -> Path:
    folder = data.absolute()
    if not folder.is_dir():
        state = "a file" if folder.exists() else "not there"
        raise IllegalInput(f"{folder} is {state}; expected the folder that holds the files of SQuAD")
    return folder / "squad" if (folder / "squad").is_dir() else folder


def _find(folder: Path, stems: tuple[str, ...]) -> Path:
    names = [stem + suffix for stem in stems for suffix in (".json", ".json.gz")]
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    if found is None:
        raise IllegalInput(f"{folder} holds none of {', '.join(names)}; expected one of them")
    return found


def _splits(
    train: tuple[Article, ...], dev: tuple[Article, ...], name: str, sources: tuple[str, str], official_dev: bool
) -> Splits[SpanRows]:
    """Make splits; `name` is that of the dev set, `sources` are those of training and dev set."""
    learned, where = rows_of(train, sources[0]), sources[1]
    if official_dev:
        whole = rows_of(dev, where)
        return Splits(learned, whole, None, division=f"all {len(whole):,} questions of {name}, and no test")
    validation, test = (rows_of(half, where) for half in _halves(dev, where))
    sizes = f"{len(validation):,} questions of {name}, and test the other {len(test):,}"
    division = f"{sizes}, divided by article with seed {_SEED}"
    return Splits(learned, validation, test, division=division)


def _halves(articles: tuple[Article, ...], where: str) -> tuple[tuple[Article, ...], tuple[Article, ...]]:
    """Divide articles so that both halves have about as many questions, and no text is in both."""
    titles = list(dict.fromkeys(article.title for article in articles))
    if len(titles) < 2:
        raise IllegalInput(f"{where} holds one article, which cannot be divided into validation and test")
    sizes = {title: sum(len(one.questions) for one in articles if one.title == title) for title in titles}
    halves: tuple[set[str], set[str]] = (set(), set())
    for place in shuffled(derive(_SEED, "squad"), len(titles)):
        smaller = min(halves, key=lambda half: sum(sizes[title] for title in half))
        smaller.add(titles[place])
    first, second = (tuple(one for one in articles if one.title in half) for half in halves)
    return first, second
