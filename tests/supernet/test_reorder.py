import numpy as np
import pytest
import torch
from tests.supernet.small import SPEC, card, model, sentences

from formwright.core.rng import derive
from formwright.nn.build import skeleton
from formwright.nn.inherit import inherit, run
from formwright.supernet.automatic import sub_network
from formwright.supernet.importance import Importance, magnitude
from formwright.supernet.parts import groups
from formwright.supernet.reorder import reordered


def random_importance(seed: int) -> Importance:
    rng = derive(seed, "importance")
    return Importance(tuple(rng.normal(size=group.members) for group in groups(card())))


@pytest.mark.parametrize("seed", range(5))
def test_the_function_stays_what_it_was(seed: int) -> None:
    whole = model(seed)
    weights = dict(whole.named_parameters())
    moved = reordered(weights, card(), random_importance(seed))
    assert any(not torch.equal(moved[name], weights[name]) for name in weights)
    tokens, mask = sentences(8, seed)
    before = whole(tokens, mask)
    whole.load_state_dict(moved)
    assert torch.allclose(whole(tokens, mask), before, atol=1e-5)


def test_the_leading_parts_are_the_most_important_ones() -> None:
    weights = dict(model().named_parameters())
    moved = reordered(weights, card(), magnitude(weights, card()))
    for scores in magnitude(moved, card()).scores:
        assert np.all(np.diff(scores) <= 1e-7)


def test_what_is_left_out_last_costs_least() -> None:
    """Parts that do nothing come last, so that a sub-network without them is the model itself."""
    whole = model()
    weights = {name: weight.detach().clone() for name, weight in whole.named_parameters()}
    scores = []
    for group in groups(card()):
        idle = derive(group.layer, group.kind).permutation(group.members)[: group.members // 2]
        piece = group.weights[1]  # what reads the part
        piece.apart(weights[piece.name])  # shape check
        mask = torch.ones(group.members)
        mask[idle] = 0
        spread = mask.repeat_interleave(piece.size)
        weights[piece.name] = weights[piece.name] * spread  # along the last axis
        scores.append(mask.numpy().astype(float))
    whole.load_state_dict(weights)
    moved = reordered(weights, card(), Importance(tuple(scores)))
    small = sub_network(card(), ((2, 12),) * 3)
    tokens, sight = sentences()
    views = inherit(moved, card(), small, head=SPEC)
    found = run(skeleton(small, whole.transformer.settings, SPEC).eval(), views, tokens, sight)
    assert torch.allclose(found, whole(tokens, sight), atol=1e-5)
