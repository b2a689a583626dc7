"""A training is saved, shown, and stopped between two steps."""

from pathlib import Path

import pytest
from tests.train.toy import Toy, model

from formwright.cli.conduct import Interrupted, conducted
from formwright.core.errors import IllegalInput
from formwright.train import checkpoint
from formwright.train.interrupt import Interruption
from formwright.train.loop import train
from formwright.train.losses import loss_of
from formwright.train.recipe import Recipe

STEPS = 8


def trained(
    folder: Path, wish: Interruption, checked: list[int], every: int = 3, stop_at: int | None = None
) -> list[float]:
    done: list[int] = []
    with conducted("teaching", folder, STEPS, every, wish, lambda: checked.append(len(done))) as run:

        def after_step(step: int, loss: float) -> None:
            done.append(step)
            wish.asked = wish.asked or step == stop_at
            assert run.after_step is not None
            run.after_step(step, loss)

        return train(model(), Toy(), loss_of("sequence-classification"), Recipe(STEPS), run.saving, after_step)


def test_a_run_is_checked_whenever_it_is_saved(tmp_path: Path) -> None:
    checked: list[int] = []
    assert len(trained(tmp_path, Interruption(), checked)) == STEPS
    assert checked == [3, 6, STEPS]
    assert checkpoint.newest_step(tmp_path) == STEPS


def test_a_wish_to_stop_is_heard_after_the_step_and_the_run_goes_on_from_there(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", Interruption(), [])
    with pytest.raises(Interrupted, match=r"^step 5 of 8 of teaching$"):
        trained(tmp_path / "cut", Interruption(), [], stop_at=4)
    assert checkpoint.newest_step(tmp_path / "cut") == 5
    assert trained(tmp_path / "cut", Interruption(), []) == whole


def test_a_wish_at_the_last_step_comes_too_late(tmp_path: Path) -> None:
    assert len(trained(tmp_path, Interruption(), [], stop_at=STEPS - 1)) == STEPS


def test_nothing_is_saved_where_the_check_refuses(tmp_path: Path) -> None:
    def refuse() -> None:
        raise IllegalInput("another run has taken the folder")

    with (
        pytest.raises(IllegalInput, match="another run"),
        conducted("teaching", tmp_path, STEPS, 2, Interruption(), refuse) as run,
    ):
        train(model(), Toy(), loss_of("sequence-classification"), Recipe(STEPS), run.saving, run.after_step)
    assert list(tmp_path.iterdir()) == []


def test_steps_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(tmp_path, Interruption(), [])
    assert f"teaching: step {STEPS} of {STEPS}, loss " in capsys.readouterr().err
