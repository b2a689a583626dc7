import math
from typing import Any

import pytest

from formwright.core.errors import IllegalInput
from formwright.train.hyperparameters import Hyperparameters, replanned, usual_last_steps, usual_steps


def test_the_rate_rises_to_its_peak_and_falls() -> None:
    recipe = Hyperparameters(steps=100, learning_rate=1.0, warmup=0.1)
    rates = [recipe.rate(step) for step in range(101)]
    assert rates[:10] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    assert (rates[10], rates[55], rates[100]) == (1.0, pytest.approx(0.5), pytest.approx(0.0))
    recipe = Hyperparameters(steps=100, learning_rate=1.0, warmup=0.0, decay="cosine")
    assert recipe.rate(0) == 1.0
    assert recipe.rate(25) == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    assert recipe.rate(50) == pytest.approx(0.5)
    assert Hyperparameters(steps=100, warmup=0.0, decay="none", learning_rate=0.5).rate(99) == 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, not 0"),
        ({"steps": 1, "batch": 0}, "batch must be at least 1"),
        ({"steps": 1, "accumulate": -1}, "accumulate must be at least 1"),
        ({"steps": 1, "warmup": 1.0}, "warmup must lie"),
        ({"steps": 1, "decay": "square"}, "decay is linear, cosine or none, not 'square'"),
        ({"steps": 1, "learning_rate": 0.0}, "learning rate .* not 0"),
        ({"steps": 1, "learning_rate": math.nan}, "learning rate .* not nan"),
        ({"steps": 1, "learning_rate": math.inf}, "learning rate .* not inf"),
        ({"steps": 1, "weight_decay": math.inf}, "weight decay .* not inf"),
        ({"steps": 1, "weight_decay": -0.1}, "weight decay"),
        ({"steps": 1, "clip": 0.0}, "clip must be above 0"),
        ({"steps": 10**400}, "steps must be at most 1,000,000,000,000"),
    ],
)
def test_settings_that_cannot_train_are_refused(settings: dict[str, float | str], message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        Hyperparameters(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "batch", "epochs", "steps"),
    [
        (67_000, 64, 10, 300),
        (1_920, 64, 10, 300),
        (1_500, 64, 10, 235),
        (300, 64, 10, 100),  # the least
        (1_500, 64, 30, 300),
    ],
)
def test_default_steps_are_bounded_by_epochs_over_few_rows(rows: int, batch: int, epochs: int, steps: int) -> None:
    assert usual_steps(300, rows, batch, epochs) == steps


def test_a_recipe_of_few_steps_keeps_them() -> None:
    assert usual_steps(40, 10, 64) == 40


@pytest.mark.parametrize("decay", ["linear", "cosine"])
@pytest.mark.parametrize("since", [2, 10, 35, 60])
@pytest.mark.parametrize("steps", [80, 100, 400])
def test_a_replanned_schedule_has_no_jump_and_ends_as_the_first_one(decay: Any, since: int, steps: int) -> None:
    first = Hyperparameters(100, warmup=0.1, decay=decay)
    after = replanned(first, since, steps, first.learning_rate)
    assert after.rate(since) == pytest.approx(first.rate(since), rel=0.5 if since < 10 else 0.02)
    assert after.share(steps) == pytest.approx(1.0)
    assert 0 <= after.rate(steps - 1) < 0.1 * first.learning_rate
    falling = [after.rate(step) for step in range(max(since, steps // 5), steps)]
    assert falling == sorted(falling, reverse=True)


def test_a_schedule_replanned_twice_goes_on_where_it_was() -> None:
    once = replanned(Hyperparameters(100, warmup=0.1), 40, 200, 1e-3)
    twice = replanned(once, 120, 150, 1e-3)
    assert twice.share(120) == once.share(120) == pytest.approx(0.7)
    assert twice.rate(120) == pytest.approx(once.rate(120), rel=0.02)
    assert replanned(Hyperparameters(100), 0, 100, 1e-3).rate(7) == pytest.approx(Hyperparameters(100).rate(7))


@pytest.mark.parametrize(("rows", "steps"), [(8_000, 900), (67_000, 1_047), (364_000, 3_000)])
def test_a_last_training_sees_many_rows_once_as_far_as_that_takes_minutes(rows: int, steps: int) -> None:
    assert usual_last_steps(900, rows, 64) == steps
