"""A request to stop, and the signals that carry it."""

import os
import signal

import pytest
from tests.own_process import in_own_process

from formwright.train.interrupt import gentle_interruption


def ask_twice(first: str) -> None:
    with gentle_interruption() as interruption:
        print(interruption.asked, flush=True)
        os.kill(os.getpid(), int(first))
        print(interruption.asked, flush=True)
        os.kill(os.getpid(), signal.SIGINT)
        print("alive", flush=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_wish_and_a_second_one_ends_the_process(number: signal.Signals) -> None:
    assert in_own_process(ask_twice, number.value, code=130) == "False\nTrue\n"


def test_handlers_are_put_back_whatever_happens() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    def fail_within() -> None:
        with gentle_interruption():
            assert signal.getsignal(signal.SIGINT) is not before[0]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_within()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
