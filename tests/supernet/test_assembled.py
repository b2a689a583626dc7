"""Whole students out of blocks: they say what their blocks say one after the other."""

import pytest
import torch
from tests.supernet.lessons import ENDS, MENU, WIDTH, bases, batch, batches, teacher
from tests.supernet.test_blockwise import Sentences

from formwright.cost import params
from formwright.nn.settings import Settings
from formwright.space.zoo.chains import Chain
from formwright.supernet.assembled import Taught, assembled
from formwright.supernet.blockwise import BlockNetwork, Lesson, chain_weights, given, real_tokens
from formwright.supernet.narrow_embedding import fit_embedding
from formwright.supernet.teacher_states import states
from formwright.train.loop import train
from formwright.train.recipe import Recipe

SMALL, MIDDLE = MENU.widths[0], MENU.widths[2]


def student(table: int, *blocks: Chain) -> tuple[Taught, list[BlockNetwork]]:
    model = teacher()
    found = bases(model)
    networks = [
        BlockNetwork(MENU, Lesson(model, (ENDS[n], ENDS[n + 1]), (found[n], found[n + 1])), blocks, seed=n)
        for n in range(len(blocks))
    ]
    layers = [chain_weights(network, block) for network, block in zip(networks, blocks, strict=True)]
    embedding = fit_embedding(model, found[0], table, batches(10), batches(2)).weights
    whole = assembled(MENU, blocks, embedding, layers, found, Settings(dropout=0.0))
    return Taught(whole, blocks, model, ENDS, found), networks


@pytest.mark.parametrize(
    ("table", "widths"),
    [(SMALL, (SMALL, SMALL)), (SMALL, (MIDDLE, SMALL)), (WIDTH, (WIDTH, MIDDLE)), (WIDTH, (WIDTH, WIDTH))],
)
def test_a_student_says_what_its_blocks_say_one_after_the_other(table: int, widths: tuple[int, int]) -> None:
    blocks = [Chain(widths[0], ("attention",)), Chain(widths[1], ("separable-3", "feed-forward"))]
    taught, networks = student(table, *blocks)
    found, shown = bases(teacher()), batch(7)
    said = taught.model(shown.inputs, shown.mask, shown.types).layers
    context = states(teacher(), shown, (0,)).context
    x = taught.model.encoder.embedding(shown.inputs, context, shown.types)  # type: ignore[union-attr]
    for number, (network, block) in enumerate(zip(networks, blocks, strict=True)):
        if number and blocks[number - 1].width != block.width:
            x = found[number].narrow(block.width)(found[number].widen(blocks[number - 1].width)(x))
        for place, operation in enumerate(block.operations):
            x = network.layer(block.width, place, operation)(x, context)
    torch.testing.assert_close(said[-1], x, rtol=1e-3, atol=1e-3)
    assert sum(one.numel() for one in taught.model.parameters()) == params(taught.model.card)


def test_blocks_of_one_width_need_no_map() -> None:
    blocks = [Chain(SMALL, ("attention",)), Chain(SMALL, ("attention",))]
    taught, _ = student(SMALL, *blocks)
    assert taught.model.encoder is not None
    assert not taught.model.encoder.projections
    assert taught.model.encoder.embedding.widen is None


@pytest.mark.slow
def test_a_student_comes_nearer_to_its_teacher() -> None:
    blocks = [Chain(WIDTH, ("attention", "feed-forward"))] * 2
    taught, _ = student(WIDTH, *blocks)
    held = batches(3, first=80)
    before = taught.distance(held)
    train(taught, Sentences(), given, Recipe(60, 6, 3e-3))  # type: ignore[arg-type]
    assert taught.distance(held) < 0.7 * before


@torch.no_grad()
def test_the_distance_is_that_of_the_last_block() -> None:
    taught, _ = student(SMALL, Chain(MIDDLE, ("attention",)), Chain(SMALL, ("attention",)))
    shown = batch(5)
    losses = taught.losses(shown)
    assert len(losses) == 2
    assert taught.distance([shown]) == pytest.approx(float(losses[-1]))
    more = batch(6, rows=1)
    both = torch.cat([torch.tensor([float(taught.losses(one)[-1])]).expand(real_tokens(one)) for one in (shown, more)])
    assert taught.distance([shown, more]) == pytest.approx(float(both.mean()))  # every token alike
    mean = float(taught(shown.inputs, shown.mask, shown.types))
    assert mean == pytest.approx(float(sum(losses)) / 2)
