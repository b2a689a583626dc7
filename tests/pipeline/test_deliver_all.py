from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.pipeline.cases import create, own_rows, work
from tests.pipeline.test_candidates import DESIGNS, SPACE, TIMED, told

from formwright.core.rng import derive
from formwright.pipeline import deliver_all as module
from formwright.pipeline.candidates import Candidate, TooSlow, candidates, within_targets
from formwright.pipeline.deliver_all import deliver_all
from formwright.pipeline.delivered import Delivered, Undelivered, delivered, undelivered
from formwright.pipeline.delivery import refuse_slow
from formwright.pipeline.run_folder import Opened
from formwright.pipeline.task_choice import TrainingChoice
from formwright.space.zoo import load_space
from formwright.train.interrupt import Interruption


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    with create(tmp_path / "mine", own_rows(tmp_path)).open() as found:
        yield found


def candidate() -> Candidate:
    space = load_space("flexibert-nano")
    return Candidate("trial-7", "best", space.card(space.sample(derive(4))), 7)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(120)
def test_several_models_are_delivered_side_by_side(opened: Opened, tmp_path: Path) -> None:
    assert deliver_all(opened, [], 2) == []
    work(opened.place)
    study = opened.study()
    wanted = candidates(study, 1)
    models = deliver_all(opened, wanted, 2)
    assert [model.name for model in models] == [each.name for each in wanted]
    assert [model.role for model in models] == ["best", "baseline"]
    assert models[1].params >= models[0].params
    assert {name: model.path for name, model in delivered(opened).items()} == {
        model.name: str(tmp_path / "mine" / "models" / model.name) for model in models
    }


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.long
def test_one_that_cannot_be_trained_is_replaced_by_the_next_best(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = own_rows(tmp_path, training=TrainingChoice(steps=5, batch=8, length=16, learning_rate=1e30))
    with create(tmp_path / "mine", config).open() as opened:  # whatever is trained with such a rate fails
        work(opened.place)
        study = opened.study()
        ranked = [candidate.name for candidate in candidates(study, 9, baseline=False)]
        assert len(ranked) == 4
        assert deliver_all(opened, candidates(study, 1), 2) == []
        failed = undelivered(opened.log)
        assert sorted(each.name for each in failed.values()) == sorted([*ranked, "baseline"])
        assert {each.role for each in failed.values()} == {"best", "baseline"}
        said = capfd.readouterr().err
        for each in failed.values():
            assert "lower the learning rate" in each.reason
            assert f"{each.name} cannot be delivered: {each.reason}\n" in said
        assert candidates(study, 1) == []  # and none is tried again
        assert delivered(opened) == {}


@pytest.mark.slow
def test_a_wish_to_stop_from_before_the_first_step_is_heard(opened: Opened) -> None:
    wish = Interruption()
    wish.asked = True
    with pytest.raises(KeyboardInterrupt):
        deliver_all(opened, [candidate()], 1, wish)
    assert delivered(opened) == {}


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.long
def test_where_one_fails_the_others_are_delivered(opened: Opened) -> None:
    work(opened.place)
    study = opened.study()
    first, second, third = candidates(study, 3, baseline=False)
    note = Undelivered(first.name, first.role, first.card.digest, "no luck", first.trial)
    opened.log.append("note", "me", {"undelivered": asdict(note)})
    models = deliver_all(opened, [Candidate("baseline", "baseline", third.card), first], 1)
    assert [model.name for model in models] == [second.name, "baseline"]
    assert [candidate.name for candidate in candidates(study, 2, baseline=False)] == [second.name, third.name]


def test_what_is_too_slow_for_one_target_is_delivered_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, times = told(tmp_path, *TIMED, objectives=("accuracy:max", "latency_ms:min")), {0: 8.5, 2: 7.5}
    targets = {"nine": "latency_ms<=9", "eight": "latency_ms<=8"}
    opened: Any = SimpleNamespace(log=study.log, deliver=SimpleNamespace(targets=targets), study=lambda: study)
    opened.place = SimpleNamespace(folder=tmp_path)
    rounds: list[list[tuple[str, int | None]]] = []

    def one(each: Candidate) -> Delivered | None:
        costs = {"latency_ms": times[each.trial or 0]}
        try:
            refuse_slow(opened, each, costs)
        except TooSlow:
            return None
        return Delivered(each.name, each.role, each.card.digest, "", 1, 0, {}, None, each.trial, costs)

    def made(_: Any, chosen: list[Candidate], *__: Any) -> list[Delivered | None]:
        rounds.append([(each.name, each.trial) for each in chosen])
        return [one(each) for each in chosen]

    monkeypatch.setattr(module, "_side_by_side", made)
    models = deliver_all(opened, within_targets(study, targets), 1)
    assert rounds == [[("nine", 0)], [("nine", 0), ("eight", 2)]]
    assert [(model.name, model.trial) for model in models] == [("nine", 0), ("eight", 2)]


def test_a_model_in_the_folder_of_another_target_is_made_again_where_that_one_has_a_new_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a study that was extended: what was the best within one target is now that within another."""
    opened: Any = SimpleNamespace(deliver=SimpleNamespace(targets={"few": "", "fast": ""}))
    one, two = (Candidate(name, "front", SPACE.card(DESIGNS[number])) for number, name in enumerate(("few", "fast")))
    folders = {"fast": one.card.digest}  # of the first run

    def made(each: Candidate) -> Delivered:
        name = next((name for name, digest in folders.items() if digest == each.card.digest), each.name)
        folders[name] = each.card.digest
        return Delivered(name, each.role, each.card.digest, "", 1, 0, {}, None, None)

    monkeypatch.setattr(module, "_side_by_side", lambda _, chosen, *__: [made(each) for each in chosen])
    models = deliver_all(opened, [one, two], 1)
    assert folders == {"few": one.card.digest, "fast": two.card.digest}
    assert {model.name: model.digest for model in models} == folders
