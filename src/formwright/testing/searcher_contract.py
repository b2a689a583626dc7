"""The contract that every searcher keeps, as tests: inherit `SearcherContract` and say how yours is made.

class TestMine(SearcherContract):
    def make(self, space, objectives, legal=anything):
        return MySearcher(space, objectives, legal)
"""

import json
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from dataclasses import replace
from inspect import getfile
from typing import Any

import pytest

from formwright.arch.card import Card
from formwright.core.protocols import CardLike, Searcher
from formwright.core.records import Budget, History, Objective, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search.proposals import Legal, NoLegalDesign, SpaceExhausted, anything
from formwright.space import Space
from formwright.testing.toy_problem import Toy, ask, outline, run, run_out, small, tell, tiny, twins

ACCURACY = Objective.parse("accuracy:max")
PARAMS = Objective.parse("params:min")
ELSEWHERE = """
import importlib.util, json, sys
specification = importlib.util.spec_from_file_location("elsewhere", sys.argv[1])
module = importlib.util.module_from_spec(specification)
sys.modules["elsewhere"] = module
specification.loader.exec_module(module)
print(json.dumps(getattr(module, sys.argv[2])().digests()))
"""


class SearcherContract(ABC):
    """Test a searcher against everything that a study relies on; `trials` is the length of the runs."""

    trials = 25
    objectives: tuple[Objective, ...] = (ACCURACY, PARAMS)

    @abstractmethod
    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> Searcher:
        """Return a new searcher; the author of a searcher writes this."""

    def digests(self) -> list[str]:
        """List the digests of a short run, to compare with those of another process."""
        return [request.card.digest for request in outline(self._run(small(), self.trials))]

    def test_it_is_a_searcher(self) -> None:
        assert isinstance(self._make(small()), Searcher)

    def test_designs_belong_to_the_space_and_survive_json(self) -> None:
        space = small()
        for trial in self._run(space, self.trials).trials:
            design = trial.request.design
            assert space.contains(design)
            assert space.card(design) == trial.request.card
            assert space.from_json(json.loads(json.dumps(space.to_json(design)))) == design

    def test_the_constraints_of_the_space_are_kept(self) -> None:
        space = small().restrict("two layers", lambda card: card.encoder is not None and len(card.encoder.layers) == 2)
        for trial in self._run(space, self.trials).trials:
            assert space.contains(trial.request.design)

    def test_requests_survive_json(self) -> None:
        for request in outline(self._run(small(), self.trials)):
            assert Request.from_json(json.loads(json.dumps(request.to_json())), Card.from_json) == request

    def test_nothing_is_asked_for_twice(self) -> None:
        self._check_distinct(self._run(small(), 2 * self.trials))

    def test_a_parent_is_an_earlier_trial(self) -> None:
        for trial in self._run(small(), self.trials).trials:
            assert trial.request.parent is None or trial.request.parent < trial.number

    def test_the_same_history_and_generator_give_the_same_request(self) -> None:
        space, searcher = small(), self._make(small())
        history = self._run(space, self.trials)
        for length in range(0, self.trials, 4):
            past = History(history.trials[:length])
            first = searcher.ask(past, derive(7, "ask"))
            assert searcher.ask(past, derive(7, "ask")) == first
            assert self._make(space).ask(past, derive(7, "ask")) == first

    def test_a_history_read_from_json_gives_the_same_request(self) -> None:
        space = small()
        history = self._run(space, self.trials)
        stored = [
            (json.dumps(trial.to_json()), json.dumps(space.to_json(trial.request.design))) for trial in history.trials
        ]
        read = History(tuple(_read(space, *texts) for texts in stored))
        assert read == history
        assert self._make(space).ask(read, derive(7)) == self._make(space).ask(history, derive(7))

    def test_another_seed_gives_other_designs(self) -> None:
        assert outline(self._run(small(), self.trials, seed=1)) != outline(self._run(small(), self.trials, seed=2))

    def test_another_process_asks_the_same(self) -> None:
        # another seed for the hashes of text, so that nothing may depend on the order of a set
        other = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-c", ELSEWHERE, getfile(type(self)), type(self).__name__]
        done = subprocess.run(command, env=other, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == self.digests()

    def test_failed_trials_do_not_stop_it_and_are_not_repeated(self) -> None:
        for every in (1, 3):
            searcher, history = self._make(small()), History()
            for number in range(self.trials):
                history = ask(searcher, history, seed=0)
                fails = number % every == 0
                history = tell(history, number, "out of memory" if fails else _evaluate(history, number))
            self._check_distinct(history)

    def test_pending_trials_and_outcomes_out_of_order_do_not_stop_it(self) -> None:
        searcher, history, rng = self._make(small()), History(), derive(3)
        pending: list[int] = []
        for number in range(self.trials):
            history = ask(searcher, history, seed=0)
            pending.append(number)
            if len(pending) > 4:
                done = pending.pop(int(rng.integers(len(pending))))
                history = tell(history, done, _evaluate(history, done))
        assert len(history.pending) == 4
        self._check_distinct(history)

    def test_a_card_of_the_users_own_does_not_stop_it(self) -> None:
        space = small()
        request = Request(space.card(space.sample(derive(11))))
        history = tell(History((Trial(0, request),)), 0, Toy().evaluate(request))
        for number in range(1, self.trials):
            history = ask(self._make(space), history, seed=0)
            history = tell(history, number, _evaluate(history, number))
        self._check_distinct(history)

    @pytest.mark.parametrize("space", [tiny(), twins()], ids=lambda space: str(space.name))
    def test_it_uses_up_a_small_space_without_repeats(self, space: Space) -> None:
        history = run_out(self._make(space), Toy(), 40, SpaceExhausted)
        self._check_distinct(history)
        assert history.digests == {space.card(design).digest for design in space.enumerate()}

    def test_it_asks_for_legal_cards_only_and_for_all_of_them(self) -> None:
        def legal(card: Any) -> bool:
            return len(card.encoder.layers) == 2

        space = tiny()
        history = run_out(self._make(space, legal), Toy(), 40, SpaceExhausted)
        expected = {space.card(design).digest for design in space.enumerate() if legal(space.card(design))}
        assert history.digests == expected

    def test_it_says_when_no_card_is_legal(self) -> None:
        with pytest.raises(NoLegalDesign, match="within the limits"):
            self._make(tiny(), lambda card: False).ask(History(), derive(0))

    def test_measured_limits_do_not_stop_it(self) -> None:
        objectives = (*self.objectives, Objective.parse("accuracy>=0.1"))
        history = run(self.make(small(), objectives), Toy(), self.trials)
        self._check_distinct(history)

    def _make(self, space: Space, legal: Legal = anything) -> Searcher:
        return self.make(space, self.objectives, legal)

    def _run(self, space: Space, trials: int, seed: int = 0) -> History:
        return run(self._make(space), Toy(), trials, seed)

    @staticmethod
    def _check_distinct(history: History) -> None:
        asked: list[tuple[str, Budget]] = [(request.card.digest, request.budget) for request in outline(history)]
        assert len(set(asked)) == len(asked)


def _evaluate(history: History, number: int) -> Observation:
    return Toy().evaluate(history.trials[number].request)


def _read(space: Space, trial_text: str, design_text: str) -> Trial:
    trial = Trial.from_json(json.loads(trial_text), _read_card)
    return replace(trial, request=replace(trial.request, design=space.from_json(json.loads(design_text))))


def _read_card(data: Any) -> CardLike:
    return Card.from_json(data)
