"""A study that delivers no model ends with exit code 1, the reasons and what to try; impossible limits never start."""

from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.studies import search_line

from formwright.core.errors import EvaluationFailed
from formwright.evaluate.basic import Full

pytestmark = pytest.mark.usefixtures("one_process")


@pytest.fixture
def diverging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every training fail: two of three at another step, and one for another reason."""
    number = iter(range(10**6))

    def evaluate(*_: Any) -> None:
        turn = next(number)
        raise EvaluationFailed("out of luck" if turn == 1 else f"the loss is nan at step {turn}; lower the rate (0.5)")

    monkeypatch.setattr(Full, "evaluate", evaluate)


@pytest.mark.slow
@pytest.mark.usefixtures("diverging")
def test_where_all_trials_fail_the_reasons_are_counted(run: Run, tmp_path: Path) -> None:
    done = run(*search_line(tmp_path, "--workers", 1))
    assert (done.code, done.out) == (1, "")
    for fact in ("all 3 trials failed", "2 times: the loss is nan at step 0", "out of luck", "report.html", "show"):
        assert fact in done.err, fact
    again = run("resume", tmp_path / "study", "--json")
    assert again.code == 1
    assert again.data["models"] == []
    assert again.data["no_model"]["failures"][0] == [2, "the loss is nan at step 0; lower the rate (0.5)"]


@pytest.mark.slow
def test_where_no_design_keeps_all_limits_the_nearest_is_told(run: Run, tmp_path: Path) -> None:
    done = run(*search_line(tmp_path, "--limit", "accuracy>=0.999", "--json"))
    assert done.code == 1
    reason = done.data["no_model"]
    best = max(trial["metrics"]["accuracy"] for trial in done.data["trials"])
    assert "3 designs" in reason["why"]
    assert f"the nearest has {best:.4g}" in reason["advice"][0]
    assert "accuracy>=0.999" in done.err
    assert "formwright resume" in done.err


@pytest.mark.parametrize(
    ("limits", "facts"),
    [
        (["accuracy<=0.9", "accuracy>=0.95"], ["accuracy<=0.9", "accuracy>=0.95"]),
        (["params<=1e4", "params>=2e4"], ["params<=10000", "params>=20000"]),
        (["accuracy>=1.5"], ["accuracy>=1.5", "from 0 to 1"]),
        (["accuracy<=-0.1"], ["accuracy<=-0.1"]),
        (["latency_ms<=-1"], ["latency_ms<=-1"]),
        (["acuracy>=0.5"], ["acuracy", "'accuracy'"]),
    ],
)
def test_limits_that_nothing_can_keep_are_refused(
    limits: list[str], facts: list[str], run: Run, tmp_path: Path
) -> None:
    options = [word for limit in limits for word in ("--limit", limit)]
    done = run(*search_line(tmp_path, *options))
    assert (done.code, done.out) == (2, "")
    for fact in facts:
        assert fact in done.err, fact
    assert not (tmp_path / "study").exists()


def test_an_unknown_objective_is_refused_with_the_nearest_name(run: Run, tmp_path: Path) -> None:
    done = run(*search_line(tmp_path, "--maximise", "acuracy"))
    assert (done.code, done.out) == (2, "")
    assert "'acuracy'" in done.err
    assert "'accuracy'" in done.err
    assert not (tmp_path / "study").exists()
