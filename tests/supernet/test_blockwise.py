"""The super-network of a block: what it draws, what it learns, and how it judges."""

from collections import Counter

import pytest
import torch
from tests.supernet.lessons import ENDS, MENU, WIDTH, bases, batch, batches, teacher

from formwright.cost import params
from formwright.nn.settings import Settings
from formwright.space.zoo.chains import Chain, chains
from formwright.supernet.bases import states
from formwright.supernet.blockwise import (
    BlockNetwork,
    DistilledStudent,
    Lesson,
    assembled,
    chain_weights,
    given,
    real_tokens,
)
from formwright.supernet.narrow_embedding import fit_embedding
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import train

CHAINS = list(chains(MENU))


def network(alive: list[Chain] | None = None, paths: int = 1, block: int = 1) -> BlockNetwork:
    model = teacher()
    found = bases(model)
    lesson = Lesson(model, (ENDS[block], ENDS[block + 1]), (found[block], found[block + 1]))
    return BlockNetwork(MENU, lesson, alive or CHAINS, paths)


class Sentences:
    """Sentences without end, the same for the same step."""

    def batch(self, step: int) -> object:
        return batch(step)


def test_chains_that_begin_alike_are_judged_as_one_by_one() -> None:
    found, held = network(), [batch(50, rows=2), batch(51, rows=9), batch(52, padded=False)]
    tokens = [int(held[0].mask.sum()), int(held[1].mask.sum()), held[2].inputs.numel()]  # type: ignore[union-attr]
    assert len({*tokens}) == 3
    with torch.no_grad():
        expected = [
            sum(own * float(found.loss(chain, found.shown(shown))) for own, shown in zip(tokens, held, strict=True))
            / sum(tokens)
            for chain in CHAINS[::7]
        ]
    assert found.losses(CHAINS[::7], held) == pytest.approx(expected, rel=1e-5)
    backwards = found.losses(CHAINS[::7][::-1], held)
    assert backwards[::-1] == pytest.approx(expected, rel=1e-5)


def test_a_step_teaches_the_drawn_chain_alone() -> None:
    chain = Chain(MENU.widths[1], ("attention", "separable-3"))
    found = network([chain])
    shown = batch()
    found(shown.inputs, shown.mask, shown.types, None, None, None).backward()
    taught = {name.split(".")[1] for name, weight in found.named_parameters() if weight.grad is not None}
    assert taught == {f"{chain.width}-0-attention", f"{chain.width}-1-separable-3"}


def test_chains_are_drawn_equally_often() -> None:
    alive = CHAINS[:4]
    found, drawn = network(alive, paths=2), Counter[Chain]()
    found.loss = lambda chain, _: drawn.update([chain]) or torch.zeros(())  # type: ignore[method-assign, func-returns-value, assignment]
    torch.manual_seed(0)
    shown = batch()
    for _ in range(200):
        found(shown.inputs, shown.mask, shown.types)
    assert drawn.total() == 400
    assert all(70 < drawn[chain] < 130 for chain in alive)


@pytest.mark.slow
def test_a_block_learns_what_its_teacher_says() -> None:
    alive = [Chain(WIDTH, ("attention", "feed-forward"))]
    found, held = network(alive), batches(3, first=90)
    (before,) = found.losses(alive, held)
    train(found, Sentences(), given, Hyperparameters(60, 6, 3e-3))  # type: ignore[arg-type]
    (after,) = found.losses(alive, held)
    assert after < 0.6 * before


def test_the_teacher_is_neither_learned_nor_saved_and_the_seed_decides() -> None:
    found = network()
    assert not any("teacher" in name or "encoder" in name for name in found.state_dict())
    first, second = network().state_dict(), network().state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_weights_of_a_chain_are_its_layers() -> None:
    found = network()
    chain = Chain(MENU.widths[0], ("feed-forward", "attention"))
    weights = chain_weights(found, chain)
    assert len(weights) == 2
    own = found.layer(chain.width, 1, "attention").state_dict()
    assert all(torch.equal(own[name], tensor) for name, tensor in weights[1].items())


SMALL, MIDDLE = MENU.widths[0], MENU.widths[2]


def student(table: int, *blocks: Chain) -> tuple[DistilledStudent, list[BlockNetwork]]:
    model = teacher()
    found = bases(model)
    networks = [
        BlockNetwork(MENU, Lesson(model, (ENDS[n], ENDS[n + 1]), (found[n], found[n + 1])), blocks, seed=n)
        for n in range(len(blocks))
    ]
    layers = [chain_weights(network, block) for network, block in zip(networks, blocks, strict=True)]
    embedding = fit_embedding(model, found[0], table, batches(10), batches(2)).weights
    whole = assembled(MENU, blocks, embedding, layers, found, Settings(dropout=0.0))
    return DistilledStudent(whole, blocks, model, ENDS, found), networks


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
    assert not taught.model.encoder.projections
    assert taught.model.encoder.embedding.widen is None


@pytest.mark.slow
def test_a_student_comes_nearer_to_its_teacher() -> None:
    blocks = [Chain(WIDTH, ("attention", "feed-forward"))] * 2
    taught, _ = student(WIDTH, *blocks)
    held = batches(3, first=80)
    before = taught.distance(held)
    train(taught, Sentences(), given, Hyperparameters(60, 6, 3e-3))  # type: ignore[arg-type]
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
