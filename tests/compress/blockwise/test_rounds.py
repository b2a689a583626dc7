"""The training of a block: rounds that drop the worse half, and a resume that comes to the same."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import pytest
from tests.compress.blockwise.small import PLAN, job, prepared

from formwright.compress.blockwise.choices import Selection
from formwright.compress.blockwise.folders import Folders
from formwright.compress.blockwise.prepared import read_tensors
from formwright.compress.blockwise.rounds import begun_with, restored
from formwright.compress.blockwise.rows import read_rows
from formwright.space.zoo.chains import REAL, Chain
from formwright.supernet.blockwise import BlockNetwork
from formwright.train.batch import Batch
from formwright.train.fit import Run
from formwright.train.loop import Diverged, Paused, Saving

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


@pytest.mark.long
@pytest.mark.parametrize("damaged", [None, b"{"])
def test_a_block_whose_round_was_lost_is_trained_anew(whole: Selection, tmp_path: Path, damaged: bytes | None) -> None:
    selection = prepared(
        job(tmp_path, model=whole.started.job.model, text=whole.started.job.text).started(), tmp_path / "o"
    )
    training, saving = selection.training(0), Saving(selection.folders.checkpoints("block-0"), 1)

    def pause(number: int, _: float) -> None:
        if number == PLAN.round_steps + 1:
            raise Paused

    with pytest.raises(Paused):
        training.run(Run(saving, after_step=pause))
    path = selection.folders.round(0, 1)
    path.unlink()
    if damaged is not None:
        path.write_bytes(damaged)
    done: list[int] = []
    training.run(Run(saving, after_step=lambda number, _: done.append(number)))
    assert done == list(range(training.steps))
    assert selection.folders.table(0).read_bytes() == whole.folders.table(0).read_bytes()


@pytest.mark.parametrize("path", [Folders.table, Folders.weights])
def test_a_finished_block_whose_file_was_damaged_is_trained_anew_alone(
    whole: Selection, tmp_path: Path, path: Callable[[Folders, int], Path]
) -> None:
    shutil.copytree(whole.folders.out, tmp_path / "o")
    folders = Folders(tmp_path / "o")
    before = path(folders, 0).read_bytes()
    path(folders, 0).write_bytes(before[:-9])
    done: list[int] = []
    for block in range(2):
        training = replace(whole, folders=folders).training(block)
        training.run(Run(after_step=lambda *_, block=block: done.append(block)))  # type: ignore[misc]
    assert done == [0] * training.steps
    assert path(folders, 0).read_bytes() == before


def test_chains_whose_loss_is_no_number_are_dropped(
    whole: Selection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    selection = prepared(
        job(tmp_path, model=whole.started.job.model, text=whole.started.job.text).started(), tmp_path / "o"
    )
    judge = BlockNetwork.losses
    lost = ("attention",)

    def losses(network: BlockNetwork, alive: Sequence[Chain], batches: Iterable[Batch]) -> list[float]:
        found = judge(network, alive, batches)
        return [nan if chain.operations == lost else loss for chain, loss in zip(alive, found, strict=True)]

    monkeypatch.setattr(BlockNetwork, "losses", losses)
    selection.training(0).run(Run())
    first = read_rows(selection.folders.round(0, 1))
    assert [(row["loss"], row["stays"]) for chain, row in first if chain.operations == lost] == [(None, False)] * 5
    left = [chain for chain, _ in read_rows(selection.folders.table(0))]
    assert left
    assert not any(chain.operations == lost for chain in left)
    monkeypatch.setattr(BlockNetwork, "losses", lambda _, alive, __: [inf] * len(alive))
    with pytest.raises(Diverged, match=r"no chain of block 1 answers .* lower --learning-rate \(0\.003\)"):
        selection.training(1).run(Run())


def test_a_block_begins_with_all_lengths_evenly() -> None:
    found = [Chain(8, (operation,) * length) for length in (1, 2) for operation in REAL]
    found += [Chain(8, (first, second, REAL[0])) for first in REAL for second in REAL]
    chosen = begun_with(found, 15, 0)
    lengths = [len(chain.operations) for chain in chosen]
    assert [lengths.count(length) for length in (1, 2, 3)] == [5, 5, 5]
    assert begun_with(found, 15, 0) == chosen != begun_with(found, 15, 1)
    assert begun_with(found, 1000, 0) == found
