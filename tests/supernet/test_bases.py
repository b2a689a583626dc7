"""Projections between a teacher and narrower students."""

import pytest
import torch
from tests.supernet.lessons import CARD, ENDS, MENU, WIDTH, bases, batch, batches, teacher
from torch.nn import functional as F

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.supernet.bases import fit_bases, fit_embedding, from_tensors, states, to_tensors
from formwright.supernet.blockwise import real_tokens
from formwright.train.streams import Batch

NARROW = [width for width in MENU.sizes if width < WIDTH]


@pytest.mark.parametrize("width", MENU.sizes)
def test_what_is_widened_and_narrowed_is_what_it_was(width: int) -> None:
    for basis in bases(teacher()):
        x = torch.randn(5, width, generator=torch.Generator().manual_seed(0))
        torch.testing.assert_close(basis.narrow(width)(basis.widen(width)(x)), x, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(basis.joint(width, width)(x), x, rtol=1e-3, atol=1e-3)


def test_a_joint_does_what_both_maps_do() -> None:
    basis = bases(teacher())[1]
    x = torch.randn(5, NARROW[0], generator=torch.Generator().manual_seed(0))
    both = basis.narrow(WIDTH)(basis.widen(NARROW[0])(x))
    torch.testing.assert_close(basis.joint(NARROW[0], WIDTH)(x), both)
    assert basis.joint(NARROW[0], NARROW[-1]).weight.shape == (NARROW[-1], NARROW[0])


def test_axes_are_those_of_all_boundaries_together() -> None:
    found = bases(teacher())
    assert all(torch.equal(one.axes, found[0].axes) for one in found)
    torch.testing.assert_close(found[0].axes.T @ found[0].axes, torch.eye(WIDTH), atol=1e-5, rtol=0)
    shares = torch.stack([one.spreads.square() / one.spreads.square().sum() for one in found]).mean(0)
    assert shares.tolist() == sorted(shares.tolist(), reverse=True)


def test_a_boundary_of_large_vectors_does_not_decide_the_axes() -> None:
    model, louder = teacher(), teacher()
    norm = louder.encoder.layers[-1].feed_forward_norm
    with torch.no_grad():
        norm.weight.mul_(100)
        norm.bias.mul_(100)
    plain, loud = bases(model), bases(louder)
    assert loud[-1].variance == pytest.approx(100**2 * plain[-1].variance, rel=1e-3)
    torch.testing.assert_close((plain[0].axes.T @ loud[0].axes).abs(), torch.eye(WIDTH), atol=0.01, rtol=0)


@pytest.mark.parametrize("width", [NARROW[1], WIDTH])
def test_a_norm_hands_on_what_it_gets(width: int) -> None:
    model = teacher()
    basis = bases(model)[1]
    x = basis.narrow(width)(states(model, batch(9), (1,)).real(0))
    scale, shift = basis.norm(width)
    handed_on = scale * F.layer_norm(x, (width,)) + shift
    lost = float((handed_on - x).square().mean() / x.var())
    assert lost < 0.5  # of the variance; a fresh norm loses more where the teacher's vectors are not of spread 1


def test_wider_students_lose_less_and_the_teachers_width_nothing() -> None:
    model = teacher()
    shown = states(model, batch(3), ENDS)
    for number, basis in enumerate(bases(model)):
        lost = [
            float(shown.distance(basis.widen(width)(basis.narrow(width)(shown.hidden[number])), number))
            for width in MENU.sizes
        ]
        assert lost == sorted(lost, reverse=True)
        assert lost[-1] == 0.0
        assert 0 < lost[0] < basis.variance


def test_bases_give_spread_one_and_are_read_as_they_were_written() -> None:
    model = teacher()
    basis = bases(model)[-1]
    seen = torch.cat([basis.narrow(NARROW[0])(states(model, batch(seed), (2,)).real(0)) for seed in range(20)])
    torch.testing.assert_close(seen.mean(0), torch.zeros(NARROW[0]), atol=0.02, rtol=0)
    torch.testing.assert_close(seen.var(0), torch.ones(NARROW[0]), atol=0.05, rtol=0)
    found = bases(teacher())
    again = from_tensors(to_tensors(found))
    assert len(again) == len(found)
    assert all(torch.equal(one.axes, other.axes) for one, other in zip(found, again, strict=True))
    assert [one.variance for one in found] == [other.variance for other in again]


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
    shown = batch(padded=False)
    found = states(teacher(), shown, (1,))
    assert len(found.real(0)) == shown.inputs.numel()
    assert float(found.distance(found.hidden[0] - 1, 0)) == 1.0


def test_the_teachers_own_width_is_the_teachers_own_embedding() -> None:
    model = teacher()
    found = fit_embedding(model, fit_bases(model, batches(10), ENDS)[0], WIDTH, batches(10), batches(2))
    assert found.loss == 0.0
    own = model.encoder.embedding.state_dict()
    assert all(torch.equal(own[name], tensor) for name, tensor in found.weights.items())


@pytest.mark.parametrize(
    "table",
    [
        TokenEmbedding(40, WIDTH, length=12, types=2),
        TokenEmbedding(40, WIDTH, length=12),
        TokenEmbedding(40, WIDTH, positions="none", length=12),
        TokenEmbedding(40, WIDTH, factorised=12, length=12, types=2),
        TokenEmbedding(40, WIDTH, length=12, norm=False),
    ],
)
def test_wider_tables_come_nearer(table: TokenEmbedding) -> None:
    model = teacher(Card(encoder=Stack(table, (Block(WIDTH, Attention(4, 4)),))))
    basis = fit_bases(model, batches(20), (0, 1))[0]
    losses = [fit_embedding(model, basis, width, batches(20), batches(4, 70)).loss for width in MENU.embeddings]
    assert losses[0] > losses[2] > losses[-1]
    assert losses[0] < 1.0  # better than to say the mean
    assert losses[-1] < 0.2


def test_tables_have_the_shapes_of_the_student() -> None:
    model = teacher(CARD)
    found = fit_embedding(model, fit_bases(model, batches(5), ENDS)[0], 4, batches(5), batches(1))
    shapes = {name: tuple(tensor.shape) for name, tensor in found.weights.items()}
    assert shapes == {
        "tokens.weight": (40, 4),
        "positions.table": (12, 4),
        "types.weight": (2, 4),
        "norm.weight": (4,),
        "norm.bias": (4,),
    }


def test_every_real_token_of_the_held_out_text_counts_alike() -> None:
    model = teacher()
    basis = fit_bases(model, batches(10), ENDS)[0]
    long, short = batches(1, 70)[0], batches(1, 71)[0]
    short = Batch(short.inputs[:1, :3], short.targets, None, None)
    short_alone, long_alone, both = (
        fit_embedding(model, basis, 4, batches(10), held).loss for held in ([short], [long], [short, long])
    )
    own, others = real_tokens(short), real_tokens(long)
    assert short_alone != pytest.approx(long_alone)
    assert both == pytest.approx((own * short_alone + others * long_alone) / (own + others))
