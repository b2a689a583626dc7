import pytest
import torch

from formwright.nn.dropout import dropout


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_each_number_falls_with_the_given_probability_and_the_mean_stays(probability: float) -> None:
    torch.manual_seed(0)
    kept = dropout(torch.ones(1001, 401), probability, True)  # not a multiple of the numbers in one draw
    fell = kept == 0
    assert fell.float().mean().item() == pytest.approx(probability, abs=0.003)
    assert kept[~fell].unique().tolist() == pytest.approx([1 / (1 - probability)], rel=1e-4)
    assert kept.mean().item() == pytest.approx(1, abs=0.01)
    for place in range(4):  # all four numbers of a draw are treated alike
        assert fell.flatten()[place::4].float().mean().item() == pytest.approx(probability, abs=0.006)
    neighbours = fell.flatten()[:400_000].float().view(-1, 4).T  # the numbers of one draw, side by side
    assert (torch.corrcoef(neighbours) - torch.eye(4)).abs().max() < 0.02


def test_the_seed_decides_whatever_the_threads() -> None:
    before = torch.get_num_threads()
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(3)
        results.append(dropout(torch.ones(300, 301), 0.3, True))
    torch.set_num_threads(before)
    assert torch.equal(*results)
    assert not torch.equal(results[0], dropout(torch.ones(300, 301), 0.3, True))


@pytest.mark.parametrize(("probability", "training"), [(0.5, False), (0.0, True)])
def test_nothing_happens_otherwise(probability: float, training: bool) -> None:
    x = torch.ones(3)
    assert dropout(x, probability, training) is x


def test_gradients_pass_where_numbers_stay() -> None:
    x = torch.ones(5, 7, requires_grad=True)
    y = dropout(x, 0.4, True)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert dropout(torch.ones(50), 1.0, True).eq(0).all()
    assert dropout(torch.ones(50), 1e-9, True).allclose(torch.ones(50))
