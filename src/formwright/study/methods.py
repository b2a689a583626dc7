"""What can be compared on a benchmark: searchers, and searchers with other options than their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from formwright.core.errors import IllegalInput, MissingExtra, nearest
from formwright.core.protocols import Searcher
from formwright.evaluate.benchmark import Benchmark
from formwright.search import SEARCHERS, make_searcher, option_names

_VARIANTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "largest-first": {"rank": {"by": "rank"}},
    "boshnas": {
        "one-hot": {"coordinates": "one-hot"},
        "ordered": {"coordinates": "transformer2vec-ordered"},
        "nearest": {"acquire": "gobi-nearest"},
        "first-order": {"second_order": False},
        "homoscedastic": {"heteroscedastic": False},
        "exhaustive": {"acquire": "exhaustive"},
        "one-hot-eager": {"coordinates": "one-hot", "alpha": 0.0, "beta": 0.0},
    },
    "gp-bo": {
        "one-hot": {"coordinates": "one-hot"},
        "ordered": {"coordinates": "transformer2vec-ordered"},
        "ucb": {"acquisition": "ucb"},
    },
    "forest": {"ordered": {"coordinates": "transformer2vec-ordered"}},
    "bananas": {"one-hot": {"coordinates": "one-hot"}, "transformer2vec": {"coordinates": "transformer2vec"}},
}

_SLOW = ("gp", "coarse-to-fine")  # minutes for a search of 100 designs, so that nobody wants them unasked


@dataclass(frozen=True)
class Method:
    """Name a searcher and the options it is given."""

    name: str
    searcher: str
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def make(self, benchmark: Benchmark, evaluations: int) -> Searcher:
        """Make the searcher, for so many whole evaluations on a benchmark."""
        options = {**_rungs(self.searcher, benchmark.table.marks), **self.options}
        return make_searcher(
            self.searcher,
            benchmark.space,
            (benchmark.objective,),
            benchmark.legal,
            trials=evaluations,
            steps=benchmark.steps,
            **options,
        )


def all_methods() -> list[Method]:
    """List every searcher, and the variants of those that are there and have the options of the variant."""
    names = [name for name in SEARCHERS.names() if ":" not in name]  # `optuna:tpe` is `tpe`
    variants = [
        Method(f"{name}/{variant}", name, options)
        for name, known in _VARIANTS.items()
        for variant, options in known.items()
        if name in names and options.keys() <= set(option_names(name))
    ]
    return [*(Method(name, name) for name in names), *variants]


def find_methods(names: Sequence[str]) -> list[Method]:
    """Find methods by their names; raise `IllegalInput` that tells the name nearest to one that is unknown."""
    known = {method.name: method for method in all_methods()}
    for name in names:
        if name not in known:
            close = nearest(name, known)
            hint = f" Nearest: {close[0]!r}." if close else ""
            raise IllegalInput(f"no method is called {name!r}.{hint} There are: {', '.join(known)}.")
    return [known[name] for name in dict.fromkeys(names)]


def usual_methods(benchmark: Benchmark) -> list[Method]:
    """List the methods, but for those that take minutes and those whose optional packages are not installed."""

    def is_installed(method: Method) -> bool:
        try:
            method.make(benchmark, evaluations=1)
        except MissingExtra:
            return False
        return True

    return [method for method in all_methods() if method.name not in _SLOW and is_installed(method)]


def _rungs(searcher: str, marks: Sequence[int]) -> dict[str, int]:
    """Give a searcher that evaluates designs for few steps first those steps that the table knows."""
    if "min_steps" not in option_names(searcher):
        return {}
    ratio = marks[-1] // marks[-2] if len(marks) > 1 else 2
    lowest = len(marks) - 1
    while lowest and marks[lowest - 1] * ratio == marks[lowest]:
        lowest -= 1
    return {"min_steps": marks[lowest], "max_steps": marks[-1], "eta": ratio}
