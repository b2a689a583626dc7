import pytest
import torch

from formwright.nn.dropout import dropout


def test_dropout_keeps_the_share_and_the_mean() -> None:
    torch.manual_seed(0)
    x = torch.ones(1000, 1001)
    y = dropout(x, 0.3, True)
    assert float((y == 0).float().mean()) == pytest.approx(0.3, abs=0.003)
    assert float(y.mean()) == pytest.approx(1.0, abs=0.005)
    assert float(y.max()) == pytest.approx(1 / 0.7, rel=1e-4)


def test_neighbours_are_dropped_independently() -> None:
    torch.manual_seed(0)
    kept = (dropout(torch.ones(400_000), 0.5, True) != 0).float()
    for distance in (1, 2, 3, 4, 5):
        together = (kept[:-distance] * kept[distance:]).mean()
        assert float(together) == pytest.approx(0.25, abs=0.005)


@pytest.mark.parametrize("probability", [0.0, 1e-7])
def test_nothing_is_dropped_out_of_training_or_without_probability(probability: float) -> None:
    x = torch.rand(3, 5)
    assert torch.equal(dropout(x, 0.5, False), x)
    torch.testing.assert_close(dropout(x, probability, True), x)


def test_everything_can_be_dropped() -> None:
    assert not dropout(torch.ones(7), 1.0, True).any()


def test_gradients_pass_where_numbers_were_kept() -> None:
    torch.manual_seed(1)
    x = torch.ones(64, requires_grad=True)
    y = dropout(x, 0.25, True)
    y.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, y.detach())


def test_the_same_seed_drops_the_same_numbers() -> None:
    torch.manual_seed(5)
    first = dropout(torch.ones(99), 0.5, True)
    torch.manual_seed(5)
    assert torch.equal(first, dropout(torch.ones(99), 0.5, True))
