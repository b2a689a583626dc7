import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from tests.train.toy import Toy, model
from torch import Tensor

from formwright.train import checkpoint
from formwright.train.batch import Batch
from formwright.train.loop import Diverged, Saving, scores_of, train
from formwright.train.losses import loss_of
from formwright.train.recipe import Recipe

LOSS = loss_of("sequence-classification")
RECIPE = Recipe(steps=24, batch=16, learning_rate=3e-3)
ROOT = Path(__file__).parents[2]


def test_training_learns() -> None:
    trained = model()
    losses = train(trained, Toy(), LOSS, Recipe(steps=150, learning_rate=5e-3))
    assert sum(losses[-20:]) < 0.7 * sum(losses[:20])
    trained.eval()
    batch = Toy().batch(10_000)
    assert (scores_of(trained, batch).argmax(-1) == batch.labels).float().mean() > 0.8


def test_the_same_seed_gives_the_same_losses_to_the_last_bit() -> None:
    assert train(model(), Toy(), LOSS, RECIPE) == train(model(), Toy(), LOSS, RECIPE)
    other = Recipe(steps=24, batch=16, learning_rate=3e-3, seed=1)
    assert train(model(), Toy(), LOSS, RECIPE) != train(model(), Toy(), LOSS, other)


def test_accumulation_sums_the_gradients_of_several_batches() -> None:
    seen = []

    class Watched(Toy):
        def batch(self, step: int) -> Batch:
            seen.append(step)
            return super().batch(step)

    train(model(), Watched(), LOSS, Recipe(steps=3, accumulate=2))
    assert seen == [0, 1, 2, 3, 4, 5]


class Stopped(Exception):
    pass


@pytest.mark.parametrize("stop", [1, 5, 6, 17, 23])
def test_an_interrupted_run_goes_on_bit_for_bit(tmp_path: Path, stop: int) -> None:
    whole = model()
    expected = train(whole, Toy(), LOSS, RECIPE)

    def interrupt(step: int, _: float) -> None:
        if step == stop:
            raise Stopped

    with pytest.raises(Stopped):
        train(model(), Toy(), LOSS, RECIPE, Saving(tmp_path, every=5), interrupt)
    resumed = model(seed=9)  # other weights, which the checkpoint replaces, if there is one
    if stop < 5:
        resumed = model()
    assert train(resumed, Toy(), LOSS, RECIPE, Saving(tmp_path, every=5)) == expected
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    first = train(model(), Toy(), LOSS, RECIPE, Saving(tmp_path, every=10))
    steps: list[int] = []
    again = train(model(), Toy(), LOSS, RECIPE, Saving(tmp_path, every=10), lambda step, _: steps.append(step))
    assert again == first
    assert steps == []


def test_divergence_names_the_step() -> None:
    def broken(scores: Tensor, batch: Batch) -> Tensor:
        return LOSS(scores, batch) * float("nan")

    with pytest.raises(Diverged, match="at step 0; lower the learning rate"):
        train(model(), Toy(), broken, RECIPE)


PROGRAM = """
import sys, pathlib
from tests.train.toy import Toy, model
from formwright.train.loop import Saving, train
from formwright.train.losses import loss_of
from formwright.train.recipe import Recipe
losses = train(model(), Toy(), loss_of("sequence-classification"), Recipe(steps=400, learning_rate=3e-3),
               Saving(pathlib.Path(sys.argv[1]), every=7))
print([loss.hex() for loss in losses])
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_killed_process_goes_on_bit_for_bit(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}

    def command(folder: Path) -> list[str]:
        return [sys.executable, "-c", PROGRAM, str(folder)]

    def losses(folder: Path) -> bytes:
        return subprocess.run(command(folder), env=environment, cwd=ROOT, check=True, capture_output=True).stdout

    expected = losses(tmp_path / "whole")
    for attempt in range(3):
        process = subprocess.Popen(command(tmp_path / "killed"), env=environment, cwd=ROOT)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and len(list((tmp_path / "killed").glob("step-*"))) < 2:
            time.sleep(0.05)
        time.sleep(0.1 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert checkpoint.newest(tmp_path / "killed") is not None
    assert losses(tmp_path / "killed") == expected
