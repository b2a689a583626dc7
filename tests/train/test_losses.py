import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax

from formwright.core.errors import UnknownName
from formwright.train.losses import (
    LARGE,
    binary_distillation,
    distillation,
    distillation_in_parts,
    hidden_distance,
    loss_of,
    spans,
)
from formwright.train.streams import Batch

GENERATOR = torch.Generator().manual_seed(0)
NOTHING = torch.zeros(1)


def test_classes_and_words_are_cross_entropy_without_what_is_ignored() -> None:
    scores = torch.randn(2, 3, 5, generator=GENERATOR)
    labels = torch.tensor([[0, 4, -100], [2, -100, -100]])
    logs = log_softmax(scores.numpy(), axis=-1)
    expected = -np.mean([logs[0, 0, 0], logs[0, 1, 4], logs[1, 0, 2]])
    for kind in ("sequence-classification", "causal-lm"):
        assert float(loss_of(kind)(scores, Batch(NOTHING, labels))) == pytest.approx(expected, rel=1e-5)


def test_distillation_is_the_softened_divergence() -> None:
    student, teacher = torch.tensor([[1.0, -2.0]]), torch.tensor([[0.5, 3.0]])
    wanted, given = (1 / (1 + np.exp(-side.numpy() / 2)) for side in (teacher, student))
    divergence = wanted * np.log(wanted / given) + (1 - wanted) * np.log((1 - wanted) / (1 - given))
    assert float(binary_distillation(student, teacher, 2.0)) == pytest.approx(divergence.mean() * 4, rel=1e-5)
    assert float(binary_distillation(teacher, teacher)) == pytest.approx(0, abs=1e-6)
    student, teacher = torch.randn(4, 3, generator=GENERATOR), torch.randn(4, 3, generator=GENERATOR)
    wanted, given = softmax(teacher.numpy() / 2, -1), softmax(student.numpy() / 2, -1)
    expected = (wanted * np.log(wanted / given)).sum(-1).mean() * 4
    assert float(distillation(student, teacher, 2.0)) == pytest.approx(expected, rel=1e-5)
    assert float(distillation(teacher, teacher)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_distillation_in_parts_is_distillation(temperature: float) -> None:
    student, teacher = (torch.randn(100, 7_000, generator=GENERATOR) for _ in range(2))
    assert student.numel() > 2 * LARGE  # so that there are several parts
    counts = torch.rand(100, generator=GENERATOR) < 0.7
    found, wanted = student.clone().requires_grad_(), student.clone().requires_grad_()
    in_parts = distillation_in_parts(found, teacher, counts, temperature)
    whole = distillation(wanted[counts], teacher[counts], temperature)
    assert float(in_parts.detach()) == pytest.approx(float(whole.detach()), rel=1e-5)
    (3 * in_parts).backward()
    (3 * whole).backward()
    assert torch.allclose(found.grad, wanted.grad, rtol=1e-4, atol=1e-9)
    assert found.grad[~counts].abs().max() == 0
    nothing = distillation_in_parts(found, teacher, torch.zeros(100, dtype=torch.bool), temperature)
    nothing.backward()
    assert nothing == 0


def test_padding_never_counts() -> None:
    scores = torch.zeros(1, 4, 2)
    scores[0, 3] = 50.0  # padding with a high score
    loss = spans(scores, Batch(NOTHING, torch.tensor([[1, 2]]), torch.tensor([[True, True, True, False]])))
    assert float(loss) == pytest.approx(np.log(3), rel=1e-5)
    student, teacher = torch.zeros(1, 3, 2), torch.ones(1, 3, 2)
    teacher[0, 2] = 100.0
    assert float(hidden_distance(student, teacher, torch.tensor([[1, 1, 0]]))) == 1.0
    assert float(hidden_distance(student, teacher, None)) > 1000


def test_losses_of_numbers_and_labels() -> None:
    with pytest.raises(UnknownName, match="regression"):
        loss_of("regresion")
    loss = loss_of("regression")(torch.tensor([[1.0], [3.0]]), Batch(NOTHING, torch.tensor([0, 5])))
    assert float(loss) == pytest.approx((1 + 4) / 2)
    scores, labels = torch.tensor([[2.0, -1.0], [0.0, 3.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    shares = 1 / (1 + np.exp(-scores.numpy()))
    expected = -np.mean(np.log(np.where(labels.numpy() == 1, shares, 1 - shares)))
    loss = loss_of("multi-label-classification")(scores, Batch(NOTHING, labels))
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_where_nothing_is_asked_for_the_loss_is_0_and_has_a_gradient() -> None:
    scores = torch.zeros(0, 7, requires_grad=True)
    batch = Batch(torch.zeros(2, 3), torch.zeros(0, dtype=torch.long))
    for loss in (loss_of("masked-lm")(scores, batch), distillation(scores, scores.detach())):
        loss.backward()
        assert loss == 0


def test_rows_all_of_whose_labels_are_ignored_have_a_loss_of_0() -> None:
    scores = torch.randn(1, 3, 5, requires_grad=True)
    loss = loss_of("token-classification")(scores, Batch(NOTHING, torch.full((1, 3), -100)))
    loss.backward()
    assert loss == 0
    assert torch.equal(scores.grad, torch.zeros(1, 3, 5))
