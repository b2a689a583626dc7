"""Final trainings show how far they are."""

import time
from pathlib import Path

import pytest

from formwright.cli import delivery_view
from formwright.cli.delivery_view import DeliveryView, showing_delivery
from formwright.pipeline import units
from formwright.pipeline.units import step_writer


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "SECONDS", 0.0)


def folder_of(tmp_path: Path, name: str) -> Path:
    (tmp_path / name).mkdir()
    return tmp_path / name


def test_only_what_moves_is_shown(tmp_path: Path) -> None:
    old, new = step_writer(folder_of(tmp_path, "old")), step_writer(folder_of(tmp_path, "trial-3"))
    old(400, 0.5)
    view = DeliveryView(tmp_path, 1000)
    assert view.look() == []
    new(9, 0.25)
    assert [training.line for training in view.look()] == ["trial-3: step 10 of 1,000, loss 0.2500"]
    assert view.look() == []
    new(19, 0.25)
    (training,) = view.look()
    assert training.line.startswith("trial-3: step 20 of 1,000, loss 0.2500, ")
    assert training.line.endswith(" left")


def test_bars_are_drawn_for_every_training(tmp_path: Path) -> None:
    view = DeliveryView(tmp_path, 10)
    for name in ("baseline", "trial-1"):
        step_writer(folder_of(tmp_path, name))(0, 1.0)
    assert len(view.bars().renderables) == 2


def test_lines_are_printed_while_the_work_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(delivery_view, "SECONDS_BETWEEN_LINES", 0.01)
    after_step = step_writer(folder_of(tmp_path, "trial-1"))
    seen = ""
    with showing_delivery(tmp_path, 10):
        after_step(4, 1.0)
        until = time.monotonic() + 20
        while not seen and time.monotonic() < until:
            time.sleep(0.01)
            seen = capsys.readouterr().err
    assert seen == "trial-1: step 5 of 10, loss 1.0000\n"
