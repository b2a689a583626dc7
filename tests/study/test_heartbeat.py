import threading
import time
from pathlib import Path

import pytest
from tests.study.cases import new_log

from formwright.study.heartbeat import Heartbeat, LeaseLost
from formwright.study.store import Log, StoreError


@pytest.fixture
def leased(log: Log) -> Log:
    """Give a log whose trial 0 is leased for a moment."""
    assert log.ask(0, "me", 0.4, {})
    return log


def wait_until_lost(heart: Heartbeat, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        heart.check()
        time.sleep(0.01)


def test_a_lease_lives_as_long_as_the_heart_beats(leased: Log) -> None:
    before = leased.leases()[0].expires
    with Heartbeat(leased, 0, "me", 0.4) as heart:
        time.sleep(0.8)
        heart.check()
        assert not leased.claim(0, "other", 60)
    assert leased.leases()[0].expires > before


def test_a_heart_that_stopped_renews_nothing(leased: Log) -> None:
    with Heartbeat(leased, 0, "me", 0.4):
        pass
    time.sleep(0.5)
    assert leased.claim(0, "other", 60)
    assert leased.leases()[0].worker == "other"


def test_a_lease_that_another_has_is_lost(leased: Log) -> None:
    with Heartbeat(leased, 0, "me", 0.2) as heart:
        heart.check()
        assert leased.claim(0, "other", 60, dead=["me"])
        with pytest.raises(LeaseLost):
            wait_until_lost(heart)
    assert leased.leases()[0].worker == "other"


def test_the_lease_of_a_trial_that_is_done_is_lost(leased: Log) -> None:
    with Heartbeat(leased, 0, "me", 0.2) as heart:
        leased.finish(0, "other", "failed", {"reason": "elsewhere"})
        with pytest.raises(LeaseLost):
            wait_until_lost(heart)


def test_a_database_that_is_away_for_a_moment_is_borne(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = new_log(tmp_path)
    log.ask(0, "me", 60, {})
    renewed, answers = threading.Event(), iter([StoreError("away"), StoreError("away")])

    def renew(*_: object) -> bool:
        for error in answers:
            raise error
        renewed.set()
        return True

    monkeypatch.setattr(log, "renew", renew)
    with Heartbeat(log, 0, "me", 0.04) as heart:
        assert renewed.wait(10)
        heart.check()
