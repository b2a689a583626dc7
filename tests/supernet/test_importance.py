import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.supernet.small import (
    BERT,
    CASES,
    CHANNELS,
    HEADS,
    LAYERS,
    SPANS,
    SPEC,
    VIT,
    card,
    inputs_of,
    model,
    sentences,
)
from torch.nn import functional as F

from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.nn.build import skeleton
from formwright.nn.inherit import extract, inherit, run
from formwright.supernet.automatic import sub_network
from formwright.supernet.groups import groups
from formwright.supernet.importance import (
    Importance,
    ImportanceTracker,
    _exact,
    balanced,
    falling,
    first_order,
    magnitude,
    reordered,
    uniform,
)
from formwright.train.losses import loss_of
from formwright.train.streams import Batch


def loss(trained: torch.nn.Module, seed: int) -> torch.Tensor:
    tokens, mask = sentences(seed=seed)
    return F.cross_entropy(trained(tokens, mask), torch.arange(len(tokens)) % 2)


def test_the_score_of_a_part_is_the_mean_movement_of_its_weights() -> None:
    trained = model()
    watched = ImportanceTracker(trained)
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


PINNED = json.loads((Path(__file__).parent / "pinned_scores.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["size", "movement", "first-order"])
def test_scores_and_orders_stay_what_they_were(case: str, name: str) -> None:
    """Written down before groups followed from declared tensors; the orders of heads, channels and hidden sizes."""
    one, spec = CASES[case]
    trained = model(3, of=one, spec=spec)
    if name == "size":
        found = magnitude(dict(trained.named_parameters()), one, spec, hidden=True)
    else:
        watched = ImportanceTracker(trained, hidden=True, signed=name == "movement")
        watched(*inputs_of(one)).square().sum().backward()
        found = watched.importance()
    scores, wanted = [*found.scores, *found.through.values()], PINNED[f"{case}, {name}"]
    assert [" ".join(map(str, falling(one).tolist())) for one in scores] == wanted["orders"]
    assert [float(one.max()) for one in scores] == pytest.approx(wanted["highest"], rel=1e-4)


def rows(seed: int) -> Batch:
    tokens, mask = sentences(seed=seed)
    return Batch(tokens, torch.arange(len(tokens)) % 2, mask)


def test_the_first_order_score_is_the_mean_size_of_weight_times_gradient() -> None:
    """Sizes are summed batch by batch, where movement would let steps in both directions cancel out."""
    trained = model()
    found = first_order(trained, [rows(0), rows(1)], loss_of("sequence-classification"))
    assert all(weight.grad is None for weight in trained.parameters())
    names = [f"transformer.encoder.layers.0.feed_forward.maps.{one}.weight" for one in (0, 1)]
    first, second = (torch.zeros_like(trained.get_parameter(name)) for name in names)
    for seed in range(2):
        trained.zero_grad()
        loss(trained, seed).backward()
        products = [(one.grad * one).detach().abs() for one in (trained.get_parameter(name) for name in names)]
        first, second = first + products[0], second + products[1]
    for channel in range(CHANNELS):
        mean = float(torch.cat((first[channel], second[:, channel])).mean())
        assert found.scores[1][channel] == pytest.approx(mean, rel=1e-4)


def test_a_model_is_scored_without_dropout() -> None:
    judged = loss_of("sequence-classification")
    found, plain = (first_order(one, [rows(0)], judged) for one in (model(dropout=0.5).train(), model()))
    for mine, its in zip(found.scores, plain.scores, strict=True):
        assert mine.tolist() == its.tolist()


def test_without_what_scores_highest_the_loss_changes_more_than_without_what_scores_lowest() -> None:
    trained, judged = model(), loss_of("sequence-classification")
    order = first_order(trained, [rows(0)], judged).orders()[1]
    whole = loss(trained, 0).item()
    changes = []
    for left_out in (order[: CHANNELS // 4], order[-CHANNELS // 4 :]):
        cut = model()
        with torch.no_grad():
            cut.get_parameter("transformer.encoder.layers.0.feed_forward.maps.1.weight")[:, left_out] = 0.0
        changes.append(abs(loss(cut, 0).item() - whole))
    assert changes[0] > 2 * changes[1]


def test_balanced_scores_are_compared_with_their_own_layer_as_far_as_is_asked() -> None:
    one = np.array([1.0, 2.0, 3.0])
    raw = Importance((one, 100 * one, np.zeros(3)), {"hidden": one})
    for share, ratio in ((0.0, 100.0), (0.5, 10.0), (0.75, 100**0.25), (1.0, 1.0)):
        found = balanced(raw, share)
        assert found.scores[1] / found.scores[0] == pytest.approx(ratio)  # the order within a layer is what it was
        assert found.scores[2].tolist() == [0.0] * 3  # and a layer that is worth nothing stays so
        assert found.through is raw.through
    assert balanced(raw, 1.0).scores[1] == pytest.approx(one / one.mean())


def test_the_hidden_size_is_scored_by_all_that_reads_and_writes_it() -> None:
    """Worked out by hand for every tensor of a small BERT: (axis of the hidden size, of the pooler's outputs)."""
    places = {"mixer.query_key_value": 1, "mixer.output": 0, "feed_forward.maps.0": 1, "feed_forward.maps.1": 0}
    names = {f"encoder.layers.{layer}.{name}.weight": axis for layer in (0, 1) for name, axis in places.items()}
    names |= {f"encoder.embedding.{name}": 1 for name in ("tokens.weight", "positions.table", "types.weight")}
    names |= {"pooler.weight": 1}
    trained = model(of=BERT)
    watched = ImportanceTracker(trained, hidden=True)
    loss(watched, 0).backward()
    weights = dict(trained.named_parameters())
    moves = {name: -(weight.grad * weight.detach()).double() for name, weight in weights.items()}
    sums = [moves[f"transformer.{name}"].sum(1 - axis) for name, axis in names.items()]
    count = sum(weights[f"transformer.{name}"].numel() // 16 for name in names)
    found = watched.importance()
    assert found.through["hidden"] == pytest.approx((torch.stack(sums).sum(0) / count).numpy(), rel=1e-4, abs=1e-8)
    pooled = (moves["transformer.pooler.weight"].sum(1) + moves["head.output.weight"].sum(0)) / (16 + 2)
    assert found.through["pooled"] == pytest.approx(pooled.numpy(), rel=1e-4, abs=1e-8)
    sizes = [weights[f"transformer.{name}"].detach().abs().double().sum(1 - axis) for name, axis in names.items()]
    by_size = magnitude(weights, BERT, SPEC, hidden=True)
    assert by_size.through["hidden"] == pytest.approx((torch.stack(sizes).sum(0) / count).numpy(), rel=1e-4)


def test_scores_of_the_hidden_size_change_no_others() -> None:
    plain, more = ImportanceTracker(model()), ImportanceTracker(model(), hidden=True)
    for watched in (plain, more):
        loss(watched, 0).backward()
    assert not plain.importance().through
    for one, two in zip(plain.importance().scores, more.importance().scores, strict=True):
        assert np.array_equal(one, two)
    assert list(plain.state_dict()) == [name for name in more.state_dict() if name != f"scores_{2 * LAYERS}"]


def test_only_a_pooler_that_is_read_has_scores() -> None:
    for one, spec, wanted in ((BERT, SPEC, True), (BERT, SPANS, False), (VIT, SPEC, False)):
        trained = model(of=one, spec=spec)
        watched = ImportanceTracker(trained, hidden=True)
        watched(*inputs_of(one)).sum().backward()
        for found in (watched.importance(), magnitude(dict(trained.named_parameters()), one, spec, hidden=True)):
            assert found.through["hidden"].shape == (16,)
            assert ("pooled" in found.through) == wanted


@pytest.mark.parametrize("hidden", [False, True])
def test_watching_changes_no_gradient(hidden: bool) -> None:
    one, two = model(), model()
    loss(ImportanceTracker(one, hidden), 0).backward()
    loss(two, 0).backward()
    for mine, theirs in zip(one.parameters(), two.parameters(), strict=True):
        assert (mine.grad is None) == (theirs.grad is None)
        assert mine.grad is None or torch.equal(mine.grad, theirs.grad)


def test_magnitude_is_the_mean_size_of_the_weights_for_every_member() -> None:
    for found in (magnitude(dict(model().named_parameters()), card(), SPEC), uniform(card())):
        assert [len(scores) for scores in found.scores] == [HEADS, CHANNELS] * LAYERS
    weights = dict(model().named_parameters())
    channels = magnitude(weights, card(), SPEC).scores[1]
    first, second = (weights[f"transformer.encoder.layers.0.feed_forward.maps.{one}.weight"] for one in (0, 1))
    assert channels[7] == pytest.approx(float(torch.cat((first[7], second[:, 7])).detach().abs().mean()), rel=1e-5)


def test_orders_fall_and_equal_scores_stay_as_they_stand() -> None:
    for order in uniform(card()).orders():
        assert order.tolist() == list(range(len(order)))
    found = magnitude(dict(model().named_parameters()), card(), SPEC)
    for scores, order in zip(found.scores, found.orders(), strict=True):
        assert np.all(np.diff(scores[order.numpy()]) <= 0)


def test_scores_are_summed_up_on_the_device_of_the_weights() -> None:
    """Seen with the device that computes nothing, which no number can come to from another."""
    trained = model().to("meta")
    watched = ImportanceTracker(trained, hidden=True)
    tokens, mask = (one.to("meta") for one in sentences())
    watched(tokens, mask).sum().backward()
    assert {buffer.device.type for name, buffer in watched.named_buffers() if name.startswith("scores_")} == {"meta"}
    assert _exact(torch.device("mps")) == torch.float32
    assert _exact(torch.device("cuda")) == _exact(torch.device("cpu")) == torch.float64


def random_importance(seed: int, of: Card | None = None, hidden: bool = False) -> Importance:
    rng = derive(seed, "importance")
    scores = tuple(rng.normal(size=group.members) for group in groups(of or card()))
    return Importance(scores, dict(zip(("hidden", "pooled"), rng.normal(size=(2, 16)), strict=True)) if hidden else {})


@pytest.mark.parametrize("seed", range(5))
def test_the_function_stays_what_it_was(seed: int) -> None:
    whole = model(seed)
    weights = dict(whole.named_parameters())
    moved = reordered(weights, card(), random_importance(seed), SPEC)
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


def test_parts_without_scores_stay_as_they_stand() -> None:
    weights = dict(model(of=BERT).named_parameters())
    found = random_importance(3, BERT)
    moved = reordered(weights, BERT, found, SPEC)
    assert torch.equal(
        moved["transformer.encoder.embedding.tokens.weight"], weights["transformer.encoder.embedding.tokens.weight"]
    )
    weights = dict(model(of=BERT).named_parameters())
    scores = random_importance(3, BERT, hidden=True)
    moved = reordered(weights, BERT, Importance(scores.scores, {"hidden": scores.through["hidden"]}), SPEC)
    assert torch.equal(moved["head.output.weight"], weights["head.output.weight"])
    assert not torch.equal(moved["transformer.pooler.weight"], weights["transformer.pooler.weight"])


def test_the_leading_parts_are_the_most_important_ones() -> None:
    weights = dict(model(of=BERT).named_parameters())
    moved = reordered(weights, BERT, magnitude(weights, BERT, SPEC, hidden=True), SPEC)
    found = magnitude(moved, BERT, SPEC, hidden=True)
    for scores in (*found.scores, *found.through.values()):
        assert np.all(np.diff(scores) <= 1e-7)
        assert scores[0] > scores[-1]
    weights = dict(model().named_parameters())
    moved = reordered(weights, card(), magnitude(weights, card(), SPEC), SPEC)
    for scores in magnitude(moved, card(), SPEC).scores:
        assert np.all(np.diff(scores) <= 1e-7)


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


def test_what_is_left_out_last_costs_least() -> None:
    """Parts that do nothing come last, so that a sub-network without them is the model itself."""
    whole = model()
    weights = {name: weight.detach().clone() for name, weight in whole.named_parameters()}
    scores = []
    for group in groups(card(), SPEC):
        idle = derive(group.layer, group.kind).permutation(group.members)[: group.members // 2]
        piece = group.weights[1]  # what reads the part
        piece.apart(weights[piece.name])  # shape check
        mask = torch.ones(group.members)
        mask[idle] = 0
        spread = mask.repeat_interleave(piece.inner)
        weights[piece.name] = weights[piece.name] * spread  # along the last axis
        scores.append(mask.numpy().astype(float))
    whole.load_state_dict(weights)
    moved = reordered(weights, card(), Importance(tuple(scores)), SPEC)
    small = sub_network(card(), ((2, 12),) * 3)
    tokens, sight = sentences()
    views = inherit(moved, card(), small, head=SPEC)
    found = run(skeleton(small, whole.transformer.settings, SPEC).eval(), views, tokens, sight)
    assert torch.allclose(found, whole(tokens, sight), atol=1e-5)
