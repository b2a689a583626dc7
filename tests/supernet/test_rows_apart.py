"""Designs of one step that learn from different rows of a batch."""

from dataclasses import replace

import pytest
import torch
from tests.supernet.lesson_runs import HEAD, KIND, LARGEST, SMALLEST, batch, bound, losses
from tests.supernet.small import model

from formwright.arch.heads import HeadSpec
from formwright.supernet.inner_lessons import Anchor, HiddenStates
from formwright.supernet.lessons import Distil, Labels
from formwright.supernet.network import SuperNetwork
from formwright.supernet.rules import SplitBatch
from formwright.tasks.encode import IGNORED
from formwright.train.losses import loss_of
from formwright.train.streams import Batch


def test_rows_apart_are_shown_to_one_design_and_the_teacher_each() -> None:
    rows, teacher = batch(), model(2)
    network = SuperNetwork(model(1), lambda rng, step: SplitBatch([LARGEST, SMALLEST, LARGEST]), teacher).eval()
    shown = list(network(rows.inputs).each(rows))
    assert [len(one.batch.inputs) for one in shown] == [3, 3, 2]
    for place, one in enumerate(shown):
        assert torch.allclose(one.teacher.scores, teacher(rows.inputs[place::3], rows.mask[place::3]), atol=1e-5)
    few = Batch(rows.inputs[:2], rows.labels[:2], rows.mask[:2])
    assert len(list(network(few.inputs).each(few))) == 2


def tags() -> Batch:
    rows = batch()
    places = torch.arange(9)[None] < torch.tensor([1, 9, 2, 5, 3, 1, 7, 4])[:, None]
    return replace(rows, labels=torch.where(places & rows.mask, rows.inputs % 2, IGNORED))


def words() -> Batch:
    rows = batch()
    chosen = rows.mask & (torch.arange(9)[None] < torch.tensor([1, 9, 2, 5, 3, 1, 7, 4])[:, None])
    return replace(rows, labels=rows.inputs[chosen], positions=chosen)


SPLIT = {
    KIND: (HEAD, batch),
    "token-classification": (HeadSpec("token-classification", 2), tags),
    "masked-lm": (HeadSpec("masked-lm"), words),
    "span-extraction": (HeadSpec("span-extraction", 2), lambda: replace(batch(), labels=torch.tensor([[0, 1]] * 8))),
    "regression": (HeadSpec(KIND, 1), lambda: replace(batch(), labels=torch.linspace(-100, 1, 8))),
}


@pytest.mark.parametrize("number", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("kind", SPLIT)
def test_equal_designs_with_rows_apart_have_the_loss_of_the_whole_batch(kind: str, number: int) -> None:
    """Eight rows are three, three and two for three designs, and have different numbers of words."""
    (spec, make), found = SPLIT[kind], []
    rows = make()
    for lesson in (Labels(), Distil(0.3)):
        for cards in ([SMALLEST], SplitBatch([SMALLEST] * number)):
            network = SuperNetwork(model(1, spec=spec), lambda rng, step, cards=cards: cards, model(2, spec=spec))
            found.append(sum(lesson.bind(kind)(network.eval()(rows.inputs), rows)).item())
    assert found[::2] == pytest.approx(found[1::2], rel=1e-4)


def test_rows_apart_of_equal_shares_count_as_before() -> None:
    rows, network = batch(), SuperNetwork(model(1), lambda rng, step: SplitBatch([LARGEST, SMALLEST])).eval()
    found = losses(network, Labels().bind(KIND), rows)
    each = [loss_of(KIND)(shown.design.scores, shown.batch) for shown in network(rows.inputs).each(rows)]
    assert all(torch.equal(one, other / 2) for one, other in zip(found, each, strict=True))


def test_alignments_and_hidden_states_of_rows_apart_count_by_rows() -> None:
    full = Batch(torch.randint(30, (8, 9)), torch.arange(8) % 2)  # without padding
    for lesson, teacher in ((HiddenStates(), model(2)), (Anchor(weight=0.5, every=99), None)):
        found = []
        for cards in ([SMALLEST], SplitBatch([SMALLEST] * 3)):
            network, loss = bound(lesson, cards, teacher)
            network._draw = lambda rng, step, cards=cards: cards if step else [LARGEST]
            for network.eval().step in range(2):
                last = losses(network, loss, full)
            found.append(sum(last).item())
        assert found[0] == pytest.approx(found[1], rel=1e-4)
