"""What a study found, in one sentence."""

from formwright.report.facts import StudyFacts
from formwright.report.figures import figure, short_count
from formwright.report.models import FinalModel


def what_was_found(facts: StudyFacts) -> str:
    """Say what the best design scores, how large it is, and how it does beside the teacher or the baseline."""
    best, goal, model = facts.best_row, facts.goals[0].name, facts.found
    if best is None:
        return _nothing(facts)
    split = "test" if model is not None and goal in model.test else "validation"
    if model is None or goal not in _scores(model, split):
        told = f"{_score(best.metrics[goal], goal)}{_size(best.costs['params'])}"
        return f"The best design{'' if facts.over else ' so far'}, trial {best.number:,}, has {told}."
    size = _size(model.params or best.costs["params"])
    told = f"{_score(_scores(model, split)[goal], goal)} on the {split} split{size}"
    return f"The best design, trial {best.number:,}, has {told}{_beside(facts.teacher or facts.baseline, split, goal)}."


def _nothing(facts: StudyFacts) -> str:
    if facts.ledger.finished:
        return f"No trial {'' if facts.over else 'so far '}keeps all limits."
    return "No trial has finished yet." if not facts.over else "No trial has finished."


def _beside(other: FinalModel | None, split: str, goal: str) -> str:
    if other is None or goal not in _scores(other, split):
        return ""
    name = "teacher" if other.role == "teacher" else "hand-made baseline"
    size = _size(other.params) if other.params else ""
    return f"; the {name}{size} has {figure(_scores(other, split)[goal], goal)}"


def _scores(model: FinalModel, split: str) -> dict[str, float]:
    return dict(model.test if split == "test" else model.validation)


def _score(value: float, goal: str) -> str:
    return f"{goal} {figure(value, goal)}"


def _size(params: float) -> str:
    return f" with {short_count(params)} parameters"
