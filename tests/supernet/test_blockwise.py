"""The super-network of a block: what it draws, what it learns, and how it judges."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import pytest
import torch
from tests.pipeline.block_runs import finished, here, stage
from tests.supernet.lessons import ENDS, MENU, WIDTH, bases, batch, batches, teacher

from formwright.core.errors import IllegalInput
from formwright.core.files import write_json
from formwright.cost import params
from formwright.nn.settings import Settings
from formwright.space.zoo.chains import REAL, Chain, chains
from formwright.supernet.bases import States, fit_embedding, states
from formwright.supernet.blockwise import (
    TABLE,
    WEIGHTS,
    BlockNetwork,
    BlockRounds,
    BlockTarget,
    DistilledStudent,
    assembled,
    chain_weights,
    first_chains,
    given,
    real_tokens,
)
from formwright.supernet.chain_rows import plain_row, read_rows, rows_or_none
from formwright.train.fit import Run
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import Diverged, Paused, Saving, train
from formwright.train.streams import Batch

CHAINS = list(chains(MENU))


def network(alive: list[Chain] | None = None, paths: int = 1, block: int = 1) -> BlockNetwork:
    model = teacher()
    found = bases(model)
    target = BlockTarget(model, (ENDS[block], ENDS[block + 1]), (found[block], found[block + 1]))
    return BlockNetwork(MENU, target, alive or CHAINS, paths)


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
    taught = {name.removeprefix("weights.") for name, weight in found.named_parameters() if weight.grad is not None}
    assert taught == {*found.stored(chain.width, 0, "attention"), *found.stored(chain.width, 1, "separable-3")}
    others = {*found.stored(chain.width, 1, "separable-5"), *found.stored(MENU.widths[0], 0, "attention")}
    assert not taught & others


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
    own = found.layer(chain.width, 1, "attention").weights
    assert all(torch.equal(own[name], tensor) for name, tensor in weights[1].items())


SMALL, MIDDLE = MENU.widths[0], MENU.widths[2]


def student(table: int, *blocks: Chain) -> tuple[DistilledStudent, list[BlockNetwork]]:
    model = teacher()
    found = bases(model)
    networks = [
        BlockNetwork(MENU, BlockTarget(model, (ENDS[n], ENDS[n + 1]), (found[n], found[n + 1])), blocks, seed=n)
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
            x = network.through(x, block.width, place, operation, States((), context))
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


STEPS = 4  # of a round


def whole(block: int) -> Path:
    """Give the folder of a block that was trained without a pause."""
    return here(finished(), "blocks").folder / str(block)


def training(folder: Path, block: int = 0) -> BlockRounds:
    """Give the training of the same block in another folder."""
    found: BlockRounds = stage(finished(), "blocks").training(here(finished(), "blocks"), block)
    return replace(found, folder=folder / str(block))


@pytest.mark.slow
def test_a_round_drops_the_worse_half_of_alike_chains() -> None:
    alive = len(read_rows(whole(0) / "round-1.json"))
    assert alive == stage(finished(), "blocks").candidates
    for number in (1, 2):
        rows = read_rows(whole(0) / f"round-{number}.json")
        assert len(rows) == alive
        alive = sum(row["stays"] for _, row in rows)
        assert alive < len(rows)
    table = read_rows(whole(0) / TABLE)
    assert len(table) == alive
    begun = [chain for chain, _ in read_rows(whole(0) / "round-1.json")]
    assert {chain for chain, _ in table} >= {chain for chain in begun if len(chain.operations) == 1}


@pytest.mark.slow
def test_the_dropped_are_worse_than_those_that_stay_in_the_mean() -> None:
    rows = [(chain, row) for chain, row in read_rows(whole(1) / "round-1.json") if len(chain.operations) > 1]
    means = {stays: [row["loss"] for _, row in rows if row["stays"] is stays] for stays in (True, False)}
    assert sum(means[True]) / len(means[True]) < sum(means[False]) / len(means[False])


@pytest.mark.slow
def test_a_block_is_read_as_it_was_trained() -> None:
    trained = finished().artifact(stage(finished(), "blocks"))
    alive = [chain for chain, _ in trained.tables[1]]
    network = trained.networks[1]
    losses = network.losses(alive, trained.source.held_batches(6))
    assert losses == pytest.approx([loss for _, loss in trained.tables[1]], rel=1e-5)
    layers = {(chain.width, *layer) for chain in alive for layer in enumerate(chain.operations)}
    assert network.weights.library.tensors.keys() == {name for layer in layers for name in network.stored(*layer)}


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 4, 7])  # within a round, at its end, and in a later one
def test_a_paused_block_comes_to_the_same(tmp_path: Path, step: int) -> None:
    block, saving = training(tmp_path), Saving(tmp_path / "saved", 2)

    def pause(number: int, _: float) -> None:
        if number == step:
            raise Paused

    with pytest.raises(Paused):
        block(Run(saving, after_step=pause))
    done: list[int] = []
    block(Run(saving, after_step=lambda number, _: done.append(number)))
    assert done == list(range(step + 1, 3 * STEPS))
    for name in (TABLE, WEIGHTS):
        assert (tmp_path / "0" / name).read_bytes() == (whole(0) / name).read_bytes()
    block(Run(saving, after_step=lambda *_: pytest.fail("it was done before")))


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [None, pytest.param(b"{", marks=pytest.mark.long)])
def test_a_block_whose_round_was_lost_is_trained_from_the_start(tmp_path: Path, damaged: bytes | None) -> None:
    block, saving = training(tmp_path), Saving(tmp_path / "saved", 1)

    def pause(number: int, _: float) -> None:
        if number == STEPS + 1:
            raise Paused

    with pytest.raises(Paused):
        block(Run(saving, after_step=pause))
    path = tmp_path / "0" / "round-1.json"
    path.unlink()
    if damaged is not None:
        path.write_bytes(damaged)
    done: list[int] = []
    block(Run(saving, after_step=lambda number, _: done.append(number)))
    assert done == list(range(3 * STEPS))
    assert (tmp_path / "0" / TABLE).read_bytes() == (whole(0) / TABLE).read_bytes()


@pytest.mark.slow
def test_chains_whose_loss_is_not_finite_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge, lost = BlockNetwork.losses, ("attention",)

    def losses(network: BlockNetwork, alive: Sequence[Chain], batches: Iterable[Batch]) -> list[float]:
        found = judge(network, alive, batches)
        return [nan if chain.operations == lost else loss for chain, loss in zip(alive, found, strict=True)]

    monkeypatch.setattr(BlockNetwork, "losses", losses)
    training(tmp_path)(Run())
    first = read_rows(tmp_path / "0" / "round-1.json")
    assert [(row["loss"], row["stays"]) for chain, row in first if chain.operations == lost] == [(None, False)] * 5
    left = [chain for chain, _ in read_rows(tmp_path / "0" / TABLE)]
    assert left
    assert not any(chain.operations == lost for chain in left)
    monkeypatch.setattr(BlockNetwork, "losses", lambda _, alive, __: [inf] * len(alive))
    with pytest.raises(Diverged, match=r"block 1 .*0\.003"):
        training(tmp_path, 1)(Run())


@pytest.mark.slow
def test_a_block_begins_with_all_lengths_evenly() -> None:
    found = [Chain(8, (operation,) * length) for length in (1, 2) for operation in REAL]
    found += [Chain(8, (first, second, REAL[0])) for first in REAL for second in REAL]
    chosen = first_chains(found, 15, 0)
    lengths = [len(chain.operations) for chain in chosen]
    assert [lengths.count(length) for length in (1, 2, 3)] == [5, 5, 5]
    assert first_chains(found, 15, 0) == chosen != first_chains(found, 15, 1)
    assert first_chains(found, 1000, 0) == found


CHAIN = Chain(8, ("attention", "separable-3"))


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_json(tmp_path / "rows.json", [{**plain_row(CHAIN, 0.5), "stays": True}])
    ((chain, row),) = read_rows(tmp_path / "rows.json")
    assert chain == CHAIN
    assert (row["loss"], row["stays"]) == (0.5, True)


@pytest.mark.parametrize("loss", [nan, inf])
def test_a_loss_that_is_no_number_is_nothing_in_json(loss: float) -> None:
    assert json.loads(json.dumps(plain_row(CHAIN, loss), allow_nan=False))["loss"] is None


@pytest.mark.parametrize("content", [None, "[{", "[{}]", "[]", "{}", "3", '[{"width": 8}]'])
def test_what_is_missing_or_damaged_has_no_rows(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "rows.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert rows_or_none(path) is None
    with pytest.raises(IllegalInput, match="its stage runs again"):
        read_rows(path)
