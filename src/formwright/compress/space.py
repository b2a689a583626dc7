"""The search space that a fine-tuned model draws up, and the scores that decide it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.compress.folders import Folders, read_importance, read_stored, write_json
from formwright.compress.method import Method
from formwright.nn.task_model import TaskModel
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.supernet.automatic import Met, Thresholds, automatic, targets_between
from formwright.supernet.importance import Importance, balanced, magnitude, uniform

BALANCE = 0.75  # how far layers are compared by themselves; of 0, 0.5, 0.75 and 1 the best on SST-2
MARGIN = 0.8  # how far between the least model and the lowest target the space begins: there is a choice at the target


@dataclass(frozen=True)
class Reach:
    """From where to where sub-networks shall cost, by one cost."""

    name: str
    cost: Callable[[Card], float]
    low: float
    high: float


def low_end(least: float, lowest: float) -> float:
    """Give the cost that a space begins at: below the lowest target and, where that can be, not below the least model.

    `least` is what the least model of the full hidden size costs; a narrower one may cost less than that.
    """
    return least + MARGIN * (lowest - least) if lowest > least else MARGIN * lowest


def search_space(
    card: Card, reaches: Sequence[Reach], method: Method, folders: Folders
) -> tuple[ElasticChoices, list[Met]]:
    """Let the model draw up its space (Algorithm 1), from the lower to the higher end of the first cost.

    For each further cost the space has the sub-network at its lower end too, or else its targets might not be met.
    """
    scores = space_scores(method, folders)
    first, *others = [(Thresholds(card, scores, one.cost, measure=one.name), one) for one in reaches]
    further = [thresholds.nearest(one.low) for thresholds, one in others]
    goals = targets_between(first[1].low, first[1].high, method.configurations)
    choices, met = automatic(first[0], goals, whole=method.whole, hidden=method.hidden, further=further)
    if not folders.space.is_file():
        write_json(folders.space, choices.to_json())
    return read_stored(folders.space, ElasticChoices.from_json), met


def space_scores(method: Method, folders: Folders) -> Importance:
    """Give the scores that the space is drawn up by: movement where that is the order, or else those of first order."""
    if method.order == "movement":
        return read_importance(folders.movement)
    return balanced(read_importance(folders.importance), BALANCE)


def ordering(known: TaskModel, method: Method, folders: Folders) -> Importance:
    """Give the scores by which heads and channels are put in order."""
    card = known.transformer.card
    if method.order == "l1":
        return magnitude(dict(known.named_parameters()), card, known.spec if method.hidden else None)
    return uniform(card) if method.order == "none" else space_scores(method, folders)
