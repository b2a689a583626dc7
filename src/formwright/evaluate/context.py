"""Context of an evaluation, and the card that it is about; without torch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.records import History, Request


@dataclass(frozen=True)
class Context:
    """Return an evaluator its seed, a folder to keep weights in, the trials so far, and someone to tell of each step.

    Without a folder nothing is stored, and evaluators that need files of earlier trials raise `IllegalInput`.
    """

    seed: int = 0
    folder: Path | None = None
    history: History = field(default_factory=History)
    after_step: Callable[[int, float], None] | None = field(default=None, compare=False)


def card_of(request: Request) -> Card:
    """Return the card of a request, which must be a Formwright card."""
    if not isinstance(request.card, Card):
        raise IllegalInput(f"only a formwright card can be trained, not a {type(request.card).__name__}")
    return request.card
