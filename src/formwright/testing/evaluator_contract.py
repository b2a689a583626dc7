"""The contract that every evaluator keeps, as tests: inherit `EvaluatorContract` and say what yours is bound to.

class TestMine(EvaluatorContract):
    def part(self):
        return MyEvaluator()

    def setting(self):
        return Setting(space, 0, task, training)
"""

import json
import math
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.options import PartReader, PartWriter, inputs_of
from formwright.core.protocols import GroupEvaluator
from formwright.core.records import DataCard, History, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.evaluate.context import Context
from formwright.pipeline.evaluators import EvaluatorPart, Setting
from formwright.testing.stage_contract import Killed


class EvaluatorContract(ABC):
    """Test an evaluator against everything that a study relies on; `designs` of the space are scored.

    `exact` says that the same request has the same scores to the last digit, as everything that is resumed must.
    """

    designs: ClassVar[int] = 3
    exact: ClassVar[bool] = True

    @abstractmethod
    def part(self) -> EvaluatorPart:
        """Give the evaluator with its options; the author of an evaluator writes this."""

    @abstractmethod
    def setting(self) -> Setting:
        """Give what a quick study would give it: a space, a small task, a short training."""

    # --- the part ----------------------------------------------------------------------------------------------------

    def test_its_options_are_plain_data(self) -> None:
        part = self.part()
        stages = {f"stage-{number}": stage for number, stage in enumerate(inputs_of(part))}
        names = {id(stage): name for name, stage in stages.items()}
        data = json.loads(json.dumps(PartWriter(names).value(part)))
        reader = PartReader(stages)
        again = reader.finished(reader.read(EvaluatorPart, data, "evaluator"), "evaluator")
        assert json.loads(json.dumps(PartWriter(names).value(again))) == data
        assert type(again) is type(part)
        assert part == self.part()

    def test_shared_weights_are_delivered_only_where_trials_leave_them(self, tmp_path: Path) -> None:
        part = self.part()
        assert part.DELIVERS == "fresh" or part.shares_weights()
        if not part.shares_weights():
            with pytest.raises(IllegalInput, match="fresh"):
                part.start(self.setting(), 1, "shared", tmp_path / "final" / "one", History())

    # --- scores ------------------------------------------------------------------------------------------------------

    def test_scores_have_the_promised_names_and_are_numbers(self, tmp_path: Path) -> None:
        setting = self.setting()
        promised = self.part().metrics(setting.task) or ()
        for trial in self.history(tmp_path).finished:
            found = self.seen(trial)
            assert set(promised) <= found.metrics.keys()
            assert all(math.isfinite(value) for value in found.metrics.values())
            assert found.spent.seconds >= 0
            assert Observation.from_json(json.loads(json.dumps(found.to_json()))) == found

    def test_what_is_kept_lies_in_the_folder_of_the_study(self, tmp_path: Path) -> None:
        for trial in self.history(tmp_path).finished:
            for name, value in self.seen(trial).artifacts.items():
                assert isinstance(value, str), name
                assert not Path(value).is_absolute(), f"{name} would be lost where the folder moves"

    def test_the_same_requests_have_the_same_scores_in_another_process_and_place(self, tmp_path: Path) -> None:
        one, other = (self.metrics(self.history(tmp_path / name)) for name in ("one", "other"))
        assert one == other if self.exact else [set(found) for found in one] == [set(found) for found in other]

    def test_requests_that_are_evaluated_together_have_the_scores_that_they_have_alone(self, tmp_path: Path) -> None:
        evaluator = self.part().bind(self.setting())
        if not isinstance(evaluator, GroupEvaluator):
            return
        requests = [trial.request for trial in self.history(tmp_path / "first").finished]
        found = evaluator.evaluate_together([(request, Context(0, tmp_path / "together")) for request in requests])
        alone = [evaluator.evaluate(request, Context(0, tmp_path / "alone")) for request in requests]
        assert [one.metrics for one in found] == [one.metrics for one in alone]

    def test_a_study_whose_folder_moved_goes_on(self, tmp_path: Path) -> None:
        whole = self.metrics(self.history(tmp_path / "whole"))
        before = self.history(tmp_path / "here", self.designs - 1)
        (tmp_path / "here").rename(tmp_path / "there")
        after = self.history(tmp_path / "there", self.designs, before)
        assert self.metrics(after)[:-1] == self.metrics(before)
        assert not self.exact or self.metrics(after) == whole

    def test_an_evaluation_that_was_killed_comes_to_the_same(self, tmp_path: Path) -> None:
        whole = self.history(tmp_path / "whole")
        steps = self.killed(tmp_path / "counted", None)
        for turn in sorted({0, steps // 2, steps - 1} - {-1}):
            folder = tmp_path / str(turn)
            self.killed(folder, turn)
            found = self.history(folder, 1)
            assert not self.exact or self.metrics(found) == self.metrics(whole)[:1], f"killed at step {turn}"

    def test_a_design_that_is_none_of_ours_is_refused_or_scored(self, tmp_path: Path) -> None:
        request = Request(DataCard({"layers": 3}))
        try:
            found = self.part().bind(self.setting()).evaluate(request, Context(0, tmp_path))
        except FormwrightError:
            return
        except (AttributeError, TypeError, AssertionError) as error:
            if not self.part().TRAINS:
                return  # a function of the user's own, or a proxy of cards
            raise AssertionError("a card that cannot be trained is an error of the user's") from error
        assert isinstance(found, Observation)

    # --- how it is run -----------------------------------------------------------------------------------------------

    def requests(self, number: int) -> list[Request]:
        """Draw designs of the space."""
        space = self.setting().space
        designs = [space.sample(derive(3, "evaluator contract", turn)) for turn in range(number)]
        return [Request(space.card(design), design=design) for design in designs]

    def history(self, folder: Path, number: int | None = None, before: History | None = None) -> History:
        """Score designs one after the other, each with a new evaluator, and continue from what was scored before."""
        folder.mkdir(parents=True, exist_ok=True)
        trials = () if before is None else before.trials
        for request in self.requests(self.designs if number is None else number)[len(trials) :]:
            found = self.part().bind(self.setting()).evaluate(request, Context(7, folder, History(trials)))
            trials = (*trials, replace(Trial(len(trials), request), state="finished", observation=found))
        return History(trials)

    def killed(self, folder: Path, turn: int | None) -> int:
        """Score the first design and kill it after a step; give the number of steps."""
        folder.mkdir(parents=True, exist_ok=True)
        steps: list[int] = []

        def after_step(step: int, loss: float) -> None:
            steps.append(step)
            if turn is not None and len(steps) == turn + 1:
                raise Killed

        context = Context(7, folder, History(), after_step)
        try:
            self.part().bind(self.setting()).evaluate(self.requests(1)[0], context)
        except Killed:
            assert turn is not None
        return len(steps)

    @staticmethod
    def seen(trial: Trial) -> Observation:
        """Give what was found of a trial."""
        assert trial.observation is not None
        return trial.observation

    def metrics(self, history: History) -> list[dict[str, Any]]:
        """List the scores of all trials."""
        return [dict(self.seen(trial).metrics) for trial in history.finished]
