import numpy as np
import pytest
import torch
from tests.supernet.small import BERT, CASES, SPEC, card, inputs_of, model, sentences

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.build import skeleton
from formwright.nn.inherit import extract, inherit, run
from formwright.supernet.automatic import sub_network
from formwright.supernet.importance import Importance, magnitude
from formwright.supernet.parts import groups
from formwright.supernet.reorder import reordered


def random_importance(seed: int, of: Card | None = None, hidden: bool = False) -> Importance:
    rng = derive(seed, "importance")
    scores = tuple(rng.normal(size=group.members) for group in groups(of or card()))
    return Importance(scores, *(rng.normal(size=(2, 16)) if hidden else ()))


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


@pytest.mark.parametrize("case", CASES)
def test_the_function_stays_with_the_hidden_size_in_another_order(case: str) -> None:
    one, spec = CASES[case]
    whole, inputs = model(1, of=one, spec=spec), inputs_of(one)
    before, weights = whole(*inputs), dict(whole.named_parameters())
    moved = reordered(weights, one, random_importance(2, one, hidden=True), spec)
    follow = {name for name in weights if not torch.equal(moved[name], weights[name])}
    assert "transformer.encoder.layers.1.mixer_norm.weight" in follow
    whole.load_state_dict(moved)
    assert torch.allclose(whole(*inputs), before, atol=1e-5)


def test_without_scores_the_hidden_size_stays_as_it_stands() -> None:
    weights = dict(model(of=BERT).named_parameters())
    found = random_importance(3, BERT)
    plain, moved = reordered(weights, BERT, found), reordered(weights, BERT, found, SPEC)
    assert all(torch.equal(plain[name], moved[name]) for name in weights)
    assert torch.equal(
        plain["transformer.encoder.embedding.tokens.weight"], weights["transformer.encoder.embedding.tokens.weight"]
    )


def test_the_hidden_size_may_move_while_the_pooler_stays() -> None:
    weights = dict(model(of=BERT).named_parameters())
    scores = random_importance(3, BERT, hidden=True)
    moved = reordered(weights, BERT, Importance(scores.scores, scores.hidden), SPEC)
    assert torch.equal(moved["head.output.weight"], weights["head.output.weight"])
    assert not torch.equal(moved["transformer.pooler.weight"], weights["transformer.pooler.weight"])


def test_the_head_must_be_known_where_the_hidden_size_was_scored() -> None:
    weights = dict(model(of=BERT).named_parameters())
    with pytest.raises(IllegalInput, match="say which head the weights carry"):
        reordered(weights, BERT, random_importance(0, BERT, hidden=True))


def test_the_leading_numbers_of_the_hidden_size_are_the_most_important_ones() -> None:
    weights = dict(model(of=BERT).named_parameters())
    moved = reordered(weights, BERT, magnitude(weights, BERT, SPEC), SPEC)
    found = magnitude(moved, BERT, SPEC)
    for scores in (*found.scores, found.hidden, found.pooled):
        assert scores is not None
        assert np.all(np.diff(scores) <= 1e-7)
        assert scores[0] > scores[-1]


@pytest.mark.parametrize("case", CASES)
def test_a_smaller_hidden_size_is_read_out_of_the_whole(case: str) -> None:
    one, spec = CASES[case]
    whole, inputs = model(1, of=one, spec=spec), inputs_of(one)
    moved = reordered(dict(whole.named_parameters()), one, random_importance(2, one, hidden=True), spec)
    small = sub_network(one, ((2, 12), (4, 24)), 10)
    views = inherit(moved, one, small, head=spec)
    assert views.missing == ()
    found = run(skeleton(small, whole.transformer.settings, spec).eval(), views, *inputs)
    own = extract(views, small, whole.transformer.settings, spec).eval()
    assert torch.allclose(own(*inputs), found, atol=1e-6)
    assert torch.isfinite(found).all()
    assert own.transformer(*inputs).hidden.shape[-1] == 10
    memory = {weight.untyped_storage().data_ptr() for weight in moved.values()}
    assert all(view.untyped_storage().data_ptr() in memory for view in views.weights.values())


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
