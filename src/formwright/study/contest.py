"""Compare methods of search on a benchmark: replay many searches in memory, and say how good what they found is."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from formwright.core.checks import finite, natural, stored_fields
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.protocols import Searcher
from formwright.core.records import History, Request, Trial
from formwright.core.rng import derive
from formwright.evaluate.benchmark import Benchmark
from formwright.evaluate.context import Context
from formwright.search import SpaceExhausted
from formwright.study.methods import Method
from formwright.study.processes import in_processes

NOTHING = -1  # the row of what a search has found before any design was scored


@dataclass(frozen=True)
class Replay:
    """One search: the row of the best design so far, after each evaluation, and the seconds that asking took.

    Evaluations are counted by their steps, so that two trainings of half the steps are one. A design that was trained
    further than another counts as better.
    """

    method: str
    seed: int
    best: tuple[int, ...]
    seconds: float

    @classmethod
    def from_json(cls, data: Any) -> "Replay":
        """Read plain JSON data, which `dataclasses.asdict` gives; raise `IllegalInput` where it is none."""
        stored_fields(cls, data)
        if not isinstance(data["method"], str) or not isinstance(data["best"], list | tuple):
            raise IllegalInput("method must be a name, and best a list of rows")
        best = tuple(map(_row, data["best"]))
        return cls(data["method"], natural("seed", data["seed"]), best, finite("seconds", data["seconds"]))


def _row(value: object) -> int:
    return NOTHING if type(value) is int and value == NOTHING else natural("a row", value)


def replay(benchmark: Benchmark, method: Method, seed: int, evaluations: int) -> Replay:
    """Search with one method and one seed, as a study does that has one worker."""
    searcher, search = method.make(benchmark, evaluations), _Search(benchmark)
    began = time.process_time()
    while len(search.best) < evaluations and search.go_on(searcher, seed):
        pass
    spent = time.process_time() - began
    last = search.best[-1] if search.best else NOTHING
    best = [*search.best, *[last] * evaluations][:evaluations]  # a space that is used up has nothing better
    return Replay(method.name, seed, tuple(best), round(spent, 3))


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
        # a training that goes on costs only the steps that it had not made
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

    def known(self, replays: Iterable[Replay]) -> list[Replay]:
        """Choose the searches that are part of this contest, each once, of those that were made before."""
        wanted = {(method.name, seed) for method in self.methods for seed in range(self.runs)}
        found = {(one.method, one.seed): one for one in replays if len(one.best) == self.evaluations}
        return [one for key, one in found.items() if key in wanted]

    def replays(self, workers: int = 1, known: Iterable[Replay] = ()) -> Iterator[Replay]:
        """Make every search that is not `known`, and give it as it ends; the methods take turns."""
        done = {(one.method, one.seed) for one in known}
        pairs = [(method, seed) for seed in range(self.runs) for method in self.methods]
        jobs = [(method, seed) for method, seed in pairs if (method.name, seed) not in done]
        return in_processes(partial(_replay, self.load, self.evaluations), jobs, workers)


def _replay(load: Callable[[], Benchmark], evaluations: int, job: tuple[Method, int]) -> Replay:
    return replay(_loaded(load), *job, evaluations)


@lru_cache(maxsize=1)
def _loaded(load: Callable[[], Benchmark]) -> Benchmark:
    """Read a benchmark once in each process."""
    return load()
