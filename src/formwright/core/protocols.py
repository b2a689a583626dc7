"""The seams of Formwright on one page: whatever has these methods can be plugged in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from numpy import float64
    from numpy.random import Generator
    from numpy.typing import NDArray

    from formwright.core.records import History, Measure, Observation, Request

Design = Any  # a nested, hashable value that only its own space can read


@runtime_checkable
class CardLike(Protocol):
    """Describe one design completely and immutably.

    Equal designs have equal digests; `to_json` gives plain JSON data.
    """

    @property
    def digest(self) -> str: ...
    def to_json(self) -> Any: ...


CardT_contra = TypeVar("CardT_contra", bound=CardLike, contravariant=True)


@runtime_checkable
class Space(Protocol):
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
class Cost(Protocol[CardT_contra]):
    """Measure one cost of a card.

    Cheap costs are checked before any training, as hard limits.
    """

    def __call__(self, card: CardT_contra, /) -> Measure: ...


@runtime_checkable
class SearchView(Protocol):
    """Show a search the data it may learn from and choose by.

    There is no test split here, so that no search can reach one.
    """

    @property
    def train(self) -> Any: ...
    @property
    def validation(self) -> Any: ...


@runtime_checkable
class Task(Protocol):
    """Name a problem and hand out its data.

    A search receives `search_view()` alone; the final evaluation alone opens the test split.
    """

    @property
    def name(self) -> str: ...
    def search_view(self) -> SearchView: ...
