from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.cli.conftest import in_one_process
from tests.evaluate.test_shared import NARROW, THIN, WHOLE, network
from tests.evaluate.toy import SCORED
from tests.pipeline.cases import Given, create, here, own_rows, quick, work
from tests.pipeline.compressions import begun, compression, made
from tests.pipeline.test_chosen_designs import DESIGNS, SPACE, TIMED, told
from tests.train.cases import ENCODER, LENGTH, SPANS

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed
from formwright.core.rng import derive
from formwright.evaluate import shared
from formwright.evaluate.final import openings
from formwright.evaluate.shared import SharedWeights
from formwright.nn.build import build
from formwright.nn.hf.save import load_folder, save_pretrained_folder
from formwright.nn.task_model import TaskModel
from formwright.pipeline import delivery as module
from formwright.pipeline.chosen_designs import Candidate, candidates, within_targets
from formwright.pipeline.deliver import Deliver
from formwright.pipeline.delivered import Delivered, Undelivered, card_of_model, delivered, misses, undelivered
from formwright.pipeline.delivery import (
    LARGEST_DIFFERENCE,
    deliver,
    deliver_all,
    made_before,
    refuse_another,
    trainer_of,
)
from formwright.pipeline.measure_models import TargetMissed, check_targets
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun, RunOptions
from formwright.pipeline.search import Search
from formwright.pipeline.study_place import Opened, find
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.space.zoo import load_space
from formwright.supernet.automatic import sub_network
from formwright.tasks.task import Task
from formwright.train.distil import Mix
from formwright.train.interrupt import Interruption


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    with create(tmp_path / "mine", own_rows(tmp_path)).open() as found:
        yield found


def candidate() -> Candidate:
    space = load_space("flexibert-nano")
    return Candidate("trial-7", "best", space.card(space.sample(derive(4))), 7)


def test_a_folder_that_was_emptied_or_damaged_is_no_delivered_model(opened: Opened) -> None:
    model = Delivered("trial-7", "best", candidate().card.digest, "", 1, 5, {"accuracy": 0.5}, None, 7)
    opened.log.append("note", "me", {"model": asdict(model)})
    folder = Path(delivered(opened)["trial-7"].path)
    folder.mkdir(parents=True)
    assert made_before(opened, candidate()) is None
    folder.rmdir()
    save_pretrained_folder(build(candidate().card), folder)
    assert made_before(opened, candidate()) == delivered(opened)["trial-7"]
    for name in ("config.json", "model.safetensors"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])
        assert made_before(opened, candidate()) is None
        (folder / name).write_bytes(content)
    assert made_before(opened, candidate()) == delivered(opened)["trial-7"]


def test_delivered_models_stop_early_and_trials_do_not(tmp_path: Path) -> None:
    with create(tmp_path / "mine", own_rows(tmp_path, final_steps=60)).open() as opened:
        final = trainer_of(opened).training
        assert final.judge_every is not None
        assert (final.recipe.steps, final.least) == (60, 30)
        assert opened.search.setting(opened.here).trainer.training.judge_every is None


@pytest.mark.slow
def test_a_delivered_model_loads_and_is_noted_and_tested_once(opened: Opened, tmp_path: Path) -> None:
    steps: list[int] = []
    found = deliver(opened, candidate(), lambda step, _: steps.append(step))
    assert len(steps) == opened.deliver.steps == found.steps
    assert (found.name, found.role, found.trial, found.digest) == ("trial-7", "best", 7, candidate().card.digest)
    assert found.path == str(tmp_path / "mine" / "models" / "trial-7")
    assert card_of_model(found) == candidate().card
    model = load_folder(found.path)
    assert isinstance(model, TaskModel)
    assert model.transformer.card == candidate().card
    check_scores(found.validation)
    check_scores(found.test)
    readme = (Path(found.path) / "README.md").read_text(encoding="utf-8")
    assert "test accuracy" in readme
    assert "flexibert-nano" in readme
    assert str(tmp_path) not in readme
    assert delivered(opened) == {"trial-7": found}
    opened_before = openings(tmp_path / "mine" / "final" / "trial-7")
    assert len(opened_before) == 1

    def fail(_: int, __: float) -> None:
        pytest.fail("trained again")

    assert deliver(opened, candidate(), fail) == found
    moved = (tmp_path / "mine").rename(tmp_path / "moved")
    with find(str(moved)).open() as again:
        kept = deliver(again, candidate(), fail)
        assert kept.path == str(moved / "models" / "trial-7")
        assert card_of_model(kept) == candidate().card
    assert openings(moved / "final" / "trial-7") == opened_before


def check_scores(scores: Mapping[str, float] | None) -> None:
    assert scores is not None
    assert 0.0 <= scores["accuracy"] <= 1.0


@pytest.mark.long
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
    interruption = Interruption()
    interruption.asked = True
    with pytest.raises(KeyboardInterrupt):
        deliver_all(opened, [candidate()], 1, interruption)
    assert delivered(opened) == {}


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
            check_targets(opened, each, costs)
        except TargetMissed:
            return None
        return Delivered(each.name, each.role, each.card.digest, "", 1, 0, {}, None, each.trial, costs)

    def made(_: Any, chosen: list[Candidate], *__: Any) -> list[Delivered | None]:
        rounds.append([(each.name, each.trial) for each in chosen])
        return [one(each) for each in chosen]

    monkeypatch.setattr(module, "_side_by_side", made)
    models = deliver_all(opened, within_targets(study, targets), 1)
    assert rounds == [[("nine", 0)], [("nine", 0), ("eight", 2)]]
    assert [(model.name, model.trial) for model in models] == [("nine", 0), ("eight", 2)]


def test_a_model_that_was_made_before_is_no_more_delivered_for_a_target_that_it_misses(tmp_path: Path) -> None:
    targets = {"fast": "latency_ms<=5", "slow": "latency_ms<=9"}
    with create(tmp_path / "mine", own_rows(tmp_path, targets=targets)).open() as opened:
        costs = {"latency_ms": 7.0}
        model = Delivered("fast", "front", candidate().card.digest, "", 1, 5, {"accuracy": 0.5}, None, 7, costs)
        opened.log.append("note", "me", {"model": asdict(model)})
        folder = save_pretrained_folder(build(candidate().card), tmp_path / "mine" / "models" / "fast")
        kept = deliver(opened, Candidate("fast", "front", candidate().card, 7, keeps=("slow",)))
        assert (kept.path, kept.costs) == (str(folder), costs)
        with pytest.raises(TargetMissed):
            deliver(opened, Candidate("fast", "front", candidate().card, 7, keeps=("slow", "fast")))
        assert {name: list(one) for name, one in misses(opened.log.read()).items()} == {"fast": [model.digest]}


def test_nothing_is_left_of_a_model_that_is_not_its_sub_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(_: Any, __: Any, folder: Path, *___: Any) -> None:
        folder.mkdir(parents=True)
        (folder / "model.safetensors").touch()

    def refuse(*_: Any) -> None:
        raise EvaluationFailed("another one")

    verdict = SimpleNamespace(model=None, validation={}, test=None, evidence={})
    for name, instead in {
        "_verdict": lambda *_: verdict,
        "_network": lambda _: None,
        "write_task_model": write,
        "refuse_another": refuse,
    }.items():
        monkeypatch.setattr(module, name, instead)
    with create(tmp_path / "mine", own_rows(tmp_path, final_steps=0)).open() as opened:
        with pytest.raises(EvaluationFailed, match="another one"):
            deliver(opened, candidate())
        assert list((tmp_path / "mine" / "models").iterdir()) == []
        assert [each.reason for each in undelivered(opened.log).values()] == ["another one"]
        assert delivered(opened) == {}


@pytest.mark.parametrize(
    ("weights", "targets", "workers"),
    [("shared", {"few": "params<=1"}, 1), ("fresh", {"few": "params<=1"}, 3), ("shared", {}, 3)],
)
def test_what_is_measured_for_targets_is_delivered_one_by_one(
    weights: str, targets: dict[str, str], workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int] = []
    monkeypatch.setattr(module, "deliver_all", lambda _, __, workers, ___: used.append(workers) or [])
    made = own_rows(tmp_path, final_weights=weights, targets=targets)
    create(tmp_path / "mine", made)
    (stage,) = made.of_kind(Deliver)
    stage.make(PipelineRun(made, tmp_path / "mine", RunOptions(workers=3)).stage(stage))
    assert used == [workers]


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


@pytest.mark.slow
def test_the_delivery_for_two_targets_reads_the_super_network_once_and_the_task_not_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    real, load = shared.from_hf, TaskChoice.load
    monkeypatch.setattr(shared, "from_hf", lambda folder, **how: reads.append(folder.name) or real(folder, **how))
    monkeypatch.setattr(TaskChoice, "load", lambda task: reads.append("task") or load(task))
    in_one_process(monkeypatch)
    run = begun(compression(tmp_path, targets=("macs=75%", "macs=50%")), tmp_path / "out")
    made(run, "search")
    reads.clear()  # those of the workers, which are processes of their own
    assert {model.role for model in made(run, "deliver")} == {"teacher", "front"}
    assert reads == ["super-network"]


@pytest.fixture(scope="module")
def trained() -> SharedWeights:
    return network(steps=10)


def written(model: TaskModel, folder: Path) -> Path:
    return save_pretrained_folder(model, folder / "model", force=True)


@pytest.mark.parametrize("part", [WHOLE, NARROW, THIN], ids=["whole", "narrow", "thin"])
def test_the_very_sub_network_is_proved(part: Card, trained: SharedWeights, tmp_path: Path) -> None:
    folder = written(trained.extracted(part), tmp_path)
    assert refuse_another(folder, trained, part) <= LARGEST_DIFFERENCE


@pytest.mark.parametrize(
    ("task", "card", "length"), [(SCORED, WHOLE, 12), (SPANS, ENCODER, LENGTH)], ids=["regression", "spans"]
)
def test_every_kind_of_answer_is_compared(task: Task, card: Card, length: int, tmp_path: Path) -> None:
    whole = network(task, card, length, steps=1)
    part = sub_network(card, ((1, 16),) * len(card.stacks[0].layers))
    assert refuse_another(written(whole.extracted(part), tmp_path), whole, part) <= LARGEST_DIFFERENCE


@pytest.mark.parametrize("change", [1e-3, float("nan")])
def test_other_weights_are_found_out(change: float, trained: SharedWeights, tmp_path: Path) -> None:
    model = trained.extracted(NARROW)
    with torch.no_grad():
        model.head.output.bias += change  # type: ignore[union-attr, operator]
    folder = written(model, tmp_path)
    with pytest.raises(EvaluationFailed, match=rf"the model in {folder} differs from its sub-network by "):
        refuse_another(folder, trained, NARROW)


def test_another_sub_network_is_found_out(trained: SharedWeights, tmp_path: Path) -> None:
    other = sub_network(WHOLE, ((1, 8), (1, 16)))
    with pytest.raises(EvaluationFailed, match="differs from its sub-network"):
        refuse_another(written(trained.extracted(other), tmp_path), trained, THIN)


def test_delivered_models_are_taught_as_the_options_say() -> None:
    options: dict[str, Any] = {"teacher": Given("model"), "labels": 0.3, "temperature": 3.0}
    (stage,) = (made := quick(**options)).of_kind(Deliver)
    taught = stage.teaching(here(made, kind=Deliver))
    assert taught is not None
    assert (taught.teacher, taught.mix) == ("model", Mix(labels=0.3, scores=0.7, temperature=3.0))
    (untrained,) = (made := quick(**options, final_steps=0)).of_kind(Deliver)
    assert untrained.teaching(here(made, kind=Deliver)) is None


@pytest.mark.parametrize(
    ("own", "drawn", "targets", "keep"),
    [
        ({}, {"few": "params<=1", "less": "macs<=1"}, {"few": "params<=1", "less": "macs<=1"}, 2),
        ({"mine": "params<=2"}, {"few": "params<=1"}, {"mine": "params<=2"}, 5),
        ({}, {}, {}, 5),
    ],
)
def test_targets_of_its_own_count_before_those_of_the_space(
    own: dict[str, str], drawn: dict[str, str], targets: dict[str, str], keep: int
) -> None:
    search = Search(space := Given(SimpleNamespace(limits=drawn)))
    stage = Deliver(search, targets=own, keep=5)
    found = stage.within_targets(here(Pipeline(space, search, stage), kind=Deliver))
    assert (found.targets, found.keep) == (targets, keep)
