import os
import time
from collections.abc import Iterator

import pytest

from formwright.core.errors import IllegalInput
from formwright.study.launch import WorkersDied
from formwright.study.processes import in_processes


def squared(number: int) -> tuple[int, int, str | None]:
    return number * number, os.getpid(), os.environ.get("OMP_NUM_THREADS")


def refused(number: int) -> int:
    raise IllegalInput(f"not {number}")


def slow(number: int) -> int:
    time.sleep(0.2)
    return number


def test_one_worker_is_this_process_and_keeps_the_order() -> None:
    found = list(in_processes(squared, range(5), 1))
    assert [square for square, _, _ in found] == [0, 1, 4, 9, 16]
    assert {process for _, process, _ in found} == {os.getpid()}


@pytest.mark.slow
def test_several_workers_do_every_job_once_on_one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    found = list(in_processes(squared, range(20), 2))
    assert sorted(square for square, _, _ in found) == [number * number for number in range(20)]
    assert os.getpid() not in {process for _, process, _ in found}
    assert {threads for _, _, threads in found} == {"1"}
    assert os.environ["OMP_NUM_THREADS"] == "7"


@pytest.mark.slow
def test_what_goes_wrong_in_a_job_is_told() -> None:
    with pytest.raises(IllegalInput, match="not 0"):
        list(in_processes(refused, range(1), 2))


@pytest.mark.slow
def test_a_process_that_dies_is_told_of() -> None:
    with pytest.raises(WorkersDied, match="is memory short"):
        list(in_processes(os._exit, [9], 2))


@pytest.mark.slow
@pytest.mark.long
def test_who_stops_asking_waits_for_few_jobs() -> None:
    taken: list[int] = []

    def jobs() -> Iterator[int]:
        for number in range(1_000):
            taken.append(number)
            yield number

    results = in_processes(slow, jobs(), 2)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert len(taken) < 10
