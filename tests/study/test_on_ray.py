"""Workers on Ray: a cluster that loses a machine, actors that die, a user who stops, and what is said before that."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.own_process import in_own_process
from tests.pipeline.cases import SOURCE, check_whole, films_study

from formwright.core.errors import IllegalInput, MissingExtra
from formwright.pipeline.run_events import work_at
from formwright.pipeline.study_place import Opened, find
from formwright.study.on_ray import run_on_ray
from formwright.study.processes import Work, WorkersDied

# Ray's own affairs: files and sockets that it leaves to the end of the process
cluster_test = [
    pytest.mark.ray,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def working(folder: Path) -> Work:
    return partial(work_at, films_study(folder))


def nothing() -> None:
    return None


def running(opened: Opened) -> dict[int, int]:
    """Give the process that evaluates each trial which is under way."""
    return {number: int(lease.worker.rsplit("/", 2)[1]) for number, lease in opened.log.leases().items()}


def once(act: Callable[[], bool]) -> Callable[[], None]:
    """Give a function that tries to act, again and again until it has."""
    done: list[bool] = []

    def look() -> None:
        if not done and act():
            done.append(True)

    return look


def ancestors(process: int) -> Iterator[int]:
    while process > 1:
        yield process
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture
def reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes of a cluster find what is tested here."""
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # the future's default, or Ray warns


def ask_in_the_middle(folder: str) -> None:
    place = find(folder)
    with place.open() as opened:

        def interrupt() -> bool:
            if running(opened):
                os.kill(os.getpid(), signal.SIGINT)
            return bool(running(opened))

        assert not run_on_ray(partial(work_at, place), 2, once(interrupt), "local")


class TestOnClusters:
    pytestmark = cluster_test

    def test_a_machine_is_lost_in_the_middle_of_a_trial(self, reachable: None, tmp_path: Path) -> None:
        from ray.cluster_utils import Cluster

        place = films_study(tmp_path, trials=8, steps=60)
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        try:
            second = cluster.add_node(num_cpus=1)
            cluster.wait_for_nodes()
            raylet = second.all_processes["raylet"][0].process.pid
            lost: dict[int, int] = {}
            with place.open() as opened:

                def lose() -> bool:
                    there = {n: p for n, p in running(opened).items() if p != os.getpid() and raylet in ancestors(p)}
                    for number, process in there.items():
                        os.kill(process, signal.SIGSTOP)  # else a fast trial ends while its machine goes down
                        if running(opened).get(number) != process:  # it ended just before
                            os.kill(process, signal.SIGCONT)
                            return False
                        lost[number] = process
                        cluster.remove_node(second, allow_graceful=False)
                        os.kill(process, signal.SIGKILL)
                    return bool(there)

                assert run_on_ray(partial(work_at, place), 2, once(lose), cluster.address)
                check_whole(opened, 8)
                (number, process), *more = lost.items()
                assert not more
                claims = [e for e in opened.log.read() if e.kind == "claimed" and e.number == number]
                assert [str(process) in claim.worker for claim in claims] == [True, False]
        finally:
            cluster.shutdown()

    def test_an_actor_that_is_killed_is_replaced(self, reachable: None, tmp_path: Path) -> None:
        place = films_study(tmp_path, trials=4, steps=60)
        with place.open() as opened:
            killed: list[int] = []

            def kill() -> bool:
                killed.extend(running(opened).values())
                for process in killed:
                    os.kill(process, signal.SIGKILL)
                return bool(killed)

            assert run_on_ray(partial(work_at, place), 1, once(kill), "local")
            assert len(killed) == 1
            check_whole(opened, 4)

    def test_a_user_who_stops_loses_nothing(self, reachable: None, tmp_path: Path) -> None:
        place = films_study(tmp_path, trials=3, steps=100)
        in_own_process(ask_in_the_middle, place.folder)
        with place.open() as opened:
            assert len([event for event in opened.log.read() if event.kind == "told"]) < 3
            assert run_on_ray(partial(work_at, place), 1, nothing, "local")
            check_whole(opened, 3)

    def test_what_no_worker_can_do_is_said_once(self, reachable: None, tmp_path: Path) -> None:
        place = films_study(tmp_path)
        (tmp_path / "films.csv").unlink()
        with pytest.raises(WorkersDied, match=r"could not work on the study: .*films\.csv"):
            run_on_ray(partial(work_at, place), 2, nothing, "local")


def test_a_missing_ray_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"formwright\[ray\]"):
        run_on_ray(working(tmp_path), 2, nothing)


class FakeRay(SimpleNamespace):
    """What is asked of Ray before any actor is started."""

    def __init__(self, hosts: list[str]) -> None:
        super().__init__(begun=[], ended=0)
        self._hosts = hosts

    def is_initialized(self) -> bool:
        return False

    def init(self, **settings: Any) -> None:
        self.begun.append(settings)
        if settings["address"] == "nowhere:1":
            raise ConnectionError("a long story\nno cluster answers")

    def shutdown(self) -> None:
        self.ended += 1

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "NodeManagerHostname": host, "Resources": {"CPU": 1.0}} for host in self._hosts]


def fake(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> FakeRay:
    ray = FakeRay(list(hosts))
    monkeypatch.setitem(sys.modules, "ray", ray)  # type: ignore[arg-type]
    return ray


def test_a_file_is_not_shared_by_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = fake(monkeypatch, "one", "two")
    with pytest.raises(
        IllegalInput, match=r"has 2 machines, which cannot write one file safely; .*--storage postgresql"
    ):
        run_on_ray(working(tmp_path), 2, nothing, "head:6379", storage=str(tmp_path / "study.db"))
    assert ray.ended == 1


def test_a_cluster_that_does_not_answer_is_a_users_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch)
    with pytest.raises(IllegalInput, match="cannot reach a Ray cluster at 'nowhere:1': no cluster answers"):
        run_on_ray(working(tmp_path), 2, nothing, "nowhere:1")


def test_the_user_is_told_what_workers_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_actors(**settings: Any) -> Any:
        raise KeyboardInterrupt

    fake(monkeypatch, "one").remote = no_actors
    place = films_study(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run_on_ray(partial(work_at, place), 2, nothing, "head:6379", gpus=0.5)
    assert capsys.readouterr().err == "no machine of the Ray cluster has 1 CPU and 0.5 GPU; waiting for one\n"
