"""Why a study has no model, from a log whose scores are known."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.study.cases import new_log, run, toy_study

from formwright.pipeline.no_model import NoModel, why_no_model


@pytest.fixture
def why(tmp_path: Path) -> Any:
    log = new_log(tmp_path)
    study = toy_study(log, tmp_path, stop=6)
    run(study)

    def found(*limits: str) -> tuple[NoModel, dict[str, list[float]]]:
        stages = {"search": SimpleNamespace(limits=limits), "deliver": SimpleNamespace(targets={})}
        opened = SimpleNamespace(space=None, log=log, place=SimpleNamespace(folder=tmp_path), **stages)
        scores = [trial.observation.metrics for trial in study.history().finished if trial.observation]
        return why_no_model(cast(Any, opened)), {name: [one[name] for one in scores] for name in ("accuracy", "params")}

    return found


def test_the_nearest_miss_is_told_on_the_side_of_each_limit(why: Any) -> None:
    reason, values = why("params<=1", "accuracy>=2")
    assert len(set(values["params"])) > 1
    assert f"6 of 6 designs miss it, the nearest has {min(values['params']):.4g}" in reason.advice[0]
    assert f"6 of 6 designs miss it, the nearest has {max(values['accuracy']):.4g}" in reason.advice[1]


def test_only_limits_that_a_design_breaks_are_to_be_loosened(why: Any) -> None:
    reason, values = why("params<=1", "accuracy<=2", f"params<={min(values_of(why)):.0f}")
    assert [line.split(":")[0] for line in reason.advice if line.startswith("loosen")] == [
        "loosen params<=1.0",
        f"loosen params<={float(min(values['params']))}",
    ]


def values_of(why: Any) -> list[float]:
    return cast(list[float], why()[1]["params"])
