"""The super-network of a block: what it draws, what it learns, and how it judges."""

from collections import Counter

import pytest
import torch
from tests.supernet.lessons import ENDS, MENU, WIDTH, bases, batch, batches, teacher

from formwright.space.zoo.chains import Chain, chains
from formwright.supernet.blockwise import BlockNetwork, Lesson, chain_weights, given
from formwright.train.loop import train
from formwright.train.recipe import Recipe

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
    train(found, Sentences(), given, Recipe(60, 6, 3e-3))  # type: ignore[arg-type]
    (after,) = found.losses(alive, held)
    assert after < 0.6 * before


def test_the_teacher_is_neither_learned_nor_saved() -> None:
    found = network()
    assert not any("teacher" in name or "encoder" in name for name in found.state_dict())


def test_the_same_seed_makes_the_same_network() -> None:
    first, second = network().state_dict(), network().state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_weights_of_a_chain_are_its_layers() -> None:
    found = network()
    chain = Chain(MENU.widths[0], ("feed-forward", "attention"))
    weights = chain_weights(found, chain)
    assert len(weights) == 2
    own = found.layer(chain.width, 1, "attention").state_dict()
    assert all(torch.equal(own[name], tensor) for name, tensor in weights[1].items())
