"""What a teacher says at the ends of its blocks."""

import torch
from tests.supernet.lessons import CARD, batch, teacher

from formwright.supernet.teacher_states import states


def test_states_are_those_of_the_whole_model() -> None:
    model, shown = teacher(), batch()
    found = states(model, shown, (0, 1, 2))
    whole = model(shown.inputs, shown.mask, shown.types).layers
    torch.testing.assert_close(found.hidden[1], whole[0])
    torch.testing.assert_close(found.hidden[2], whole[1])
    assert found.hidden[0].shape == (*shown.inputs.shape, CARD.output_width)
    assert not found.hidden[2].requires_grad


def test_only_real_tokens_count() -> None:
    model, shown = teacher(), batch()
    found = states(model, shown, (0, 2))
    assert shown.mask is not None
    wrong = found.hidden[1].clone()
    wrong[~shown.mask] += 100
    assert float(found.distance(wrong, 1)) == 0.0
    assert len(found.real(1)) == int(shown.mask.sum())
    assert float(found.distance(found.hidden[1] + 2, 1)) == 4.0


def test_a_batch_without_padding_counts_whole() -> None:
    shown = batch(padded=False)
    found = states(teacher(), shown, (1,))
    assert len(found.real(0)) == shown.inputs.numel()
    assert float(found.distance(found.hidden[0] - 1, 0)) == 1.0
