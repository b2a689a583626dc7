"""Settings that no model can run with are refused when they are made."""

from typing import Any

import pytest

from formwright.core.errors import IllegalInput
from formwright.nn.settings import Settings


@pytest.mark.parametrize(
    "wrong",
    [
        {"dropout": -0.1},
        {"dropout": 1.5},
        {"dropout": float("nan")},
        {"norm_epsilon": -1e-9},
        {"norm_epsilon": float("inf")},
        {"pooler_activation": "swish"},
        {"pooling": "max"},
    ],
)
def test_what_cannot_run_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(IllegalInput, match=f"^{next(iter(wrong))} is "):
        Settings(**wrong)


def test_the_ends_of_a_range_are_settings() -> None:
    assert Settings(dropout=0, norm_epsilon=0).dropout == 0
    assert Settings(dropout=1, pooler_activation="relu", pooling="mean").pooling == "mean"
