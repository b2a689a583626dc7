"""Whether a teacher knows more than an answer that ignores the input."""

from dataclasses import dataclass

from torch import nn

from formwright.evaluate.row_tables import evidence_of
from formwright.tasks.metrics import metric
from formwright.train.judge import judged
from formwright.train.prepare import Prepared

_LEAST_SKILL = 0.2  # of the way from an answer that ignores the input to the best possible score


@dataclass(frozen=True)
class Weakness:
    """Say what a teacher scores on N validation rows, and what an answer that ignores the input does."""

    metric: str
    rows: int
    score: float
    answer: str
    constant: float
    told_apart: bool

    def __str__(self) -> str:
        apart = "near" if self.told_apart else "not to be told apart from"
        return (
            f"the teacher is {apart} chance: {self.metric} {self.score:.4f} on {self.rows:,} validation rows, where "
            f"{self.answer} has {self.constant:.4f}"
        )


def find_weakness(model: nn.Module, prepared: Prepared) -> Weakness | None:
    """Compare a teacher with an answer that ignores the input, on the validation rows, by the task's metric.

    It is weak where the difference may be chance, and where it is less than a fifth of what is possible. A task without
    such an answer, as of spans that are always there, has no weak teachers.
    """
    found, deciding = judged(model, prepared, prepared.validation), metric(prepared.task.metric)
    evidence = evidence_of(found.metrics, found.tables, prepared, prepared.validation)
    apart, majority = evidence.beats_majority(deciding.name), evidence.majority
    if apart is None or majority is None:
        return None
    score, constant = found.metrics[deciding.name], majority.scores[deciding.name]
    if apart and score - constant >= _LEAST_SKILL * (deciding.range[1] - constant):
        return None
    return Weakness(deciding.name, evidence.rows, score, majority.answer, constant, apart)
