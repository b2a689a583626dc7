"""How fast this machine is, found without changing what is to be trained."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.compress.tiny import job

from formwright.compress import speeds as module
from formwright.compress.speeds import measured_speeds
from formwright.train.loop import scores_of


def test_all_stages_are_timed_and_nothing_is_changed(tmp_path: Path) -> None:
    started = job(tmp_path).started()
    before, threads = started.begun.digests(), torch.get_num_threads()
    found = measured_speeds(started.begun, started.training, 0.4)
    assert min(asdict(found).values()) > 0
    assert found.rows == len(started.begun.prepared.validation.examples)
    assert found.judging > found.validation  # of a sub-network
    assert found.answers == pytest.approx(5 * found.answer)  # 80 rows in batches of 16
    assert found.network > found.teacher  # several sub-networks, and an answer of the teacher
    assert started.begun.digests() == before
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("scored", [False, True])
def test_smaller_sub_networks_take_less(scored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that ticks once each time it is read."""
    ticks = iter(range(10**6))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(ticks)))
    started = job(tmp_path, scored=scored).started()
    whole, small = (measured_speeds(started.begun, started.training, share) for share in (1.0, 0.2))
    assert whole.teacher == small.teacher == 1.0
    assert whole.network - small.network == pytest.approx(0.8 + 0.4)
    assert small.validation == pytest.approx(0.6 * whole.validation)
    assert whole.alone - small.alone == pytest.approx(0.4)


@pytest.mark.parametrize("slowed", [1, 5])
def test_a_busy_machine_is_told_by_the_work_it_does_in_the_time_that_passes(
    slowed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed, worked = iter(range(0, 10**6, slowed)), iter(range(10**6))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(passed)))
    monkeypatch.setattr("time.process_time", lambda: float(next(worked)))
    started = job(tmp_path).started()
    found = measured_speeds(started.begun, started.training, 0.4)
    assert found.slowed == slowed
    assert (found.writing, found.start) == (slowed * module._WRITING, slowed * module._START)  # which nobody timed


def test_what_the_study_does_is_timed_with_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []

    def noted(*given: Any) -> torch.Tensor:
        used.append(torch.get_num_threads())
        return scores_of(*given)

    monkeypatch.setattr(module, "scores_of", noted)
    started = job(tmp_path, threads=2).started()
    measured_speeds(started.begun, started.training, 0.4)
    assert set(used) == {1, 2}
    assert used[0] == 2
    assert used[-1] == 1
