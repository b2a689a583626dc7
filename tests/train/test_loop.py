import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from tests.train.cases import TOY_CARD as CARD
from tests.train.cases import Toy
from tests.train.cases import toy_model as model
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Stack
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.nn.build import build
from formwright.nn.settings import Settings
from formwright.train import checkpoint
from formwright.train.checkpoint import Checkpoint
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import Diverged, OutOfMemory, Paused, Saving, State, begin, go_on, scores_of, train
from formwright.train.losses import loss_of
from formwright.train.streams import Batch, Stream

LOSS = loss_of("sequence-classification")
RECIPE = Hyperparameters(steps=24, batch=16, learning_rate=3e-3)
ROOT = Path(__file__).parents[2]


def without_dropout() -> nn.Module:
    return build(CARD, Settings(dropout=0.0), HeadSpec("sequence-classification", 2), spread="width")


def same(first: nn.Module, second: nn.Module) -> bool:
    return all(torch.equal(one, two) for one, two in zip(first.parameters(), second.parameters(), strict=True))


def test_training_learns_and_the_seed_decides() -> None:
    trained = model()
    losses = train(trained, Toy(), LOSS, Hyperparameters(steps=150, learning_rate=5e-3))
    assert sum(losses[-20:]) < 0.7 * sum(losses[:20])
    trained.eval()
    batch = Toy().batch(10_000)
    assert (scores_of(trained, batch).argmax(-1) == batch.labels).float().mean() > 0.8
    assert train(model(), Toy(), LOSS, RECIPE) == train(model(), Toy(), LOSS, RECIPE)
    other = Hyperparameters(steps=24, batch=16, learning_rate=3e-3, seed=1)
    assert train(model(), Toy(), LOSS, RECIPE) != train(model(), Toy(), LOSS, other)


def test_each_part_of_an_accumulated_step_has_a_batch_of_its_own() -> None:
    seen = []

    class Watched(Toy):
        def batch(self, step: int) -> Batch:
            seen.append(step)
            return super().batch(step)

    train(model(), Watched(), LOSS, Hyperparameters(steps=3, accumulate=2))
    assert seen == [0, 1, 2, 3, 4, 5]


class Stopped(Exception):
    pass


def stops(after: int, error: type[Exception]) -> Callable[[int, float], None]:
    """Raise an error after a number of steps."""

    def call(step: int, _: float) -> None:
        if step == after - 1:
            raise error

    return call


@pytest.mark.parametrize(
    ("after", "error", "every", "saved"),
    [(2, Stopped, 5, 0), (6, Stopped, 5, 5), (18, Stopped, 5, 15), (24, Stopped, 5, 20)]
    + [(after, Paused, 0, after) for after in (1, 6, 24)],  # a pause is saved where it was left
)
def test_an_interrupted_run_goes_on_bit_for_bit(tmp_path, after, error, every, saved) -> None:
    whole, saving = model(), Saving(tmp_path, every)
    expected = train(whole, Toy(), LOSS, RECIPE)
    with pytest.raises(error):
        train(model(), Toy(), LOSS, RECIPE, saving, stops(after, error))
    assert checkpoint.newest_step(tmp_path) == saved
    resumed = model(seed=9 if saved else 0)  # other weights, which the checkpoint replaces
    assert train(resumed, Toy(), LOSS, RECIPE, saving) == expected
    assert same(whole, resumed)
    steps: list[int] = []
    again = train(model(), Toy(), LOSS, RECIPE, saving, lambda step, _: steps.append(step))
    assert (again, steps) == (expected, [])  # a finished run is not trained again


def test_a_pause_needs_no_folder() -> None:
    with pytest.raises(Paused):
        train(model(), Toy(), LOSS, RECIPE, None, stops(1, Paused))


@pytest.mark.parametrize(("every", "until", "expected"), [(5, 10, [5, 10]), (5, 12, [5, 10, 12]), (0, 10, [10])])
def test_no_step_is_saved_twice(tmp_path, monkeypatch, every, until, expected) -> None:
    written: list[int] = []
    monkeypatch.setattr(checkpoint, "write", lambda _, found: written.append(found.step))
    train(model(), Toy(), LOSS, RECIPE, Saving(tmp_path, every), until=until)
    assert written == expected


def test_the_seconds_of_a_run_in_parts_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(step=2)  # every look at it is two seconds after the one before
    monkeypatch.setattr("formwright.train.loop.time.perf_counter", lambda: next(clock))
    told = []
    for stop in (3, 10):
        state = begin(model(), RECIPE, Saving(tmp_path))
        go_on(state, Toy(), LOSS, Saving(tmp_path), until=stop)
        told.append(state.seconds)
    assert (told, checkpoint.newest(tmp_path).facts["seconds"]) == ([6, 20], 20)


def test_divergence_names_the_step() -> None:
    with pytest.raises(Diverged, match="at step 0; lower the learning rate"):
        train(model(), Toy(), lambda scores, batch: LOSS(scores, batch) * float("nan"), RECIPE)

    def broken(scores: Tensor, batch: Batch) -> Tensor:
        # the root of 0 is a number, its slope is not
        return LOSS(scores, batch) + ((scores - scores.detach()) ** 2).sum().sqrt()

    net = model()
    with pytest.raises(Diverged, match="the size of the gradient is nan at step 0; lower the learning rate"):
        train(net, Toy(), broken, RECIPE)
    assert all(parameter.isfinite().all() for parameter in net.parameters())


class Failing(Toy):
    """Fail at the fourth step."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def batch(self, step: int) -> Batch:
        if step == 3:
            raise self.error
        return super().batch(step)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes. Error code 12"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        MemoryError(),
    ],
)
def test_a_lack_of_memory_names_the_step_and_a_way_out(error: Exception) -> None:
    with pytest.raises(OutOfMemory, match="at step 3; try a batch smaller than 16") as caught:
        train(model(), Failing(error), LOSS, RECIPE)
    assert caught.value.__cause__ is error
    assert isinstance(caught.value, EvaluationFailed)


def test_other_errors_pass_and_savings_are_checked() -> None:
    with pytest.raises(RuntimeError, match="shapes differ"):
        train(model(), Failing(RuntimeError("shapes differ")), LOSS, RECIPE)
    with pytest.raises(IllegalInput, match="not -1"):
        Saving(Path(), -1)


@pytest.mark.parametrize("stops", [[0], [1], [7], [4, 4, 12], [24], [99]])
def test_a_run_in_parts_is_the_run_in_one(tmp_path: Path, stops: list[int]) -> None:
    whole, parts = model(), model()
    expected = train(whole, Toy(), LOSS, RECIPE)
    for stop in stops:
        parts = model() if checkpoint.newest(tmp_path) is None else model(seed=9)
        assert train(parts, Toy(), LOSS, RECIPE, Saving(tmp_path), until=stop) == expected[:stop]
        found = checkpoint.newest(tmp_path)
        assert (found.step if found else 0) == min(stop, 24)
    last = model(seed=9) if checkpoint.newest(tmp_path) else model()
    assert train(last, Toy(), LOSS, RECIPE, Saving(tmp_path)) == expected
    assert same(whole, last)


@pytest.mark.parametrize("file", ["tensors.safetensors", "facts.json"])
def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one(tmp_path: Path, file: str) -> None:
    whole, resumed = model(), model(seed=9)
    expected = train(whole, Toy(), LOSS, RECIPE)
    train(model(), Toy(), LOSS, RECIPE, Saving(tmp_path, every=4), until=12)
    damaged = sorted(tmp_path.iterdir())[-1] / file
    damaged.write_bytes(damaged.read_bytes()[:-20])
    steps: list[int] = []
    losses = train(resumed, Toy(), LOSS, RECIPE, Saving(tmp_path), lambda step, _: steps.append(step))
    assert (steps[0], losses) == (8, expected)
    assert same(whole, resumed)


def test_two_batches_accumulated_are_one_twice_as_large() -> None:
    class Double(Toy):
        def batch(self, step: int) -> Batch:
            halves = [super(Double, self).batch(2 * step + half) for half in (0, 1)]
            return Batch(*(torch.cat([getattr(half, name) for half in halves]) for name in ("inputs", "labels")))

    def gradients(stream: Stream, accumulate: int) -> list[Tensor]:
        net = without_dropout()
        train(net, stream, LOSS, Hyperparameters(steps=1, batch=16, clip=1e9, accumulate=accumulate))
        return [parameter.grad for parameter in net.parameters() if parameter.grad is not None]

    pairs = list(zip(gradients(Toy(), 2), gradients(Double(), 1), strict=True))
    assert pairs
    assert all(torch.allclose(one, other, rtol=1e-4, atol=1e-7) for one, other in pairs)
    assert max(float(one.abs().max()) for one, _ in pairs) > 1e-3


def test_the_gradient_is_clipped() -> None:
    net = without_dropout()
    train(net, Toy(), lambda scores, batch: 1e3 * LOSS(scores, batch), Hyperparameters(steps=1, clip=0.25))
    squares = [parameter.grad.square().sum() for parameter in net.parameters() if parameter.grad is not None]
    assert float(torch.stack(squares).sum().sqrt()) == pytest.approx(0.25, rel=1e-3)


def test_weights_decay_and_biases_and_norms_do_not() -> None:
    net, recipe = without_dropout(), Hyperparameters(steps=1, learning_rate=0.1, warmup=0.0, weight_decay=0.5)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(1.0)  # so that all could decay
    before = {name: parameter.detach().clone() for name, parameter in net.named_parameters()}
    train(net, Toy(), lambda scores, _: 0.0 * scores.sum(), recipe)  # no gradient moves anything
    matrices = {name for name, parameter in net.named_parameters() if parameter.ndim > 1}
    assert {name for name in before if name.endswith("norm.weight") or name.endswith("bias")} == set(before) - matrices
    for name, parameter in net.named_parameters():
        wanted = before[name] * (1 - recipe.rate(0) * 0.5) if name in matrices else before[name]
        torch.testing.assert_close(parameter.detach(), wanted)


PROGRAM = """
import sys, pathlib, time
from tests.train.cases import Toy
from tests.train.cases import toy_model as model
from formwright.train.loop import Saving, train
from formwright.train.losses import loss_of
from formwright.train.hyperparameters import Hyperparameters
losses = train(model(), Toy(), loss_of("sequence-classification"), Hyperparameters(steps=400, learning_rate=3e-3),
               Saving(pathlib.Path(sys.argv[1]), every=7), lambda *_: time.sleep(float(sys.argv[2])))
print([loss.hex() for loss in losses])
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.long
def test_a_killed_process_goes_on_bit_for_bit(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}

    def command(folder: Path, pause: float = 0.0) -> list[str]:
        return [sys.executable, "-c", PROGRAM, str(folder), str(pause)]

    def losses(folder: Path) -> bytes:
        return subprocess.run(command(folder), env=environment, cwd=ROOT, check=True, capture_output=True).stdout

    expected = losses(tmp_path / "whole")
    for attempt in range(3):
        before = checkpoint.newest_step(tmp_path / "killed")
        # with a pause after each step it would go on for far longer than it is let
        process = subprocess.Popen(command(tmp_path / "killed", 0.03), env=environment, cwd=ROOT)
        deadline = time.monotonic() + 60
        while checkpoint.newest_step(tmp_path / "killed") == before:
            assert time.monotonic() < deadline, "no step was saved"
            time.sleep(0.02)
        time.sleep(0.1 * attempt)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert 0 < checkpoint.newest_step(tmp_path / "killed") < 400
    assert losses(tmp_path / "killed") == expected


def state(net: nn.Module, recipe: Hyperparameters = RECIPE) -> State:
    return State(net, torch.optim.AdamW(net.parameters(), fused=True), recipe)


def trained(folder: Path, net: nn.Module | None = None) -> Checkpoint:
    train(net or model(), Toy(), LOSS, RECIPE, Saving(folder), until=3)
    return checkpoint.newest(folder)


def deeper(layers: int) -> nn.Module:
    card = Card(encoder=Stack(CARD.encoder.embedding, CARD.encoder.layers * layers))
    return build(card, head=HeadSpec("sequence-classification", 2))


def test_what_a_checkpoint_holds_comes_back(tmp_path: Path) -> None:
    before = state(model())
    before.restore(trained(tmp_path))
    before.judged = [(1, 0.1), (3, 1 / 3)]
    before.best = {"head.output.bias": torch.tensor([1.5, -2.0])}
    before.seconds = 2.5
    checkpoint.write(tmp_path / "changed", before.checkpoint())
    found = checkpoint.newest(tmp_path / "changed")
    after = state(model(seed=5))
    after.restore(found)
    assert (after.losses, after.judged) == (before.losses, before.judged)
    assert (after.seconds, after.saved) == (2.5, 3)
    assert torch.equal(after.best["head.output.bias"], before.best["head.output.bias"])
    for one, other in zip(before.parameters, after.parameters, strict=True):
        assert torch.equal(one, other)
        moments, others = before.optimiser.state[one], after.optimiser.state[other]
        assert moments.keys() == others.keys() == {"step", "exp_avg", "exp_avg_sq"}
        assert all(torch.equal(moments[key], others[key]) for key in moments)
        assert all(moment.device == other.device for moment in others.values())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"learning_rate": 0.5}, "learning_rate 0.5"),
        ({"batch": 8, "steps": 60}, "steps 60, batch 8"),
        ({"beta2": None, "momentum": 0.9}, r"no beta2, momentum 0\.9"),
    ],
)
def test_another_recipe_is_refused(tmp_path: Path, change: dict[str, float | None], told: str) -> None:
    found = trained(tmp_path)
    recipe = {key: value for key, value in (asdict(RECIPE) | change).items() if value is not None}
    with pytest.raises(IllegalInput, match=f"step 3 was trained with {told};"):
        state(model()).restore(replace(found, facts={**found.facts, "recipe": recipe}))


@pytest.mark.parametrize(("saved", "resumed"), [(1, 2), (2, 1)])
def test_another_depth_is_refused(tmp_path: Path, saved: int, resumed: int) -> None:
    with pytest.raises(
        IllegalInput, match=r"of another model: model\.transformer\.encoder\.layers\.1\..* does not fit"
    ):
        state(deeper(resumed)).restore(trained(tmp_path, deeper(saved)))


def test_other_shapes_are_refused_and_nothing_is_half_restored(tmp_path: Path) -> None:
    other = build(CARD, head=HeadSpec("sequence-classification", 3))
    before = [parameter.clone() for parameter in other.parameters()]
    with pytest.raises(IllegalInput, match=r"of another model: model\.head\.output\.bias does not fit"):
        state(other).restore(trained(tmp_path))
    assert all(torch.equal(one, two) for one, two in zip(before, other.parameters(), strict=True))
