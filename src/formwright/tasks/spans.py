"""Rows of questions whose answers are parts of a text."""

import hashlib
import json
from dataclasses import dataclass, field

from formwright.core.errors import IllegalInput

Answer = tuple[str, int]


@dataclass(frozen=True)
class SpanRows:
    """Questions, the texts that hold their answers, and the answers: texts and the characters where they start.

    Several answers of a question are several people's; a question without one cannot be answered from its text.
    `source` is the file that the questions come from, and `numbers` are their places among all questions of it, from 0;
    neither is part of the content.
    """

    questions: tuple[str, ...]
    contexts: tuple[str, ...]
    answers: tuple[tuple[Answer, ...], ...]
    numbers: tuple[int, ...] = field(default=(), compare=False, kw_only=True)
    source: str = field(default="", compare=False, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse answers that do not stand where they are said to."""
        sizes = (len(self.questions), len(self.contexts), len(self.answers))
        if len(set(sizes)) > 1:
            raise IllegalInput(f"questions, contexts and answers must be equally many; got {sizes}")
        for row, (context, answers) in enumerate(zip(self.contexts, self.answers, strict=True)):
            for text, start in answers:
                if start < 0 or not text or not context.startswith(text, start):
                    raise IllegalInput(f"row {row}: the answer {text!r} does not stand at character {start}")

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def digest(self) -> str:
        """Give the SHA-256 of the content, in hexadecimal."""
        content = json.dumps(("span", self.questions, self.contexts, self.answers), separators=(",", ":"))
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def answerable(self) -> bool:
        """Say whether every question has an answer."""
        return all(self.answers)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """List the texts of each row's answers, as the metrics want them; none where there is no answer."""
        return tuple(tuple(text for text, _ in answers) for answers in self.answers)
