"""The contract of searchers for those that are a class and options."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from formwright.core.protocols import Searcher
from formwright.core.records import Objective
from formwright.search.proposals import Legal, anything
from formwright.space import Space
from formwright.testing.searcher_contract import SearcherContract


class Contract(SearcherContract):
    kind: ClassVar[Callable[..., Searcher]]
    options: ClassVar[Mapping[str, Any]] = {}

    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> Searcher:
        return type(self).kind(space, objectives, legal, **self.options)
