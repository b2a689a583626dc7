"""The stage of a search: the study that follows from its options, and what is refused before it begins."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.nn.test_latency import ONE
from tests.pipeline.cases import create, here, own_rows, pipeline, quick, search_of
from tests.study.cases import new_log

from formwright.arch.card import Card
from formwright.core.errors import BuildFailed, FormwrightError, IllegalInput, UnknownName
from formwright.core.records import Request
from formwright.core.rng import derive
from formwright.cost import LATENCY, macs, params
from formwright.evaluate.context import Combine, Context
from formwright.nn.measurement import Latency
from formwright.pipeline.evaluators import ShareBranches, UntrainedScores
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.run_folder import claim_folder
from formwright.pipeline.runner import prepare
from formwright.pipeline.study_place import find
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.search import searcher
from formwright.search.evolution import RegularizedEvolution
from formwright.search.rungs import Halving
from formwright.space.zoo import load_space
from formwright.study.stop import Stop
from formwright.study.study import StudySetup

SPACE = load_space("flexibert-nano")
CARD = SPACE.card(SPACE.sample(derive(0)))


def studied(made: Pipeline, folder: Path, name: str = "one") -> StudySetup:
    return search_of(made).study(here(made, folder), new_log(folder, name), folder)


def assembled(folder: Path, **changes: Any) -> StudySetup:
    return studied(quick(**changes), folder)


def evaluator_of(made: Pipeline) -> Combine:
    found = search_of(made).bound_evaluator(here(made))
    assert isinstance(found, Combine)
    return found


def check(made: Pipeline) -> None:
    """Refuse what cannot be done, as a run does before it writes anything."""
    run = here(made)
    search_of(made).check(run)


def test_a_study_has_the_parts_that_are_named(tmp_path: Path) -> None:
    limits = ("accuracy>=0.1", "latency_ms<=100", "params<=1e9")
    study = assembled(tmp_path, limits=limits, seed=9, stop=Stop(40), searcher="regularized-evolution")
    assert study.space is SPACE
    assert [str(objective) for objective in study.objectives] == [
        "synflow:max",
        "params<=1000000000.0",
        "latency_ms<=100.0",
        "accuracy>=0.1",
    ]
    assert (study.stop, study.seed, study.folder) == (Stop(40), 9, tmp_path)
    assert isinstance(study.searcher, RegularizedEvolution)
    assert study.searcher.population == 10  # a quarter of the trials


def test_a_searcher_whose_study_is_extended_stays_as_it_is(tmp_path: Path) -> None:
    made = quick(stop=Stop(40), searcher="regularized-evolution")
    with create(tmp_path / "mine", made).open() as opened:
        opened.log.append("started", "me", {"begins": True, "stop": {"trials": 400}})
    with find(str(tmp_path / "mine")).open() as opened:
        study = opened.study()
        assert study.stop.trials == 400
        assert isinstance(study.searcher, RegularizedEvolution)
        assert study.searcher.population == 10  # a quarter of the trials that were planned first


def test_options_reach_the_searcher(tmp_path: Path) -> None:
    study = assembled(tmp_path, searcher=searcher("halving", eta=2), training=TrainingChoice(steps=54))
    assert isinstance(study.searcher, Halving)
    assert (study.searcher.eta, study.searcher.max_steps, study.searcher.min_steps) == (2, 54, 2)


def test_cheap_limits_keep_the_searcher_within(tmp_path: Path) -> None:
    sizes = sorted(params(SPACE.card(SPACE.sample(derive(number)))) for number in range(20))
    study = assembled(tmp_path, limits=(f"params<={sizes[10]}",))
    for number in range(10):
        card = study.searcher.ask(study.history(), derive(number)).card
        assert params(card) <= sizes[10]  # type: ignore[arg-type]


def test_first_designs_beyond_a_cheap_limit_are_skipped(tmp_path: Path) -> None:
    designs = sorted((SPACE.sample(derive(number)) for number in range(9)), key=lambda one: params(SPACE.card(one)))
    small, large = SPACE.card(designs[0]), designs[-1]
    first = tuple(map(SPACE.to_json, (large, designs[0])))
    study = assembled(tmp_path, first=first, limits=(f"params<={params(small)}",))
    assert study.searcher.ask(study.history(), derive(0)).card == small


def test_the_gate_measures_this_machine(tmp_path: Path) -> None:
    assert assembled(tmp_path, limits=("latency_ms<=1e9",)).gate(CARD) is None
    told = studied(quick(limits=("latency_ms<=1e-9",)), tmp_path, "two").gate(CARD)
    assert told is not None
    assert "latency_ms<=1e-09" in told


def test_what_the_gate_measured_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[Card] = []

    def each_time_another(card: Card, length: int, device: str) -> Latency:
        measured.append(card)
        return replace(ONE, median_ms=1.0 + len(measured))

    monkeypatch.setattr("formwright.nn.latency.measured_latency", each_time_another)
    study = assembled(tmp_path, limits=("latency_ms<=5",))
    assert study.gate(CARD) is None
    assert study.evaluator.evaluate(Request(CARD), Context()).metrics[LATENCY] == 2.0
    assert measured == [CARD]


def test_files_of_the_users_own_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = own_rows(tmp_path)
    monkeypatch.chdir(tmp_path)
    task = TaskChoice("mine.csv", data="rows")
    assert task.absolute() == replace(task, name=str(tmp_path / "mine.csv"), data=str(tmp_path / "rows"))
    (tmp_path / "mini-glue" / "sst2").mkdir(parents=True)
    assert TaskChoice("mini-glue/sst2").absolute().name == "mini-glue/sst2"  # what has a name is no path
    (tmp_path / "mine.py").write_text("from formwright.testing.toy_problem import small\nSMALL = small()\n")
    relative = replace(search_of(made).task, name="mine.csv")  # type: ignore[type-var]
    found = resolved(own_rows(tmp_path, space="mine.py:SMALL").changed({}), task=relative, space="mine.py:SMALL")
    assert found.space == f"{tmp_path / 'mine.py'}:SMALL"
    assert found.task.name == str(tmp_path / "mine.csv")


def test_an_observation_has_the_costs_that_anyone_asks_for_and_proxies_may_be_costs() -> None:
    made = quick(objectives=("synflow:max", "latency_ms:min"))
    found = evaluator_of(made).evaluate(Request(CARD), Context())
    assert set(found.metrics) == {"synflow", "params", "macs", LATENCY}
    assert (found.metrics["params"], found.metrics["macs"]) == (params(CARD), macs(CARD, 16))
    assert found.metrics[LATENCY] > 0
    made = quick(evaluator=UntrainedScores(("params",)), objectives=("params:max",))
    assert evaluator_of(made).evaluate(Request(CARD), Context()).metrics["params"] == params(CARD)
    check(made)


@pytest.mark.slow
def test_rows_shorten_the_training_alone() -> None:
    short, whole = TaskChoice("mini-glue/sst2", rows=7).load(), TaskChoice("mini-glue/sst2").load()
    assert len(short.search_view().train) == 7
    assert len(short.search_view().validation) == len(whole.search_view().validation)


def test_a_training_of_plain_values() -> None:
    training = TrainingChoice(7, 4, 1e-3, 0.2, "cosine", 0.5, 32, 0.1).make()
    recipe = training.recipe
    assert (recipe.steps, recipe.batch, recipe.learning_rate, recipe.warmup) == (7, 4, 1e-3, 0.2)
    assert (recipe.decay, recipe.weight_decay, training.length, training.settings.dropout) == ("cosine", 0.5, 32, 0.1)
    assert TrainingChoice(7).make(70).recipe.steps == 70
    with pytest.raises(IllegalInput, match="stairs"):
        TrainingChoice(decay="stairs").make()


def test_a_study_that_can_be_done_is_not_refused_but_one_without_branches_to_share_is() -> None:
    check(quick(limits=("params<=1e9", "latency_ms<=5000", "synflow>=0")))
    check(quick(evaluator="full", objectives=("accuracy:max", "macs:min")))
    check(sharing())
    with pytest.raises(IllegalInput, match=r"layer 0 is of the kind .*weights are shared in two branches where"):
        check(sharing(space="flexibert-nano"))


@pytest.mark.parametrize(
    ("change", "kind", "told"),
    [
        ({"space": "flexibert-nanno"}, UnknownName, "no space called 'flexibert-nanno'"),
        ({"task": TaskChoice("mini-glue/sst3")}, UnknownName, "no task called 'mini-glue/sst3'"),
        ({"evaluator": UntrainedScores(("sinflow",))}, UnknownName, "sinflow"),
        ({"objectives": ("acuracy:max",)}, UnknownName, "'acuracy'"),
        ({"objectives": ("accuracy:max",)}, UnknownName, "'accuracy'.*synflow"),
        ({"limits": ("paramz<=5",)}, UnknownName, "Nearest: 'params'"),
        ({"limits": ("params<=5",)}, IllegalInput, "the nearest has params"),
        ({"limits": ("latency_ms<=0.001",)}, IllegalInput, r"latency_ms<=0\.001"),
        ({"objectives": ("synflow:max", "writing_30x5_ms:min")}, IllegalInput, "writes no text"),
        ({"task": TaskChoice("digits")}, IllegalInput, "has images, but this card reads text"),
    ],
)
def test_a_study_that_nobody_could_do_is_refused_before_it_begins(
    change: dict[str, Any], kind: type[FormwrightError], told: str
) -> None:
    made = quick(**{"searcher": "regularized-evolution", **change})
    with pytest.raises(kind, match=told):
        check(made)


def sharing(**changes: Any) -> Pipeline:
    """Give a study whose designs share weights in two branches."""
    values = {"space": "autobert-zero-nano", "evaluator": ShareBranches(), "objectives": ("accuracy:max",)}
    return quick(**{**values, **changes})


OWN_SPACE = """
from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.ops import LightweightConvolution
from formwright.space import Choice, Record, Repeat, Space

def card(design):
    layers = tuple(Block(16, LightweightConvolution(kernel, 2), (32,)) for kernel in design.layers)
    return Card(encoder=Stack(TokenEmbedding(100, 16, types=2), layers))

mine = Space("mine", Record.of(layers=Repeat(Choice({kernels}), {depths})), card)
"""


@pytest.mark.parametrize(
    ("kernels", "depths", "told"),
    [
        ("(3, 5)", "(2, 3)", "two designs of this space have 2 and 3 layers"),
        ("(3, 4)", "2", "the kernel 4 of layer . is not in the centre of one of 65"),
    ],
)
def test_designs_that_cannot_share_weights_are_refused_unless_they_need_not(
    kernels: str, depths: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(OWN_SPACE.format(kernels=kernels, depths=depths), encoding="utf-8")
    space = f"{tmp_path / 'own.py'}:mine"
    with pytest.raises(IllegalInput, match=told):
        check(sharing(space=space))
    check(sharing(space=space, evaluator=ShareBranches(from_scratch=True)))


def test_a_design_that_cannot_be_built_is_told_before_the_study_begins(tmp_path: Path) -> None:
    text = OWN_SPACE.format(kernels="range(3, 63)", depths="1").replace("kernel, 2)", "kernel // (kernel != 41), 2)")
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    with pytest.raises(BuildFailed, match=r"of space 'mine' failed for the design .*41.*: ZeroDivisionError"):
        check(own_rows(tmp_path, space=f"{tmp_path / 'own.py'}:mine"))


def resolved(made: Pipeline, **changes: Any) -> Any:
    """Settle the options of a search, some of which are changed."""
    made = made.changed({"search": replace(search_of(made), **changes)})
    return search_of(made).resolved(here(made))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ("boshnas", "full", "accuracy:max")),
        ({"searcher": searcher("halving")}, ("halving", "staged", "accuracy:max")),
        ({"objectives": ("accuracy:max", "params:min")}, ("nsga2", "full", "accuracy:max")),
        ({"evaluator": UntrainedScores(("size", "synflow"))}, ("boshnas", "proxy", "size:max")),
    ],
)
def test_what_is_left_open_is_settled_from_space_and_task(
    options: dict[str, Any], expected: tuple[str, ...], tmp_path: Path
) -> None:
    made = own_rows(tmp_path)
    left_open = {"searcher": None, "evaluator": None, "objectives": (), "training": TrainingChoice(batch=8)}
    found = resolved(made, **{**left_open, **options})
    assert (found.searcher.name, found.evaluator.NAME, found.objectives[0]) == expected
    assert found.training == TrainingChoice(100, 8, length=16, device="cpu")  # ten epochs of 80 rows
    assert resolved(made, **{**left_open, **options, "training": found.training}) == found


def test_a_search_that_is_resumed_keeps_its_number_of_threads(tmp_path: Path) -> None:
    training = TrainingChoice(steps=5, batch=8, length=16, device="cpu", threads=7)
    run = PipelineRun(quick(training=training), tmp_path)
    claim_folder(run.out, prepare(run), force=False)
    for given, kept in ((None, 7), (3, 3)):
        again = here(quick(training=replace(training, threads=given)), tmp_path)
        assert again.stage.resolved(again).training.threads == kept


def test_without_a_goal_and_a_task_there_is_nothing_to_improve() -> None:
    made = pipeline(space="flexibert-nano", evaluator="proxy")
    assert resolved(made).objectives == ("synflow:max",)
    with pytest.raises(IllegalInput, match="objectives"):
        resolved(made, evaluator=search_of(quick(evaluator="full")).evaluator)
