import numpy as np
import pytest
import torch
from tests.supernet.small import CHANNELS, HEADS, LAYERS, card, model, sentences
from torch.nn import functional as F

from formwright.supernet.importance import Watched, magnitude, uniform


def loss(trained: torch.nn.Module, seed: int) -> torch.Tensor:
    tokens, mask = sentences(seed=seed)
    return F.cross_entropy(trained(tokens, mask), torch.arange(len(tokens)) % 2)


def test_the_score_of_a_part_is_the_mean_movement_of_its_weights() -> None:
    trained = model()
    watched = Watched(trained)
    for seed in range(3):
        loss(watched, seed).backward()
    other = model()
    wanted = {name: torch.zeros_like(weight, dtype=torch.float64) for name, weight in other.named_parameters()}
    for seed in range(3):
        other.zero_grad()
        loss(other, seed).backward()
        for name, weight in other.named_parameters():
            wanted[name] -= (weight.grad * weight).double()
    heads, channels = watched.importance().scores[2:4]  # of the second layer
    layer = "transformer.encoder.layers.1"
    packed = wanted[f"{layer}.mixer.query_key_value.weight"].detach()  # (heads x 3 x 4, 16)
    out = wanted[f"{layer}.mixer.output.weight"].detach()
    for head in range(HEADS):
        parts = (packed[12 * head : 12 * head + 12], out[:, 4 * head : 4 * head + 4])
        assert heads[head] == pytest.approx(float(torch.cat([part.flatten() for part in parts]).mean()), rel=1e-4)
    first, second = (wanted[f"{layer}.feed_forward.maps.{one}.weight"].detach() for one in (0, 1))
    for channel in range(CHANNELS):
        mean = float(torch.cat((first[channel], second[:, channel])).mean())
        assert channels[channel] == pytest.approx(mean, rel=1e-4)


def test_watching_changes_no_gradient() -> None:
    one, two = model(), model()
    loss(Watched(one), 0).backward()
    loss(two, 0).backward()
    for mine, theirs in zip(one.parameters(), two.parameters(), strict=True):
        assert (mine.grad is None) == (theirs.grad is None)
        assert mine.grad is None or torch.equal(mine.grad, theirs.grad)


def test_every_group_has_a_score_for_every_member() -> None:
    for found in (magnitude(dict(model().named_parameters()), card()), uniform(card())):
        assert [len(scores) for scores in found.scores] == [HEADS, CHANNELS] * LAYERS


def test_magnitude_is_the_mean_size_of_the_weights() -> None:
    weights = dict(model().named_parameters())
    channels = magnitude(weights, card()).scores[1]
    first, second = (weights[f"transformer.encoder.layers.0.feed_forward.maps.{one}.weight"] for one in (0, 1))
    assert channels[7] == pytest.approx(float(torch.cat((first[7], second[:, 7])).detach().abs().mean()), rel=1e-5)


def test_orders_fall_and_equal_scores_stay_as_they_stand() -> None:
    for order in uniform(card()).orders():
        assert order.tolist() == list(range(len(order)))
    found = magnitude(dict(model().named_parameters()), card())
    for scores, order in zip(found.scores, found.orders(), strict=True):
        assert np.all(np.diff(scores[order.numpy()]) <= 0)
