"""A task and designs small enough to be trained in a tenth of a second: is the word `b` in the sentence?"""

from pathlib import Path
from typing import Any

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.records import History, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.evaluate.training import Trainer
from formwright.tasks.rows import Splits, TextRows
from formwright.tasks.task import Task
from formwright.train.fit import Training
from formwright.train.hyperparameters import Hyperparameters

WORDS = "abcdefgh"
SIZES = (96, 48, 40)
TABLE = TokenEmbedding(32, 16, length=12)


def rows(split: int, scored: bool = False) -> TextRows:
    """Draw sentences, all different from those of the other splits, with classes or with scores."""
    rng = derive(0, "toy rows", split)
    texts = [" ".join(WORDS[index] for index in rng.integers(len(WORDS), size=6 + split)) for _ in range(SIZES[split])]
    labels = [text.count("b") / 2 + 3 if scored else int("b" in text) for text in texts]
    return TextRows(tuple((text,) for text in texts), tuple(labels))


def splits() -> Splits[TextRows]:
    return Splits(rows(0), rows(1), rows(2))


def splits_without_test() -> Splits[TextRows]:
    return Splits(rows(0), rows(1), None, division="all there is, whole")


def scored_splits() -> Splits[TextRows]:
    return Splits(*(rows(split, scored=True) for split in range(3)))


TASK = Task("toy", "sequence-classification", "accuracy", splits, labels=("absent", "present"))
UNTESTED = Task("untested", "sequence-classification", "accuracy", splits_without_test, labels=("absent", "present"))
SCORED = Task("scored", "regression", "pearson", scored_splits)


class Foreign:
    """A card of someone else's."""

    digest = "0"

    def to_json(self) -> object:
        return {}


def block(width: int = 32) -> Block:
    return Block(16, Attention(2, 8), (width,))


def card(*feed_forwards: int) -> Card:
    """Describe an encoder by the widths inside its layers."""
    return Card(encoder=Stack(TABLE, tuple(block(width) for width in feed_forwards)))


def trainer(steps: int = 12, task: Task = TASK, **recipe: Any) -> Trainer:
    return Trainer(
        task, Training(Hyperparameters(steps, 16, **{"learning_rate": 3e-3, **recipe}), length=12, device="cpu")
    )


def finished(number: int, design: Card, observation: Observation) -> Trial:
    return Trial(number, Request(design), "finished", observation)


def history(*trials: Trial) -> History:
    return History(trials)


def files(folder: Path) -> list[str]:
    """List the files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
