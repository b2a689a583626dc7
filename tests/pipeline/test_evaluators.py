"""Evaluators as parts: what they bind to, what they refuse, and what the last training of a design begins with."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.evaluate.test_shared import NARROW, WHOLE, network
from tests.evaluate.toy import TASK, card
from tests.pipeline.cases import Given, create, here, own_rows, quick, search_of, work
from tests.pipeline.test_search import evaluator_of, sharing, studied

from formwright.arch.card import Card
from formwright.core.codec import range_faults
from formwright.core.errors import EvaluationFailed, IllegalInput, UnknownName
from formwright.core.options import PartReader, PartWriter, PythonObject
from formwright.core.records import Budget, History, Observation, Request
from formwright.core.rng import derive
from formwright.cost import macs, params
from formwright.cost.latency_tables import LatencyTable, PartTimes
from formwright.evaluate.bi_branch import BRANCHES, BiBranch, FromStore
from formwright.evaluate.context import Context
from formwright.evaluate.inherited import Inherited, Pretrained, Pretraining
from formwright.evaluate.proxies.synflow import synflow
from formwright.evaluate.shared import Shared
from formwright.evaluate.training import Staged, Trainer
from formwright.nn.build import build
from formwright.nn.hf.save import load_folder
from formwright.nn.task_model import TaskModel
from formwright.pipeline.chosen_designs import Candidate, candidates
from formwright.pipeline.delivered import undelivered
from formwright.pipeline.delivery import deliver
from formwright.pipeline.evaluators import (
    PRETRAINING,
    EvaluatorPart,
    InheritWeights,
    PretrainFirst,
    ShareBranches,
    TrainFully,
    UntrainedScores,
)
from formwright.pipeline.function_evaluator import FunctionEvaluator
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.shared_evaluator import SharedSubnetworks
from formwright.pipeline.study_place import Opened, find
from formwright.pipeline.task_choice import TrainingChoice
from formwright.search.listing import Nearness
from formwright.space.elastic import ElasticChoices
from formwright.space.zoo import load_space
from formwright.study.stop import Stop
from formwright.supernet.branches import Branches
from formwright.tasks.corpora import pydoc_splits
from formwright.train.fit import fresh_model
from formwright.train.prepare import prepare

SPACE = load_space("flexibert-nano")
CARD = SPACE.card(SPACE.sample(derive(0)))
TINY = f"{Path(__file__).parents[1] / 'supernet' / 'branched.py'}:SPACE"


class Killed(BaseException):
    """What nobody catches."""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # trainings save their checkpoints in folders that are named from here


def bound(made: Pipeline) -> Any:
    (scores,) = evaluator_of(made).evaluators
    return scores


def start_of(made: Pipeline, steps: int, weights: Any = "fresh", folder: Path = Path("absent")) -> Any:
    """Give what the last training of a design begins with."""
    search = search_of(made)
    assert search.evaluator is not None
    return search.evaluator.start(search.setting(here(made)), steps, weights, folder, History())


# --- the parts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), [("full", Trainer), ("staged", Staged), ("inherited", Inherited)])
def test_evaluators_by_name(name: str, kind: type) -> None:
    assert isinstance(bound(quick(evaluator=name)), kind)


@pytest.mark.parametrize(
    "part",
    [
        TrainFully(),
        InheritWeights(0.5),
        PretrainFirst(7, "pydoc", 0.5),
        ShareBranches(7, from_scratch=True),
        UntrainedScores(("params", "synflow")),
        FunctionEvaluator(PythonObject("mine:score"), "score"),
    ],
    ids=lambda part: part.NAME,
)
def test_evaluators_survive_json(part: EvaluatorPart) -> None:
    reader = PartReader()
    assert reader.finished(reader.read(EvaluatorPart, PartWriter().value(part)), "evaluator") == part


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        (PretrainFirst(steps=0), "steps"),
        (PretrainFirst(least_overlap=1.5), "least_overlap"),
        (InheritWeights(-0.5), "least_overlap"),
        (SharedSubnetworks(Given(1), rows=0), "rows"),
    ],
)
def test_options_out_of_range_are_found(part: EvaluatorPart, wrong: str) -> None:
    assert [fault.where for fault in range_faults(part, "evaluator")] == [f"evaluator.{wrong}"]


def test_a_text_that_is_not_there_is_refused() -> None:
    reader = PartReader()
    reader.read(EvaluatorPart, {"name": "pretrained", "text": "books"}, "evaluator")
    (fault,) = reader.faults
    assert fault.where == "evaluator.text"
    assert "pydoc" in fault.what


def test_a_function_is_an_evaluator() -> None:
    made = quick(evaluator=FunctionEvaluator(_twice, "score"), objectives=("score:max",))
    found = bound(made).evaluate(Request(CARD, Budget(3)), Context())
    assert found.metrics == {"score": 2.0 * params(CARD)}
    assert found.spent.steps == 3
    both = bound(quick(evaluator=FunctionEvaluator(lambda *_: {"a": 1, "b": 2.5}))).evaluate(Request(CARD), Context())
    assert both.metrics == {"a": 1, "b": 2.5}
    own = Observation({"mine": 1.0})
    assert bound(quick(evaluator=FunctionEvaluator(lambda *_: own))).evaluate(Request(CARD), Context()) is own


@pytest.mark.parametrize(("given", "told"), [({"a": 1}, "gave a, but no b"), ({}, "gave nothing, but no a")])
def test_a_function_gives_every_score_that_the_study_names(given: dict[str, float], told: str) -> None:
    made = quick(evaluator=FunctionEvaluator(lambda *_: given, "a", ("a", "b")))
    with pytest.raises(EvaluationFailed, match=told):
        bound(made).evaluate(Request(CARD), Context())


def _twice(card: Card, budget: Budget) -> float:
    return 2.0 * params(card)


def test_a_function_that_only_its_program_has_says_so() -> None:
    stored = PartWriter().value(FunctionEvaluator(_twice))
    assert stored["function"] == {"python": f"{__name__}:_twice"}
    read = PartReader().read(EvaluatorPart, stored)
    with pytest.raises(IllegalInput, match="_twice"):
        bound(quick(evaluator=read)).evaluate(Request(CARD), Context())


def test_designs_are_pretrained_or_share_weights_where_the_evaluator_says_so() -> None:
    scores = bound(quick(evaluator=PretrainFirst(40, "pydoc", 0.5), objectives=("accuracy:max",)))
    assert isinstance(scores, Pretrained)
    assert (scores.inherited.least, scores.pretraining.training.recipe.steps) == (0.5, 40)
    assert scores.inherited.distance == Nearness(SPACE, most=None)
    assert scores.pretraining.text == pydoc_splits().train
    assert bound(quick(evaluator="pretrained")).pretraining.text is None
    space = load_space("autobert-zero-nano")
    for seed in range(2):
        scores = bound(sharing(evaluator=ShareBranches(7), seed=seed))
        assert isinstance(scores, BiBranch)
        assert scores.branches == Branches.of(space.card(space.sample(derive(9))))
        assert (scores.pretraining.training.recipe.steps, scores.from_scratch) == (7, False)
    assert bound(sharing(evaluator=ShareBranches(from_scratch=True))).from_scratch


# --- sub-networks of shared weights --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def weights() -> Any:
    return network(steps=5)


def shared(weights: Any, *objectives: str, **changes: Any) -> Pipeline:
    """Give a study of the sub-networks of a tiny encoder, whose parts were measured."""
    choices = ElasticChoices(WHOLE, ((1, 2),) * 2, ((16, 32),) * 2)
    table = LatencyTable({16: PartTimes(1.0, {0: 0.0, 2: 1.0}, {0: 0.0, 32: 2.0})})
    values = {
        "space": choices.space,
        "task": TASK,
        "objectives": ("accuracy:max", *objectives),
        "evaluator": SharedSubnetworks(Given(weights)),
        "training": TrainingChoice(steps=5, batch=8, length=12, device="cpu"),
        "cost_table": Given(table),
        "first": (choices.space.to_json(choices.design(((1, 16), (2, 32)))),),
    }
    return quick(**{**values, **changes})


def test_sub_networks_are_judged_by_the_weights_and_costed_by_the_table(weights: Any, tmp_path: Path) -> None:
    study = studied(shared(weights, "macs:min", "latency_ms:min"), tmp_path)
    request = study.searcher.ask(History(), derive(0))
    assert request.card == NARROW  # the first that was named
    found = study.evaluator.evaluate(request, Context(folder=tmp_path))
    assert found.metrics.keys() == {"accuracy", "params", "macs", "latency_ms"}
    assert found.metrics["latency_ms"] == 1.0 + (0.5 + 1.0) + (1.0 + 2.0)
    assert "answers" in found.artifacts


def test_rivals_of_a_sub_network_cost_no_more_and_some_rows_may_judge(weights: Any) -> None:
    def races(*objectives: str) -> list[float]:
        scored = bound(shared(weights, *objectives))
        assert isinstance(scored, Shared)
        return [scored.cost(WHOLE), *(cost(WHOLE) for cost in scored.others)]

    assert races("macs:min", "latency_ms:min") == [macs(WHOLE, 12), 7.0]
    assert races("latency_ms:min") == [7.0]
    assert races() == [params(WHOLE)]
    assert bound(shared(weights, evaluator=SharedSubnetworks(Given(weights), rows=7))).most == 7


def test_designs_are_judged_in_groups_on_an_accelerator_or_where_that_is_asked_for(
    weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bound(shared(weights)).together == 1
    assert bound(shared(weights, evaluator=SharedSubnetworks(Given(weights), together=3))).together == 3
    monkeypatch.setattr("formwright.train.device.choose_device", lambda _: torch.device("mps"))
    assert bound(shared(weights)).together > 1


def test_sub_networks_are_delivered_with_their_weights_and_the_models_own_tokeniser(weights: Any) -> None:
    made = shared(weights)
    setting = search_of(made).setting(here(made))
    assert setting.tokeniser is weights.prepared.tokeniser
    model = start_of(made, 5, "shared")(NARROW, weights.prepared, setting.training)
    wanted = weights.extracted(NARROW).state_dict()
    assert all(tensor.equal(wanted[name]) for name, tensor in model.state_dict().items())
    assert start_of(made, 5) is fresh_model


# --- what the last training begins with ----------------------------------------------------------------------------


def test_the_final_training_begins_as_those_of_the_search_do() -> None:
    made = quick(evaluator=PretrainFirst(40))
    setting = search_of(made).setting(here(made))
    longer = search_of(made).evaluator.pretraining(setting, 15)  # type: ignore[union-attr]
    assert longer.training.recipe.steps == 120  # three times as long as well
    assert start_of(quick(), 15) is fresh_model
    task, training = setting.task, setting.trainer.training
    assert task is not None
    prepared = prepare(task, CARD, 16)
    pretrained = start_of(quick(evaluator=PretrainFirst(1)), 5)(CARD, prepared, training)
    fresh = fresh_model(CARD, prepared, training)
    words = [model.transformer.encoder.embedding.tokens.weight for model in (pretrained, fresh)]
    assert not words[0].equal(words[1])
    assert pretrained.head.output.weight.equal(fresh.head.output.weight)


@pytest.mark.parametrize("made", [quick(evaluator=PretrainFirst(2)), sharing(evaluator=ShareBranches(2))])
def test_the_pretraining_of_a_delivered_model_is_saved_in_its_folder(
    made: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pretraining, "start", lambda self: self.folder)
    assert start_of(made, 5, folder=tmp_path) == tmp_path / PRETRAINING


def test_the_final_training_of_designs_that_shared_weights_begins_with_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[int] = []

    def learnt(self: Pretraining, card: Card, *_: Any) -> dict[str, Any]:
        steps.append(self.training.recipe.steps)
        return dict(build(card).state_dict())

    monkeypatch.setattr(Pretraining, "learnt", learnt)
    made = sharing(evaluator=ShareBranches(2))
    setting = search_of(made).setting(here(made))
    card = setting.space.card(setting.space.sample(derive(0)))
    assert setting.task is not None
    start_of(made, 15)(card, prepare(setting.task, card, 16), setting.training)
    assert steps == [15]  # as many as fine-tune it, not three times those of a trial


@pytest.mark.parametrize("evaluator", [TrainFully(), PretrainFirst(), ShareBranches(from_scratch=True)])
def test_weights_that_no_trial_leaves_cannot_be_begun_with(evaluator: EvaluatorPart) -> None:
    assert not evaluator.shares_weights()
    with pytest.raises(IllegalInput, match="fresh"):
        start_of(quick(evaluator=evaluator), 5, "shared")


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a study whose trials shared weights, before anything was delivered."""
    folder = tmp_path_factory.mktemp("searched")
    values = {"space": TINY, "evaluator": ShareBranches(2), "objectives": ("accuracy:max",)}
    work(create(folder / "study", own_rows(folder, **values, final_weights="shared", stop=Stop(3))))
    return folder / "study"


@pytest.fixture
def opened(searched: Path, tmp_path: Path) -> Iterator[Opened]:
    """Give a copy of the study of its own."""
    shutil.copytree(searched, tmp_path / "study")
    with find(str(tmp_path / "study")).open() as found:
        yield found


def chosen(opened: Opened) -> dict[str, Candidate]:
    """Give the best design and the one to beat."""
    return {candidate.role: candidate for candidate in candidates(opened.study(), 1, baseline=True)}


@pytest.mark.slow
def test_a_design_begins_with_what_all_trials_left(opened: Opened) -> None:
    evaluator, setting = opened.search.evaluator, opened.search.setting(opened.here)
    assert isinstance(evaluator, ShareBranches)
    folder = opened.place.folder / "final" / "own"
    start = evaluator.start(setting, 5, "shared", folder, opened.study().history())
    assert isinstance(start, FromStore)
    assert start.store.version == opened.search.stop.trials
    assert start.pretraining == evaluator.pretraining(setting, 5, 5, folder / PRETRAINING)


@pytest.mark.slow
def test_the_model_card_tells_what_a_model_began_with(opened: Opened) -> None:
    """A baseline is no design of the space, and begins with weights of its own."""
    told = {role: (Path(deliver(opened, one).path) / "README.md").read_text() for role, one in chosen(opened).items()}
    assert "the weights that the trials shared" in told["best"]
    assert "the weights that the trials shared" not in told["baseline"]


@pytest.mark.long
def test_a_delivery_that_was_killed_twice_goes_on_to_the_same_model(
    opened: Opened, searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    best, done = chosen(opened)["best"], list[int]()
    monkeypatch.setattr("formwright.evaluate.inherited._SAVE_EVERY", 2)
    with monkeypatch.context() as patch:
        patch.setattr(Pretraining, "learnt", _killed_at_step_3(Pretraining.learnt))
        with pytest.raises(Killed):
            deliver(opened, best)
    with pytest.raises(Killed):
        deliver(opened, best, kill)
    (saved,) = (opened.place.folder / "final" / best.name / PRETRAINING).iterdir()
    assert sorted(path.name for path in saved.iterdir()) == ["step-000000004", "step-000000005"]
    disturbed = state(deliver(opened, best, lambda step, _: done.append(step)).path)
    assert done == list(range(opened.deliver.steps or 0))
    shutil.copytree(searched, tmp_path / "again")
    with find(str(tmp_path / "again")).open() as again:
        undisturbed = state(deliver(again, best).path)
    assert all(tensor.equal(undisturbed[name]) for name, tensor in disturbed.items())


def kill(step: int, _: float) -> None:
    if step == 3:
        raise Killed


def _killed_at_step_3(learnt: Any) -> Any:
    return lambda *given, **named: learnt(*given, **{**named, "after_step": kill})


def state(folder: str) -> dict[str, torch.Tensor]:
    model = load_folder(folder)
    assert isinstance(model, TaskModel)
    return dict(model.state_dict())


@pytest.mark.slow
def test_a_store_that_is_lost_is_no_fault_of_the_design(opened: Opened) -> None:
    best, files = chosen(opened)["best"], sorted((opened.place.folder / BRANCHES).iterdir())
    contents = {path: path.read_bytes() for path in files}
    with pytest.MonkeyPatch.context() as patch:
        # as where trials ran side by side: nobody can tell what the lost one began with
        patch.setattr("formwright.evaluate.bi_branch.BiBranch._mend", lambda *_: None)
        files[0].unlink()
        with pytest.raises(IllegalInput, match="put the file back"):
            deliver(opened, best)
        assert not undelivered(opened.log)
        files[0].write_bytes(contents[files[0]])
        assert deliver(opened, best).digest == best.card.digest


def test_proxies_score_without_training() -> None:
    design = card(32, 16)
    found = UntrainedScores(("synflow", "params")).evaluate(Request(design, Budget(3)), Context(4))
    assert found.metrics == {"synflow": synflow(design, 4), "params": params(design)}
    assert (found.spent.steps, found.spent.macs, found.artifacts) == (0, 0, {})
    assert found.spent.seconds > 0
    with pytest.raises(UnknownName, match="Nearest: 'synflow'"):
        bound(quick(evaluator=UntrainedScores(("params", "sinflow")), objectives=("params:min",)))
    with pytest.raises(IllegalInput, match="params, synflow"):
        UntrainedScores(())
