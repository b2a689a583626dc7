"""A study that runs is shown as it goes."""

from pathlib import Path

import pytest
from tests.pipeline.cases import films_study

from formwright.cli.study_view import StudyView
from formwright.core.records import Observation, Request, Spent
from formwright.core.rng import derive
from formwright.pipeline.designs import find_space
from formwright.pipeline.study_place import Opened
from formwright.study.replay import asked_data
from formwright.study.store import Log

Err = pytest.CaptureFixture[str]


def ask(opened: Opened, number: int) -> None:
    space = find_space(opened.search.space)
    design = space.sample(derive(0, number))
    opened.log.ask(number, "one", 60.0, asked_data(Request(space.card(design), design=design), space, 0))


def tell(log: Log, number: int, accuracy: float, params: float = 1000.0) -> None:
    found = Observation({"accuracy": accuracy, "params": params}, Spent(1.0, 20, 1000))
    log.finish(number, "one", "told", {"observation": found.to_json()})


def test_a_line_names_the_trial_and_counts_those_that_are_done(tmp_path: Path, capsys: Err) -> None:
    with films_study(tmp_path, trials=4).open() as opened:
        ask(opened, 0)
        tell(opened.log, 0, 0.5)
        with StudyView(opened) as view:
            assert capsys.readouterr().err == "", "what happened before is not news"
            for number in (1, 2):
                ask(opened, number)
            tell(opened.log, 2, 0.75)
            opened.log.finish(1, "one", "failed", {"reason": "the loss is nan"})
            view.look()
            second, third = capsys.readouterr().err.splitlines()
            view.look()
    assert second.startswith("trial 2 (2 of 4 done): accuracy 0.75; ")
    assert third.startswith("trial 1 (3 of 4 done): the loss is nan; ")
    assert third.endswith(" left")
    assert capsys.readouterr().err == ""


def test_without_a_number_of_trials_none_is_named(tmp_path: Path, capsys: Err) -> None:
    from formwright.study.stop import Stop

    with films_study(tmp_path, stop=Stop(patience=3)).open() as opened, StudyView(opened) as view:
        ask(opened, 0)
        tell(opened.log, 0, 0.5)
        view.look()
        assert view.seconds_left() is None
    assert capsys.readouterr().err == "trial 0 (1 done): accuracy 0.5\n"


def test_a_terminal_shows_a_table(tmp_path: Path, capsys: Err, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    with films_study(tmp_path, objectives=("accuracy:max", "params:min")).open() as opened, StudyView(opened) as view:
        for number, (accuracy, params) in enumerate([(0.5, 10.0), (0.75, 20.0), (0.25, 30.0)]):
            ask(opened, number)
            tell(opened.log, number, accuracy, params)
        ask(opened, 3)
        view.look()
    shown = capsys.readouterr().err
    for words in ("3 done, 1 running, 0 failed", "front of 2", "trial 1: accuracy 0.75, params 20"):
        assert words in shown
