"""SQuAD as the Hugging Face hub lays it out: a row for each question, with its text and its answers."""

from collections.abc import Iterator
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.tasks.hub import Dataset
from formwright.tasks.lines import Faults
from formwright.tasks.spans import Answer
from formwright.tasks.squad_file import Article, Question
from formwright.tasks.tables import missing

_COLUMNS = ("title", "context", "question", "answers")


def hub_articles(dataset: Dataset, split: str) -> tuple[Article, ...]:
    """Gather the questions of one split by article; refuse rows that hold no question, or answers out of place."""
    where = f"split {split} of {dataset.name}"
    if split not in dataset.splits:
        raise IllegalInput(f"{dataset.name} has no split {split!r}; it has {', '.join(dataset.splits) or 'none'}")
    rows = dataset.splits[split]
    for column in _COLUMNS:
        if column not in rows.features:
            raise IllegalInput(f"{where}: {missing(column, list(rows.features))}")
    faults, found = Faults(where, "row"), dict[str, list[Question]]()
    for number, row in enumerate(zip(*(rows[column] for column in _COLUMNS), strict=True), start=1):
        title, context, question, answers = row
        if not all(isinstance(text, str) for text in (title, context, question)):
            faults.add(number, "no text in 'title', 'context' or 'question'; expected some in each")
            continue
        told = tuple(_answers(number, context, answers, faults))
        found.setdefault(title, []).append(Question(question, context, told, number - 1))
    faults.end()
    if not found:
        raise IllegalInput(f"{where} holds no questions")
    return tuple(Article(title, tuple(questions)) for title, questions in found.items())


def _answers(number: int, context: str, answers: Any, faults: Faults) -> Iterator[Answer]:
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
