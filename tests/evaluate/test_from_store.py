"""Last trainings that begin with shared weights."""

from pathlib import Path

import pytest
import torch
from tests.evaluate.test_bi_branch import FIRST, SECOND, evaluator, pretraining, study
from tests.evaluate.toy import TASK, finished, history, trainer
from tests.supernet.branched import QK, card

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.evaluate.context import Context
from formwright.evaluate.from_store import FromStore
from formwright.evaluate.pretrained import Pretraining
from formwright.nn.task_model import TaskModel
from formwright.supernet.branch_store import Store, taken
from formwright.supernet.kernels import without_matrices
from formwright.train.fit import fresh_model
from formwright.train.prepare import prepare

STILL = pretraining(1, learning_rate=1e-12, weight_decay=0.0)  # leaves every weight, to six digits, as it was
KERNEL = "encoder.layers.1.mixer.kernel"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Give what two trials leave."""
    found = study(tmp_path, FIRST, SECOND)
    trials = history(*map(finished, range(2), (FIRST, SECOND), found))
    return evaluator().store(Context(0, tmp_path, trials))


def begun(store: Store, design: Card = FIRST, pretraining: Pretraining = STILL, seed: int = 7) -> TaskModel:
    return FromStore(store, pretraining, seed)(design, prepare(TASK, design, 12), trainer().training)


def test_a_design_has_the_weights_of_the_store_below_a_fresh_head(store: Store) -> None:
    model, expected = begun(store), without_matrices(taken(store, FIRST))
    for name, tensor in model.transformer.named_parameters():
        assert tensor.allclose(expected[f"transformer.{name}"], atol=1e-6), name
    fresh = fresh_model(FIRST, prepare(TASK, FIRST, 12), trainer().training)
    assert all(tensor.equal(fresh.head.state_dict()[name]) for name, tensor in model.head.state_dict().items())
    assert not model.transformer.get_parameter(KERNEL).allclose(fresh.transformer.get_parameter(KERNEL), atol=1e-6)


def test_kernels_are_those_that_the_matrices_showed(store: Store) -> None:
    given = taken(store, FIRST)
    assert given[f"transformer.{KERNEL.replace('kernel', 'change')}"].any()
    assert not begun(store).transformer.get_parameter(KERNEL).allclose(given[f"transformer.{KERNEL}"], atol=1e-6)


def test_it_is_pretrained_on_and_the_store_stays_as_it_is(store: Store) -> None:
    before = {name: tensor.clone() for name, tensor in store.tensors.items()}
    still, further, again, other = (
        begun(store).transformer.state_dict(),
        *(begun(store, pretraining=pretraining(), seed=seed).transformer.state_dict() for seed in (7, 7, 8)),
    )
    words = "encoder.embedding.tokens.weight"
    assert not further[words].allclose(still[words], atol=1e-6)
    assert all(tensor.equal(again[name]) for name, tensor in further.items())
    assert not other[words].equal(further[words])
    assert all(torch.equal(tensor, store.tensors[name]) for name, tensor in before.items())


def test_a_design_that_does_not_fit_is_refused(store: Store) -> None:
    with pytest.raises(IllegalInput, match="nothing that fits"):
        begun(store, card(QK, 11))
