"""EFTNAS as a pipeline, and the promises that its docstring makes."""

import pytest

from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.score_parts import BALANCE, ScoreParts
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes import RECIPES, eftnas
from formwright.search import SEARCHERS
from formwright.supernet.automatic import LEAST, MULTIPLE

STAGES = ["teacher", "scores", "space", "super-network", "search", "deliver"]


def test_it_is_a_pipeline_of_shared_stages() -> None:
    made = RECIPES.get("eftnas")(TaskChoice("mini-glue/sentiment"))
    assert list(made.named) == STAGES
    assert made.named["search"].searcher.NAME in SEARCHERS.names()  # type: ignore[attr-defined]
    assert Pipeline.from_json(made.to_json()) == made
    assert RECIPES.get("eftnas").command == "compress"


def test_parts_are_measured_first_where_a_target_is_in_milliseconds() -> None:
    made = eftnas.eftnas(TaskChoice("mini-glue/sentiment"), targets=("macs=50%", "latency_ms=8"), hidden=(64, 32, 64))
    assert list(made.named) == ["latency", *STAGES]
    assert {made.named[name].hidden for name in ("latency", "space")} == {(32, 64)}  # type: ignore[attr-defined]
    assert made.named["teacher"].hidden  # type: ignore[attr-defined]
    moved = eftnas.eftnas(TaskChoice("mini-glue/sentiment"), order="movement")
    assert moved.named["teacher"].movement  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "promise",
    [
        f"multiples of {MULTIPLE}",
        f"below {LEAST:.0%}".replace("%", " %"),
        f"{ScoreParts.__dataclass_fields__['batches'].default} batches",
        f"power of {BALANCE}",
        "`movement`",
    ],
)
def test_what_the_docstring_says_is_what_is_done(promise: str) -> None:
    assert promise in " ".join(str(eftnas.__doc__).split())
