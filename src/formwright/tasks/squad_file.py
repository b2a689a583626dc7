"""Read files in the layout of SQuAD: articles, their paragraphs, and questions about each."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from formwright.core.codec import loads
from formwright.core.errors import IllegalInput
from formwright.tasks.lines import Faults, readable
from formwright.tasks.spans import Answer, SpanRows

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
    """Read the articles of a JSON file, plain or gzip; refuse it with up to five of its faults at once."""
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
    """Give all questions of a file their numbers, in its order."""
    places = count()
    return tuple(
        replace(article, questions=tuple(replace(found, number=next(places)) for found in article.questions))
        for article in articles
    )


def rows_of(articles: tuple[Article, ...], source: str) -> SpanRows:
    """Put the questions of some articles of a source in rows."""
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
    """List the objects in a list, and where each is; note members that are no objects, and leave them out."""
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
