"""A wish to stop, and the signals that carry it."""

import os
import signal

import pytest

from formwright.train.interrupt import gentle_interruption


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_wish_and_a_second_one_ends_the_process(number, monkeypatch) -> None:
    asked: list[bool] = []
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    with gentle_interruption() as wish:
        asked.append(wish.asked)
        os.kill(os.getpid(), number)
        asked.append(wish.asked)
        assert ended == []
        os.kill(os.getpid(), signal.SIGINT)
    assert (asked, ended) == ([False, True], [130])


def test_handlers_are_put_back_whatever_happens() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    def fail_within() -> None:
        with gentle_interruption():
            assert signal.getsignal(signal.SIGINT) is not before[0]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_within()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
