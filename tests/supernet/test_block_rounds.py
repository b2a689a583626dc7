"""The training of a block: rounds that drop the worse half, and a resume that comes to the same."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import pytest
from tests.pipeline.block_runs import finished, here, stage

from formwright.space.zoo.chains import REAL, Chain
from formwright.supernet.block_rounds import TABLE, WEIGHTS, BlockRounds, begun_with
from formwright.supernet.blockwise import BlockNetwork
from formwright.supernet.chain_rows import read_rows
from formwright.train.fit import Run
from formwright.train.loop import Diverged, Paused, Saving
from formwright.train.streams import Batch

pytestmark = pytest.mark.slow
STEPS = 4  # of a round


def whole(block: int) -> Path:
    """Give the folder of a block that was trained without a pause."""
    return here(finished(), "blocks").folder / str(block)


def training(folder: Path, block: int = 0) -> BlockRounds:
    """Give the training of the same block in another folder."""
    found: BlockRounds = stage(finished(), "blocks").training(here(finished(), "blocks"), block)
    return replace(found, folder=folder / str(block))


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


def test_the_dropped_are_worse_than_those_that_stay_in_the_mean() -> None:
    rows = [(chain, row) for chain, row in read_rows(whole(1) / "round-1.json") if len(chain.operations) > 1]
    means = {stays: [row["loss"] for _, row in rows if row["stays"] is stays] for stays in (True, False)}
    assert sum(means[True]) / len(means[True]) < sum(means[False]) / len(means[False])


def test_a_block_is_read_as_it_was_trained() -> None:
    trained = finished().artifact(stage(finished(), "blocks"))
    alive = [chain for chain, _ in trained.tables[1]]
    losses = trained.networks[1].losses(alive, trained.source.held_batches(6))
    assert losses == pytest.approx([loss for _, loss in trained.tables[1]], rel=1e-5)


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


def test_a_block_begins_with_all_lengths_evenly() -> None:
    found = [Chain(8, (operation,) * length) for length in (1, 2) for operation in REAL]
    found += [Chain(8, (first, second, REAL[0])) for first in REAL for second in REAL]
    chosen = begun_with(found, 15, 0)
    lengths = [len(chain.operations) for chain in chosen]
    assert [lengths.count(length) for length in (1, 2, 3)] == [5, 5, 5]
    assert begun_with(found, 15, 0) == chosen != begun_with(found, 15, 1)
    assert begun_with(found, 1000, 0) == found
