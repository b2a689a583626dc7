"""Narrower token tables, fitted to a teacher's."""

import pytest
import torch
from tests.supernet.lessons import CARD, ENDS, MENU, WIDTH, batches, teacher

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.supernet.bases import fit_bases
from formwright.supernet.blockwise import real_tokens
from formwright.supernet.narrow_embedding import fit_embedding
from formwright.train.streams import Batch


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
