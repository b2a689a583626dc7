"""A folder that holds another model than the one that was judged is found out."""

from pathlib import Path

import pytest
import torch
from tests.evaluate.test_shared import NARROW, THIN, WHOLE, network
from tests.evaluate.toy import SCORED
from tests.train.cases import ENCODER, LENGTH, SPANS

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed
from formwright.evaluate.shared import SharedWeights
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.task_model import TaskModel
from formwright.pipeline.delivery import LARGEST_DIFFERENCE, refuse_another
from formwright.supernet.automatic import sub_network
from formwright.tasks.task import Task


@pytest.fixture(scope="module")
def trained() -> SharedWeights:
    return network(steps=10)


def written(model: TaskModel, folder: Path) -> Path:
    return save_pretrained_folder(model, folder / "model", force=True)


@pytest.mark.parametrize("part", [WHOLE, NARROW, THIN], ids=["whole", "narrow", "thin"])
def test_the_very_sub_network_is_proved(part: Card, trained: SharedWeights, tmp_path: Path) -> None:
    folder = written(trained.extracted(part), tmp_path)
    assert refuse_another(folder, trained, part) <= LARGEST_DIFFERENCE


@pytest.mark.parametrize(
    ("task", "card", "length"), [(SCORED, WHOLE, 12), (SPANS, ENCODER, LENGTH)], ids=["regression", "spans"]
)
def test_every_kind_of_answer_is_compared(task: Task, card: Card, length: int, tmp_path: Path) -> None:
    whole = network(task, card, length, steps=1)
    part = sub_network(card, ((1, 16),) * len(card.stacks[0].layers))
    assert refuse_another(written(whole.extracted(part), tmp_path), whole, part) <= LARGEST_DIFFERENCE


@pytest.mark.parametrize("change", [1e-3, float("nan")])
def test_other_weights_are_found_out(change: float, trained: SharedWeights, tmp_path: Path) -> None:
    model = trained.extracted(NARROW)
    with torch.no_grad():
        model.head.output.bias += change  # type: ignore[union-attr, operator]
    folder = written(model, tmp_path)
    with pytest.raises(EvaluationFailed, match=rf"the model in {folder} differs from its sub-network by "):
        refuse_another(folder, trained, NARROW)


def test_another_sub_network_is_found_out(trained: SharedWeights, tmp_path: Path) -> None:
    other = sub_network(WHOLE, ((1, 8), (1, 16)))
    with pytest.raises(EvaluationFailed, match="differs from its sub-network"):
        refuse_another(written(trained.extracted(other), tmp_path), trained, THIN)
