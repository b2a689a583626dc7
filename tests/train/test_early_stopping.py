from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.train.cases import Toy
from tests.train.cases import toy_model as model
from torch import nn

from formwright.core.errors import IllegalInput
from formwright.train import checkpoint
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import EarlyStopping, Saving, State, scores_of, train, usual_every
from formwright.train.losses import loss_of

LOSS = loss_of("sequence-classification")
RECIPE = Hyperparameters(steps=20, batch=16, learning_rate=3e-3)


def weights(net: nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in net.parameters()]


def equal(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(some, others, strict=True))


def told(scores: Sequence[float], seen: list[list[torch.Tensor]]) -> Callable[[nn.Module], float]:
    """Give scores one after the other, whatever the model, and note the weights they were given for."""
    left = iter(scores)

    def judge(net: nn.Module) -> float:
        seen.append(weights(net))
        return next(left)

    return judge


def test_the_best_weights_are_kept_and_training_stops_after_the_patience() -> None:
    seen: list[list[torch.Tensor]] = []
    net = model()
    losses = train(net, Toy(), LOSS, RECIPE, watch=EarlyStopping(told([1, 3, 2, 3, 9], seen), every=2, patience=2))
    assert len(losses) == 8  # the best at step 4, none better at 6 and 8
    assert len(seen) == 4
    assert equal(weights(net), seen[1])
    assert not equal(weights(net), seen[-1])


@pytest.mark.parametrize(
    ("steps", "batch", "rows", "every"),
    [
        (900, 64, 204, 45),  # 20 times
        (900, 64, 2048, 54),  # at most a fifth of the time
        (300, 32, 9815, 75),  # four times, whatever that takes
        (99, 32, 9815, 512),  # so short a training never but at its end
        (7, 8, 4, 1),
    ],
)
def test_models_are_judged_as_often_as_that_is_worth(steps: int, batch: int, rows: int, every: int) -> None:
    assert usual_every(Hyperparameters(steps, batch), rows) == every


def test_training_runs_to_the_least_step_and_the_end_is_judged() -> None:
    scores = [3, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    assert (
        len(train(model(), Toy(), LOSS, RECIPE, watch=EarlyStopping(told(scores, []), every=2, patience=2, least=9)))
        == 10
    )
    seen: list[list[torch.Tensor]] = []
    net = model()
    losses = train(net, Toy(), LOSS, RECIPE, watch=EarlyStopping(told([1, 2, 3], seen), every=8))
    assert len(losses) == 20
    assert len(seen) == 3  # at 8, 16 and 20
    assert equal(weights(net), seen[-1])


def test_looking_does_not_change_what_is_learnt() -> None:
    def by_running(net: nn.Module) -> float:
        net.eval()
        torch.rand(3)  # whatever is drawn while judging
        with torch.inference_mode():
            return float(scores_of(net, Toy().batch(99)).sum())

    alone = train(model(), Toy(), LOSS, RECIPE)
    assert train(model(), Toy(), LOSS, RECIPE, watch=EarlyStopping(by_running, every=3, patience=99)) == alone


class Stopped(Exception):
    pass


@pytest.mark.parametrize("stop", [5, 6, 9, 13])
def test_an_interrupted_run_is_judged_as_one_never_interrupted(tmp_path: Path, stop: int) -> None:
    def by_step(scores: Sequence[float]) -> EarlyStopping:
        return EarlyStopping(told(scores, []), every=2, patience=4)

    scores = [0.1, 0.3, 0.2, 0.25, 0.3, 0.05, 0.9, 0.9, 0.9, 0.9]
    whole = model()
    expected = train(whole, Toy(), LOSS, RECIPE, watch=by_step(scores))
    assert len(expected) == 12  # the second was best, and the four after it were no better

    def interrupt(step: int, _: float) -> None:
        if step == stop - 1:
            raise Stopped

    saving = Saving(tmp_path, every=3)
    stops_early = stop > len(expected)
    try:
        train(model(), Toy(), LOSS, RECIPE, saving, interrupt, watch=by_step(scores))
        assert stops_early
    except Stopped:
        assert not stops_early
    found = checkpoint.newest(tmp_path)
    judged = found.step // 2
    assert found.facts["judged"] == [[2 * number + 2, score] for number, score in enumerate(scores[:judged])]
    resumed = model(seed=9)
    assert train(resumed, Toy(), LOSS, RECIPE, saving, watch=by_step(scores[judged:])) == expected
    assert equal(weights(whole), weights(resumed))


def test_a_run_that_is_over_is_over_when_resumed(tmp_path: Path) -> None:
    watch = EarlyStopping(told([2, 1], []), every=2, patience=1)
    net, again = model(), model(seed=9)
    losses = train(net, Toy(), LOSS, RECIPE, Saving(tmp_path), watch=watch)
    assert train(again, Toy(), LOSS, RECIPE, Saving(tmp_path), watch=watch) == losses
    assert equal(weights(net), weights(again))


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(1, 4))
def test_it_is_over_when_the_best_is_as_old_as_the_patience(scores: list[int], patience: int) -> None:
    net = nn.Linear(1, 1)
    state = State(net, torch.optim.SGD(net.parameters()), RECIPE, judged=[(n, score) for n, score in enumerate(scores)])
    since_best = len(scores) - 1 - scores.index(max(scores)) if scores else 0
    assert EarlyStopping(lambda _: 0.0, 1, patience).is_over(state) == (since_best >= patience)


@pytest.mark.parametrize(("every", "patience"), [(0, 1), (1, 0)])
def test_a_watch_that_never_looks_is_refused(every: int, patience: int) -> None:
    with pytest.raises(IllegalInput, match="at least 1"):
        EarlyStopping(lambda _: 0.0, every, patience)
