"""The seams of Formwright on one page: whatever has these methods can be plugged in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from numpy import float64
    from numpy.random import Generator
    from numpy.typing import NDArray

    from formwright.core.records import History, Observation, Request

Design = Any  # a nested, hashable value that only its own space can read


@runtime_checkable
class CardLike(Protocol):
    """Describe one design completely and immutably.

    Equal designs have equal digests; `to_json` gives plain JSON data.
    """

    @property
    def digest(self) -> str: ...
    def to_json(self) -> Any: ...


@runtime_checkable
class SpaceLike(Protocol):
    """Say what may be built: draw, count and list designs, and move between them.

    Every design it returns is legal; every random draw takes an explicit generator.
    """

    @property
    def name(self) -> str: ...
    def sample(self, rng: Generator) -> Design: ...
    def contains(self, design: Design) -> bool: ...
    def count(self) -> int: ...
    def enumerate(self) -> Iterator[Design]: ...
    def mutate(self, design: Design, rng: Generator) -> Design: ...
    def crossover(self, a: Design, b: Design, rng: Generator) -> Design: ...
    def neighbours(self, design: Design) -> Iterable[Design]: ...
    def encode(self, design: Design) -> NDArray[float64]: ...
    def card(self, design: Design) -> CardLike: ...


@runtime_checkable
class Searcher(Protocol):
    """Propose the next design and its budget from the finished and pending trials.

    Pure: the same history and generator give the same request. It may cache, and must never need to.
    """

    def ask(self, history: History, rng: Generator) -> Request: ...


@runtime_checkable
class Evaluator(Protocol):
    """Score a request; the same request and seed give the same observation.

    NaN, divergence and lack of memory become a recorded failure with a reason, not a crash.
    """

    def evaluate(self, request: Request, context: Any) -> Observation: ...


@runtime_checkable
class GroupEvaluator(Evaluator, Protocol):
    """Score several requests at once: a worker asks for as many as `together` says before it evaluates them.

    Each gets the observation that `evaluate` gives it. Where one fails, all do; they are then evaluated alone.
    """

    @property
    def together(self) -> int: ...

    def evaluate_together(self, requests: Sequence[tuple[Request, Any]]) -> list[Observation]: ...
