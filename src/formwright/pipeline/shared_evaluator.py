"""Score designs as sub-networks of the shared weights that a stage trained."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from formwright.core.errors import IllegalInput
from formwright.core.options import Stage, option
from formwright.core.protocols import Evaluator
from formwright.core.records import History
from formwright.pipeline.evaluators import EvaluatorPart, Setting, Weights
from formwright.pipeline.plan import SLOWED, WorkAmount
from formwright.space.space import Space
from formwright.supernet.hull import find_hull, has_order, reads_all

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.evaluate.shared import SharedWeights
    from formwright.evaluate.training import Start
    from formwright.pipeline.run import StageRun

_LEAST_TRIALS, _MOST_TRIALS, _LEAST_ROWS = 30, 1000, 512  # that are worth doing, whatever the hours
_TOGETHER = 8  # designs that are judged at once on an accelerator, which waits for the processor between two batches


@dataclass(frozen=True)
class SharedSubnetworks(EvaluatorPart):
    """Score designs as sub-networks of shared weights, untrained; significantly worse ones are stopped early."""

    NAME: ClassVar[str] = "shared"
    DELIVERS: ClassVar[Weights] = "shared"
    COPIES: ClassVar[int] = 0
    weights: Stage = option(about="the stage that trains the shared weights")
    rows: int | None = option(None, "validation rows, drawn at random, that designs are judged by; null: all", least=1)
    together: int | None = option(
        None, f"designs that a worker asks for and judges at once; null: {_TOGETHER} on an accelerator, else 1", least=1
    )
    races: bool = option(True, "stop evaluating a design early once a known design is significantly better")

    @property
    def _stage(self) -> Any:
        return self.weights

    def tokeniser(self, run: "StageRun") -> Any:
        return run.artifact(self.weights).prepared.tokeniser

    def scores_design(self, run: "StageRun", card: "Card") -> bool:
        """Tell whether the shared weights have those of a design.

        That is known of all designs where the space whose weights were trained is searched, and its largest design
        holds them: a searcher asks for thousands.
        """
        known = run.run.once(("holds all designs", run.name), lambda: self._holds_all(run))
        return known or bool(run.artifact(self.weights).holds(card))

    def _holds_all(self, run: "StageRun") -> bool:
        if not hasattr(self._stage, "found_space") or not hasattr(run.stage, "space"):
            return False
        own: Space = self._stage.found_space(run)
        return own == run.space(run.stage.space) and has_order(own) and find_hull(own).whole

    def check_space(self, run: "StageRun", space: Space) -> None:
        """Refuse a space whose designs cannot read their weights, where that is known before they are trained."""
        self._check_rows(run)
        whole = self._stage.whole_design(run) if hasattr(self._stage, "whole_design") else None
        if whole is None or space == (own := self._stage.found_space(run)):
            return
        if not reads_all(space, whole):
            raise IllegalInput(
                f"designs of space {space.name!r} cannot read their weights from a super-network of space "
                f"{own.name!r}: they have parts that its largest design lacks; search the space whose weights are "
                "trained, or a part of it"
            )

    def _check_rows(self, run: "StageRun") -> None:
        from formwright.tasks.kind import kind_of

        if self.rows is None or not hasattr(self._stage, "task"):
            return
        task = run.task(self._stage.task)
        if kind_of(task).answer is None:
            raise IllegalInput(
                f"designs for {task.name} ({task.kind}) are evaluated on all validation rows: leave rows out; it is "
                "for tasks with one class or number for each row"
            )

    def trial_steps(self, steps: int) -> int:
        return 0

    def amounts(self, trials: int, run: "StageRun") -> dict[str, WorkAmount] | None:
        """Say how many designs are judged, and by how many rows; tasks with several answers a row need them all."""
        from formwright.tasks.kind import kind_of

        if not hasattr(self._stage, "amounts") or self._stage.amounts(run) is None:
            return None
        rows = min(self._stage.held_out(run), self.rows or self._stage.held_out(run))
        least = rows if kind_of(run.task(self._stage.task)).answer is None else min(rows, _LEAST_ROWS)
        return {
            "trials": WorkAmount(trials, _LEAST_TRIALS, max(trials, _MOST_TRIALS), "evaluations"),
            "rows": WorkAmount(rows, least, rows, "rows of an evaluation"),
        }

    def speeds(self, run: "StageRun") -> dict[str, float]:
        times, (middle, _) = self._stage.times(run), self._stage.shares(run)
        trained = times.alone * middle + times.asked
        return {"validation": middle * times.judging, "step": trained, SLOWED: times.slowed}

    def seconds(self, amounts: Mapping[str, int], speeds: Mapping[str, float], run: "StageRun") -> float:
        share = min(1.0, amounts["rows"] / int(self._stage.held_out(run)))
        return amounts["trials"] * share * speeds["validation"]

    def planned(self, amounts: Mapping[str, int], run: "StageRun") -> "EvaluatorPart":
        """Give the evaluator with the rows that are planned; all of them are the default."""
        rows = amounts["rows"] if amounts["rows"] < self._stage.held_out(run) else None
        return self if rows == self.rows else replace(self, rows=rows)

    def network(self, setting: Setting) -> "SharedWeights":
        assert setting.artifact is not None
        return cast("SharedWeights", setting.artifact(self.weights))

    def bind(self, setting: Setting) -> Evaluator:
        from formwright.evaluate.races import RaceRules
        from formwright.evaluate.shared import Shared
        from formwright.train.device import choose_device

        first, *others = setting.costs
        device = setting.trainer.training.device
        together = self.together or (1 if choose_device(device).type == "cpu" else _TOGETHER)
        rules = RaceRules() if self.races else None
        return Shared(self.network(setting), first, rules, tuple(others), self.rows, device, together)

    def shares_weights(self) -> bool:
        return True

    def start(self, setting: Setting, steps: int, weights: Weights, folder: Path, history: History) -> "Start":
        from formwright.train.fit import fresh_model

        network = self.network(setting)
        return fresh_model if weights == "fresh" else lambda card, _, __: network.extracted(card)
