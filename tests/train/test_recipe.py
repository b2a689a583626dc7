import math

import pytest

from formwright.core.errors import IllegalInput
from formwright.train.recipe import Recipe, usual_steps


def test_the_rate_rises_to_its_peak_and_falls_to_zero() -> None:
    recipe = Recipe(steps=100, learning_rate=1.0, warmup=0.1)
    rates = [recipe.rate(step) for step in range(101)]
    assert rates[:10] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    assert rates[10] == 1.0
    assert rates[55] == pytest.approx(0.5)
    assert rates[100] == pytest.approx(0.0)


def test_the_cosine_falls_slowly_first() -> None:
    recipe = Recipe(steps=100, learning_rate=1.0, warmup=0.0, decay="cosine")
    assert recipe.rate(0) == 1.0
    assert recipe.rate(25) == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    assert recipe.rate(50) == pytest.approx(0.5)
    assert Recipe(steps=100, warmup=0.0, decay="none", learning_rate=0.5).rate(99) == 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, not 0"),
        ({"steps": 1, "batch": 0}, "batch must be at least 1"),
        ({"steps": 1, "accumulate": -1}, "accumulate must be at least 1"),
        ({"steps": 1, "warmup": 1.0}, "warmup must lie"),
        ({"steps": 1, "decay": "square"}, "decay is linear, cosine or none, not 'square'"),
        ({"steps": 1, "learning_rate": 0.0}, "learning rate"),
        ({"steps": 1, "learning_rate": math.inf}, "both rates finite"),
        ({"steps": 1, "weight_decay": math.inf}, "both rates finite"),
        ({"steps": 10**400}, "steps must be at most 1,000,000,000,000"),
    ],
)
def test_settings_that_cannot_train_are_refused(settings: dict[str, float | str], message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        Recipe(**settings)  # type: ignore[arg-type]


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
