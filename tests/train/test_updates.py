import pytest
import torch
from torch import Tensor, nn

from formwright.core.options import PartReader, PartWriter
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import train
from formwright.train.streams import Batch
from formwright.train.updates import SUM, UPDATES, JoinedLosses, Projected, Update


def gradient(update: Update, *wanted: tuple[float, ...], progress: float = 1.0) -> list[float]:
    """Give the gradient of losses whose own gradients are `wanted`, the first that of the largest design."""
    weight = nn.Parameter(torch.zeros(len(wanted[0])))
    losses = ((place, (weight * torch.tensor(one)).sum()) for place, one in enumerate(wanted))
    update.backward(losses, [weight], progress)
    assert weight.grad is not None
    found: list[float] = weight.grad.tolist()
    return found


def test_a_sum_adds_up() -> None:
    assert gradient(SUM, (1.0, 2.0), (3.0, -1.0), (0.5, 0.0)) == [4.5, 1.0]


def test_gradients_that_agree_are_added() -> None:
    assert gradient(Projected(), (1.0, 1.0), (2.0, 0.0)) == [3.0, 1.0]


def test_the_largest_loses_what_points_against_the_others() -> None:
    found = torch.tensor(gradient(Projected(), (-1.0, 1.0), (1.0, 0.0), (1.0, 0.0)))  # c = 2 / 4
    assert torch.allclose(found, torch.tensor([2.0, 1.0]))
    assert float(found @ torch.tensor([2.0, 0.0])) == pytest.approx(4.0)  # the others' own


def test_the_others_lose_what_points_against_the_largest_if_asked_to() -> None:
    found = gradient(Projected(changes="others"), (-1.0, 1.0), (2.0, 0.0))  # c = 2 / 2
    assert found == pytest.approx([0.0, 2.0])


def test_the_correction_is_at_most_two() -> None:
    assert gradient(Projected(), (-100.0, 0.0), (1.0, 0.0)) == pytest.approx([-97.0, 0.0])


def test_before_its_time_a_projection_is_a_sum() -> None:
    conflict = ((-1.0, 1.0), (2.0, 0.0))
    assert gradient(Projected(after=0.5), *conflict, progress=0.4) == gradient(SUM, *conflict)
    assert gradient(Projected(after=0.5), *conflict, progress=0.5) != gradient(SUM, *conflict)


def test_what_only_one_side_uses_keeps_its_gradient() -> None:
    weights = [nn.Parameter(torch.ones(1)) for _ in range(3)]
    losses = iter([(0, weights[0] * 2), (1, weights[1] * 3)])
    Projected(after=0).backward(losses, weights, 0.0)
    assert [None if weight.grad is None else weight.grad.item() for weight in weights] == [2.0, 3.0, None]


class Numbers:
    def batch(self, step: int) -> Batch:
        return Batch(torch.full((2, 1), float(step + 1)), torch.ones(2))


def test_batches_of_one_step_are_joined_before_they_are_projected() -> None:
    seen: list[list[int]] = []

    class Noted(Update):
        def backward(self, losses: object, parameters: object, progress: float) -> None:
            pairs = list(losses)  # type: ignore[call-overload]
            seen.append([place for place, _ in pairs])
            sum(loss for _, loss in pairs).backward()

    class Halves(nn.Linear):
        def forward(self, inputs: Tensor, *_: object) -> Tensor:
            return super().forward(inputs)

    two = lambda scores, batch: iter((scores.mean() / 2, scores.mean() / 2))  # noqa: E731
    losses = train(Halves(1, 1), Numbers(), JoinedLosses(two, Noted()), Hyperparameters(2, 2, accumulate=2))
    assert seen == [[0, 1, 0, 1]] * 2
    assert len(losses) == 2


@pytest.mark.parametrize("update", [SUM, Projected("others", 0.1)], ids=lambda update: update.NAME)
def test_updates_are_parts(update: Update) -> None:
    reader = PartReader()
    assert reader.finished(reader.read(Update, PartWriter().value(update)), "update") == update
    assert UPDATES.get(update.NAME) is type(update)


def test_each_tensor_is_projected_by_itself_and_as_a_whole() -> None:
    weights = [nn.Parameter(torch.zeros(2, 2)), nn.Parameter(torch.zeros(1))]
    largest = torch.tensor([[-2.0, 1.0], [0.0, 0.0]]), torch.tensor([1.0])
    others = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([5.0])
    losses = [
        sum((weight * one).sum() for weight, one in zip(weights, ones, strict=True)) for ones in (largest, others)
    ]
    Projected().backward(enumerate(losses), weights, 1.0)
    assert torch.equal(weights[0].grad, torch.tensor([[0.0, 1.0], [2.0, 0.0]]))  # c = 2 / 2
    assert weights[1].grad == 6  # which agree
