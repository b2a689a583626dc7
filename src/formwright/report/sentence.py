"""What a study found, in one sentence."""

from formwright.report.facts import StudyFacts
from formwright.report.figures import figure, short_count
from formwright.report.models import FinalModel
from formwright.study.conclusion import comparison_line, score_line


def what_was_found(facts: StudyFacts) -> str:
    """Say what the best design scores, how large it is, and how it does beside the teacher or the baseline."""
    best, goal, model = facts.best_row, facts.goals[0].name, facts.found
    if best is None:
        return _nothing(facts)
    split = "validation" if model is None else model.split
    if model is None or goal not in model.scores(split):
        told = f"{_score(best.metrics[goal], goal)}{_size(best.costs['params'])}"
        return f"The best design{'' if facts.over else ' so far'}, trial {best.number:,}, has {told}."
    size = _size(model.params or best.costs["params"])
    score = score_line(goal, split, model.scores(split)[goal], model.evidence.get(split))
    return f"The best design, trial {best.number:,},{size}: {score}{_beside(facts, model, split, goal)}."


def _nothing(facts: StudyFacts) -> str:
    if facts.ledger.finished:
        return f"No trial {'' if facts.over else 'so far '}keeps all limits."
    return "No trial has finished yet." if not facts.over else "No trial has finished."


def _beside(facts: StudyFacts, model: FinalModel, split: str, goal: str) -> str:
    """Say how the teacher or the baseline scores, and whether the two can be told apart."""
    other = facts.teacher or facts.baseline
    if other is None or goal not in other.scores(split):
        return ""
    name = "teacher" if other.role == "teacher" else "hand-made baseline"
    found, scores = facts.comparisons.get(model.name), (model.scores(split)[goal], other.scores(split)[goal])
    if found is None:
        return f"; the {name}{_size(other.params) if other.params else ''} has {figure(scores[1], goal)}"
    evidence = model.evidence.get(split)
    beats = None if evidence is None else evidence.beats_majority(goal)
    return f". Compared row by row: {comparison_line(found, *scores, beats=beats, other=f'the {name}')}"


def _score(value: float, goal: str) -> str:
    return f"{goal} {figure(value, goal)}"


def _size(params: float) -> str:
    return f" with {short_count(params)} parameters"
