"""Final models are read from the notes of a log."""

from formwright.report.final_models import FinalModel, command_lines, final_models, mark_earlier
from formwright.study.events import Event


def note(number: int, **data: object) -> Event:
    return Event(number, "note", None, "worker", float(number), data)


def test_models_stand_best_first_and_baselines_last_below_a_teacher() -> None:
    roles = ("baseline", "front", "teacher", "best")
    events = [note(number, model={"name": role, "role": role}) for number, role in enumerate(roles)]
    assert [model.name for model in final_models(events)] == ["teacher", "best", "front", "baseline"]


def test_the_last_note_of_a_name_counts() -> None:
    events = [note(number, model={"name": "a", "role": "best", "params": 10 * number}) for number in (1, 2)]
    assert final_models(events) == (FinalModel("a", "best", params=20),)


def test_what_is_missing_or_no_number_is_left_out() -> None:
    (model,) = final_models([note(1, model={"test": {"f1": 0.5, "odd": "x"}, "params": None, "validation": None})])
    assert (model.name, model.role, model.params) == ("unnamed", "", None)
    assert (model.test, model.validation) == ({"f1": 0.5}, {})


def test_costs_are_the_numbers_that_can_be_drawn() -> None:
    costs = {"latency_ms": 3.2, "macs": 110_000_000, "onnx_ms": float("nan"), "int8_ms": None}
    (model,) = final_models([note(1, model={"name": "a", "role": "front", "costs": costs})])
    assert model.costs == {"latency_ms": 3.2, "macs": 110_000_000}


def test_other_events_are_no_models_and_no_commands() -> None:
    events = [Event(1, "started", None, "worker", 0.0, {"command": "x"}), note(2, other=1)]
    assert final_models(events) == ()
    assert command_lines(events) == ""


def test_every_command_stands_once_in_the_order_of_the_runs() -> None:
    lines = ("search", "resume", "resume", "resume --trials 9")
    events = [note(number, command=line) for number, line in enumerate(lines)]
    assert command_lines(events) == "search\nresume\nresume --trials 9"


def test_what_is_no_longer_wanted_is_called_earlier() -> None:
    models = [FinalModel(role, role, digest="old") for role in ("best", "front", "baseline")]
    told = mark_earlier([*models, FinalModel("new", "best", digest="new")], {"new"})
    assert [(model.name, model.role) for model in told] == [
        ("new", "best"),
        ("best", "earlier"),
        ("front", "earlier"),
        ("baseline", "baseline"),
    ]
