"""Compare methods of search on a benchmark: replay many searches in memory, keep them in a file, and sum them up."""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.core.checks import finite, natural, stored_fields
from formwright.core.errors import EvaluationFailed, IllegalInput, MissingExtra, nearest
from formwright.core.protocols import Searcher
from formwright.core.records import History, Request, Trial
from formwright.core.rng import derive
from formwright.evaluate.benchmark import Benchmark
from formwright.evaluate.context import Context
from formwright.search import SEARCHERS, SpaceExhausted, make_searcher, option_names
from formwright.study.folder_lock import hold
from formwright.study.processes import in_processes

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
        """Make the searcher, for N whole evaluations on a benchmark."""
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


NOTHING = -1  # the row of what a search has found before any design was scored


@dataclass(frozen=True)
class SearchRun:
    """One search: the row of the best design so far, after each evaluation, and the seconds that asking took.

    Evaluations are counted by their steps, so that two trainings of half the steps are one. A design that was trained
    further than another counts as better.
    """

    method: str
    seed: int
    best: tuple[int, ...]
    seconds: float

    @classmethod
    def from_json(cls, data: Any) -> "SearchRun":
        """Read plain JSON data, which `dataclasses.asdict` gives; raise `IllegalInput` where it is none."""
        stored_fields(cls, data)
        if not isinstance(data["method"], str) or not isinstance(data["best"], list | tuple):
            raise IllegalInput("method must be a name, and best a list of rows")
        best = tuple(row if type(row) is int and row == NOTHING else natural("a row", row) for row in data["best"])
        return cls(data["method"], natural("seed", data["seed"]), best, finite("seconds", data["seconds"]))


def replay(benchmark: Benchmark, method: Method, seed: int, evaluations: int) -> SearchRun:
    """Search with one method and one seed, as a study does that has one worker."""
    searcher, search = method.make(benchmark, evaluations), _Search(benchmark)
    began = time.process_time()
    while len(search.best) < evaluations and search.go_on(searcher, seed):
        pass
    spent = time.process_time() - began
    last = search.best[-1] if search.best else NOTHING
    best = [*search.best, *[last] * evaluations][:evaluations]  # a space that is used up has nothing better
    return SearchRun(method.name, seed, tuple(best), round(spent, 3))


class _Search:
    """A search under way: its trials, the steps they took, and the best row after each whole evaluation's worth."""

    def __init__(self, benchmark: Benchmark) -> None:
        self.best: list[int] = []
        self._benchmark, self._evaluator = benchmark, benchmark.evaluator()
        self._sign = 1.0 if benchmark.objective.direction == "max" else -1.0
        self._trials: list[Trial] = []
        self._trained: dict[int, int] = {}  # the steps of each row
        self._incumbent: tuple[int, float, int] = (0, 0.0, NOTHING)  # steps, score and row

    def go_on(self, searcher: Searcher, seed: int) -> bool:
        """Ask for one design and look it up; False where nothing is left to ask for."""
        number = len(self._trials)
        try:
            request = searcher.ask(History(tuple(self._trials)), derive(seed, "ask", number))
        except SpaceExhausted:
            return False
        self._trials.append(self._ended(number, request))
        whole = sum(self._trained.values()) // self._benchmark.steps
        self.best += [self._incumbent[2]] * (whole - len(self.best))
        return True

    def _ended(self, number: int, request: Request) -> Trial:
        row, steps = self._benchmark.row(request.card), request.budget.steps or self._benchmark.steps
        # a training that is continued costs only the steps that it had not made
        self._trained[row] = max(steps, self._trained.get(row, 0))
        try:
            found = self._evaluator.evaluate(request, Context())
        except EvaluationFailed as failure:
            return Trial(number, request, "failed", None, str(failure))
        score = self._sign * found.metrics[self._benchmark.objective.name]
        if self._incumbent[2] == NOTHING or (steps, score) > self._incumbent[:2]:
            self._incumbent = (steps, score, row)
        return Trial(number, request, "finished", found)


@dataclass(frozen=True)
class Contest:
    """Say what is compared: methods, each in `runs` searches of `evaluations` designs, on what `load` gives.

    `load` must be such that another process can import it: each process reads the benchmark for itself.
    """

    load: Callable[[], Benchmark]
    methods: Sequence[Method]
    runs: int = 50
    evaluations: int = 100

    def known(self, replays: Iterable[SearchRun]) -> list[SearchRun]:
        """Choose the searches that are part of this contest, each once, of those that were made before."""
        wanted = {(method.name, seed) for method in self.methods for seed in range(self.runs)}
        found = {(one.method, one.seed): one for one in replays if len(one.best) == self.evaluations}
        return [one for key, one in found.items() if key in wanted]

    def replays(self, workers: int = 1, known: Iterable[SearchRun] = ()) -> Iterator[SearchRun]:
        """Make every search that is not `known`, and give it as it ends; the methods take turns."""
        done = {(one.method, one.seed) for one in known}
        pairs = [(method, seed) for seed in range(self.runs) for method in self.methods]
        jobs = [(method, seed) for method, seed in pairs if (method.name, seed) not in done]
        return in_processes(partial(_replay, self.load, self.evaluations), jobs, workers)


def _replay(load: Callable[[], Benchmark], evaluations: int, job: tuple[Method, int]) -> SearchRun:
    return replay(_loaded(load), *job, evaluations)


@lru_cache(maxsize=1)
def _loaded(load: Callable[[], Benchmark]) -> Benchmark:
    return load()


_BEGINS = '{"table": '  # every line of ours


@dataclass(frozen=True)
class ContestFile:
    """A file of searches on the table with the digest `table`, of that many `rows` where they are known.

    Searches on other tables are left alone.

    The file knows nothing of the code of the methods: whoever changes a method begins another file.
    """

    path: Path
    table: str
    rows: int | None = None

    def read(self) -> list[SearchRun]:
        """Give what is there; a last line that was cut short is not."""
        if not self.path.exists():
            return []
        try:
            *whole, rest = self.path.read_text(encoding="utf-8").split("\n")
            if not (rest.startswith(_BEGINS) or _BEGINS.startswith(rest)):  # no search of ours: `keep` would cut it off
                raise ValueError(f"it ends with {rest[:40]!r}")
        except (OSError, ValueError) as error:
            raise IllegalInput(f"{self.path} is not a file of searches: {error}") from None
        searches = [self._search(line, number) for number, line in enumerate(whole, start=1)]
        return [found for found in searches if found is not None]

    def keep(self, replays: Iterator[SearchRun]) -> Iterator[SearchRun]:
        """Pass searches on, each written down before it is; refuse a file that another process adds to."""
        try:
            with self.path.open("ab") as file:
                hold(file, f"another process works on {self.path}; wait for it, or name another file")
                os.truncate(self.path, self.path.read_bytes().rfind(b"\n") + 1)  # without a line that was cut short
                for found in replays:
                    file.write(json.dumps({"table": self.table, **asdict(found)}).encode() + b"\n")
                    file.flush()
                    yield found
        except OSError as error:
            raise IllegalInput(f"cannot write {self.path}: {error.strerror or error}") from None

    def _search(self, line: str, number: int) -> SearchRun | None:
        """Read a line, which may have been changed by hand; None where it is of another table."""
        try:
            data = json.loads(line)
            if not isinstance(data, dict) or "table" not in data:
                raise IllegalInput("it names no table")
            if data.pop("table") != self.table:
                return None
            found = SearchRun.from_json(data)
            if self.rows is not None and max(found.best, default=NOTHING) >= self.rows:
                raise IllegalInput(f"the row {max(found.best)} is beyond the {self.rows:,} rows of the table")
        except (ValueError, OverflowError, RecursionError) as error:
            raise IllegalInput(f"{self.path} is not a file of searches: line {number}: {error}") from None
        return found


Floats = NDArray[np.float64]

RESAMPLES = 2_000
TOP, GOOD = 0.001, 0.01  # the shares of designs that count as the best, and as nearly as good


def standings(benchmark: Benchmark, replays: Iterable[SearchRun]) -> dict[str, dict[str, Any]]:
    """Sum up the searches of each method, best method first, as plain JSON data.

    `curve` is the mean, over the searches, of the validation score of the best design so far after each evaluation;
    `final` is its end, and `interval` holds that with 90 % (bootstrap over the searches). `test` is the test score of
    the same designs, with a curve of its own. `top` says how often, and after how many evaluations (median; None where
    fewer than half did), a search had found one of the best 0.1 % of all designs, and `good` the same of the best 1 %.
    A search that has found nothing yet has the worst score.
    """
    by_method: dict[str, list[SearchRun]] = {}
    for found in replays:
        by_method.setdefault(found.method, []).append(found)
    rows = {
        name: np.array([one.best for one in sorted(group, key=attrgetter("seed"))]) for name, group in by_method.items()
    }
    standing = {name: _standing(benchmark, best) for name, best in rows.items()}
    for name, group in by_method.items():
        standing[name]["seconds"] = float(np.mean([one.seconds for one in group]))
    sign = -1 if benchmark.objective.direction == "max" else 1
    return dict(sorted(standing.items(), key=lambda item: (sign * item[1]["final"], item[0])))


def _standing(benchmark: Benchmark, best: NDArray[np.int64]) -> dict[str, Any]:
    validation, test = (_scores(benchmark, split)[best] for split in ("validation", "test"))  # (searches, evaluations)
    low, high = _interval(validation)
    test_low, test_high = _interval(test)
    return {
        "runs": len(best),
        "final": float(validation[:, -1].mean()),
        "interval": [low[-1], high[-1]],
        "curve": validation.mean(axis=0).tolist(),
        "curve_low": low,
        "curve_high": high,
        "test": float(test[:, -1].mean()),
        "test_interval": [test_low[-1], test_high[-1]],
        "test_curve": test.mean(axis=0).tolist(),
        "test_curve_low": test_low,
        "test_curve_high": test_high,
        "rank": float(np.median(_ranks(benchmark)[best[:, -1]])),
        "top": _found(benchmark, best, TOP),
        "good": _found(benchmark, best, GOOD),
    }


def _scores(benchmark: Benchmark, split: Any) -> Floats:
    scores = benchmark.scores(split)
    worst = np.nanmin(scores) if benchmark.objective.direction == "max" else np.nanmax(scores)
    return np.append(np.where(np.isnan(scores), worst, scores), worst)


def _ranks(benchmark: Benchmark) -> NDArray[np.int64]:
    assert NOTHING == -1, "nothing is looked up at the end"
    return np.append(benchmark.ranks, len(benchmark.table))


def _interval(curves: Floats) -> tuple[list[float], list[float]]:
    drawn = derive(0, "bootstrap").integers(len(curves), size=(RESAMPLES, len(curves)))
    shares = np.stack([np.bincount(draw, minlength=len(curves)) for draw in drawn]) / len(curves)
    low, high = np.quantile(shares @ curves, (0.05, 0.95), axis=0)
    return low.tolist(), high.tolist()


def _found(benchmark: Benchmark, best: NDArray[np.int64], share: float) -> dict[str, Any]:
    """Say how often and how soon searches had found one of the best designs, of which there are so large a share."""
    most = max(1, round(share * len(benchmark.table)))
    there = _ranks(benchmark)[best] <= most
    reached = there.any(axis=1)
    needed = np.where(reached, there.argmax(axis=1) + 1, np.inf)
    median = float(np.median(needed))
    return {
        "designs": most,
        "share": float(reached.mean()),
        "evaluations": median if np.isfinite(median) else None,
        "interval": _median_interval(needed),
    }


def _median_interval(needed: Floats) -> Sequence[float | None]:
    drawn = derive(0, "bootstrap").choice(needed, (RESAMPLES, len(needed)))
    ends = np.quantile(np.median(drawn, axis=1), (0.05, 0.95), method="nearest")
    return [float(end) if np.isfinite(end) else None for end in ends]
