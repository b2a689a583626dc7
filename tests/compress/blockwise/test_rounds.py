"""The training of a block: rounds that drop the worse half, and a resume that comes to the same."""

import shutil
from pathlib import Path

import pytest
from tests.compress.blockwise.small import PLAN, job, prepared

from formwright.compress.blockwise.choices import Selection
from formwright.compress.blockwise.prepared import read_tensors
from formwright.compress.blockwise.rounds import begun_with, read_rows, restored
from formwright.core.errors import IllegalInput
from formwright.space.zoo.chains import REAL, Chain
from formwright.train.fit import Run
from formwright.train.loop import Paused, Saving

pytestmark = pytest.mark.slow


def test_a_round_drops_the_worse_half_of_alike_chains(whole: Selection) -> None:
    folders, method = whole.folders, whole.started.job.method
    alive = len(read_rows(folders.round(0, 1)))
    assert alive == method.candidates
    for number in (1, 2):
        rows = read_rows(folders.round(0, number))
        assert len(rows) == alive
        stay = [row for _, row in rows if row["stays"]]
        alive = len(stay)
        assert alive < len(rows)
    table = read_rows(folders.table(0))
    assert len(table) == alive
    assert {chain for chain, _ in table} >= {
        chain for chain, _ in read_rows(folders.round(0, 1)) if len(chain.operations) == 1
    }
    assert not folders.checkpoints("block-0").exists()


def test_the_dropped_are_worse_than_those_that_stay_in_the_mean(whole: Selection) -> None:
    rows = [(chain, row) for chain, row in read_rows(whole.folders.round(1, 1)) if len(chain.operations) > 1]
    means = {stays: [row["loss"] for _, row in rows if row["stays"] is stays] for stays in (True, False)}
    assert sum(means[True]) / len(means[True]) < sum(means[False]) / len(means[False])


def test_a_block_is_read_as_it_was_trained(whole: Selection) -> None:
    rows = read_rows(whole.folders.table(1))
    alive = [chain for chain, _ in rows]
    network = restored(whole.training(1), read_tensors(whole.folders.weights(1)), alive)
    losses = network.losses(alive, whole.started.held_batches(6))
    assert losses == pytest.approx([row["loss"] for _, row in rows], rel=1e-5)


@pytest.mark.parametrize("step", [1, 4, 7])  # within a round, at its end, and in a later one
def test_a_paused_block_comes_to_the_same(whole: Selection, tmp_path: Path, step: int) -> None:
    selection = prepared(
        job(tmp_path, model=whole.started.job.model, text=whole.started.job.text).started(), tmp_path / "o"
    )
    training, saving = selection.training(0), Saving(selection.folders.checkpoints("block-0"), 2)

    def pause(number: int, _: float) -> None:
        if number == step:
            raise Paused

    with pytest.raises(Paused):
        training.run(Run(saving, after_step=pause))
    done: list[int] = []
    training.run(Run(saving, after_step=lambda number, _: done.append(number)))
    assert done == list(range(step + 1, training.steps))
    for path in (selection.folders.table, selection.folders.weights):
        assert (
            path(0).read_bytes() == Path(str(path(0)).replace(str(tmp_path / "o"), str(whole.folders.out))).read_bytes()
        )
    training.run(Run(saving, after_step=lambda *_: pytest.fail("it was done before")))


def test_a_round_that_was_removed_is_noticed(whole: Selection, tmp_path: Path) -> None:
    selection = prepared(
        job(tmp_path, model=whole.started.job.model, text=whole.started.job.text).started(), tmp_path / "o"
    )
    training, saving = selection.training(0), Saving(selection.folders.checkpoints("block-0"), 1)

    def pause(number: int, _: float) -> None:
        if number == PLAN.round_steps + 1:
            raise Paused

    with pytest.raises(Paused):
        training.run(Run(saving, after_step=pause))
    shutil.rmtree(selection.folders.round(0, 1).parent)
    with pytest.raises(IllegalInput, match=r"round-1\.json is missing.*--force"):
        training.run(Run(saving))


def test_a_block_begins_with_all_lengths_evenly() -> None:
    found = [Chain(8, (operation,) * length) for length in (1, 2) for operation in REAL]
    found += [Chain(8, (first, second, REAL[0])) for first in REAL for second in REAL]
    chosen = begun_with(found, 15, 0)
    lengths = [len(chain.operations) for chain in chosen]
    assert [lengths.count(length) for length in (1, 2, 3)] == [5, 5, 5]
    assert begun_with(found, 15, 0) == chosen != begun_with(found, 15, 1)
    assert begun_with(found, 1000, 0) == found
