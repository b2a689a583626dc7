"""What `formwright show` says of a study, and `formwright export` of it to Optuna."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import optuna
import pytest
from tests.cli.conftest import Run
from tests.pipeline.cases import films_study

from formwright.core.records import Budget, Observation, Request, Spent
from formwright.core.rng import derive
from formwright.pipeline.designs import find_space
from formwright.pipeline.study_place import Place
from formwright.study.replay import asked_data

ACCURACY = (0.5, 0.75, None, 0.625, 0.875)  # of each trial; the third one fails
PARAMS = (2000, 3000, None, 1000, 9000)


def record(place: Place, budgets: Sequence[int | None] = ()) -> Place:
    """Fill a study: five trials with an outcome, and one without."""
    with place.open() as opened:
        space = find_space(opened.search.space)
        opened.log.append("started", "launcher", {"begins": True})
        for number in range(6):
            design = space.sample(derive(0, number))
            budget = Budget(budgets[number] if number < len(budgets) else None)
            request = Request(space.card(design), budget, 0 if number == 4 else None, design)
            opened.log.ask(number, "one", 60.0, asked_data(request, space, 0))
            if number == 2:
                opened.log.finish(number, "one", "failed", {"reason": "the loss is [bold]nan[/bold]"})
            elif number < 5:
                metrics = {"accuracy": ACCURACY[number], "params": PARAMS[number]}
                found = Observation(metrics, Spent(61.0, 20, 1000))
                opened.log.finish(number, "one", "told", {"observation": found.to_json()})
    return place


def order(out: str) -> list[int]:
    """Read the numbers of the trials out of the printed table."""
    rows = out.partition("──\n")[2].partition("\n\n")[0]
    return [int(row.split()[0]) for row in rows.splitlines()]


def test_a_study_is_printed_best_first(run: Run, tmp_path: Path) -> None:
    place = record(films_study(tmp_path))
    done = run("show", place.folder)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("films: random on ")
    assert order(done.out) == [4, 1, 3, 0]
    assert "9,000" in done.out
    assert "the loss is [bold]nan[/bold]" in done.out
    assert "trials  6: 4 finished, 1 failed, 1 pending" in done.out
    assert "4:04 of evaluation, 80 training steps, 4e+03 MACs" in done.out


@pytest.mark.parametrize(
    ("options", "budgets", "best"),
    [
        ({}, (20, 60, 60, 60, 20), [1, 3]),  # those that were trained less are not among the best
        ({}, (None, 60, 60, None, 60), [3, 0]),  # without a budget a design is trained in full
        ({"limits": ("params<=5000",)}, (), [1, 3, 0]),
        ({"objectives": ("params:min",)}, (), [3, 0, 1, 4]),
    ],
    ids=["budgets", "in full", "limits", "minimised"],
)
def test_the_best_keep_limits_and_have_the_largest_budget(
    options: dict[str, Any], budgets: tuple[int | None, ...], best: list[int], run: Run, tmp_path: Path
) -> None:
    assert order(run("show", record(films_study(tmp_path, **options), budgets).folder).out) == best


def test_several_goals_show_the_front(run: Run, tmp_path: Path) -> None:
    place = record(films_study(tmp_path, objectives=("accuracy:max", "params:min")))
    done = run("show", place.folder)
    assert "the front, 3 trials" in done.out
    assert order(done.out) == [1, 3, 4]


def test_json_holds_every_trial(run: Run, tmp_path: Path) -> None:
    place = record(films_study(tmp_path))
    for source in (place.folder, f"sqlite:///{place.storage}", f"sqlite:///{place.storage}#films"):
        data = run("show", source, "--json").data
        assert (data["kind"], data["name"], data["best"]) == ("study", "films", [4])
        states = [trial["state"] for trial in data["trials"]]
        assert states == ["finished", "finished", "failed", "finished", "finished", "pending"]
    last = data["trials"][4]
    assert (last["number"], last["metrics"], last["costs"]) == (4, {"accuracy": 0.875}, {"params": 9000.0})
    assert (last["seconds"], last["parent"], len(last["digest"])) == (61.0, 0, 64)


def test_a_study_without_trials_is_shown(run: Run, tmp_path: Path) -> None:
    run("show", films_study(tmp_path).folder).printed("trials  0: 0 finished, 0 failed, 0 pending")


def test_a_study_is_shown_without_its_record(run: Run, tmp_path: Path) -> None:
    place = films_study(tmp_path)
    (place.folder / "run.json").unlink()
    assert run("show", place.folder, "--json").data["kind"] == "study"


def test_a_published_name_means_no_folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    films_study(tmp_path).folder.rename(tmp_path / "hat")
    monkeypatch.chdir(tmp_path)
    assert run("show", "hat", "--json").data["kind"] == "space"
    assert run("show", "./hat", "--json").data["kind"] == "study"


@pytest.mark.parametrize("options", [["--sample", 1], ["--svg", "x.svg"]])
def test_options_of_designs_are_refused(run: Run, tmp_path: Path, options: list[object]) -> None:
    run("show", films_study(tmp_path).folder, *options).refused("for spaces and cards only")


@pytest.mark.parametrize("source", ["sqlite:////absent/study.db", "mysql://x/y"])
def test_a_missing_database_is_a_users_error(run: Run, source: str) -> None:
    done = run("show", source).refused()
    assert done.err.startswith("formwright: ")


def test_a_study_is_exported_to_optuna(run: Run, tmp_path: Path) -> None:
    place = record(films_study(tmp_path))
    target = f"sqlite:///{tmp_path / 'optuna.db'}"
    done = run("export", place.folder, "--to", "optuna", target)
    assert (done.code, "--trust-space-file" in done.err) == (0, True)
    assert done.out == f"added 5 trials to 'films' in {target}\n"
    assert optuna.load_study(study_name="films", storage=target).best_value == 0.875
    again = run("export", place.folder, "--to", "optuna", "--out", tmp_path / "optuna.db", "--json")
    assert again.data["added"] == 0
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert run("export", place.folder, "--to", "optuna", other, "--trust-space-file").err == ""
    counts = [len(optuna.load_study(study_name="films", storage=one).trials[0].params) for one in (target, other)]
    assert counts[0] == 0 < counts[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--out"),
        (["x.db", "--out", "y.db"], "--out"),
        (["x.db", "--int8", "--seed", 3], "--int8, --seed: for models only"),
    ],
)
def test_a_senseless_export_is_refused(run: Run, tmp_path: Path, arguments: list[object], message: str) -> None:
    run("export", films_study(tmp_path).folder, "--to", "optuna", *arguments).refused(message)
