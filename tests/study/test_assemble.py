import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.compress.tiny import BERT, bert, tokeniser
from tests.study.cases import new_log, own_rows, quick_config
from tests.study.test_latency import ONE

from formwright.arch.card import Card
from formwright.core.errors import BuildFailed, FormwrightError, IllegalInput, UnknownName
from formwright.core.records import History, Objective, Request
from formwright.core.rng import derive
from formwright.cost import macs, params
from formwright.cost.latency_table import LatencyTable, PartTimes
from formwright.evaluate.bi_branch import BiBranch
from formwright.evaluate.combine import Combine
from formwright.evaluate.context import Context
from formwright.evaluate.full import Full
from formwright.evaluate.inherited import Inherited
from formwright.evaluate.pretrained import Pretrained
from formwright.evaluate.shared import Shared
from formwright.evaluate.staged import Staged
from formwright.nn.heads import HeadSpec
from formwright.nn.measure import Latency
from formwright.search.evolution import RegularizedEvolution
from formwright.search.halving import Halving
from formwright.search.neighbours import Nearness
from formwright.space.zoo import load_space
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.study.assemble import (
    assemble,
    find_task,
    make_evaluator,
    make_pretraining,
    make_trainer,
    make_training,
    refuse_faulty,
    shared_weights,
    with_whole_paths,
)
from formwright.study.config import Config, PretrainingChoice, TaskChoice, TrainingChoice
from formwright.study.final_start import make_final_start
from formwright.study.latency import latency_of
from formwright.study.limits import LATENCY
from formwright.study.place import create, find
from formwright.study.stop import Stop
from formwright.study.study import Study
from formwright.supernet.automatic import sub_network
from formwright.supernet.branches import Branches
from formwright.tasks.pydoc import pydoc_splits
from formwright.train.prepare import prepare

SPACE = load_space("flexibert-nano")
CARD = SPACE.card(SPACE.sample(derive(0)))


def assembled(folder: Path, **changes: Any) -> Study:
    return assemble(quick_config(**changes), new_log(folder), folder)


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
    config = quick_config(stop=Stop(40), searcher="regularized-evolution")
    with create(tmp_path / "mine", config).open() as opened:
        opened.log.append("started", "me", {"begins": True, "stop": {"trials": 400}})
    with find(str(tmp_path / "mine")).open() as opened:
        study = assemble(opened.config, opened.log, tmp_path)
        assert study.stop.trials == 400
        assert isinstance(study.searcher, RegularizedEvolution)
        assert study.searcher.population == 10  # a quarter of the trials that were planned first


def test_options_reach_the_searcher(tmp_path: Path) -> None:
    study = assembled(tmp_path, searcher="halving", options={"eta": 2}, training=TrainingChoice(steps=54))
    assert isinstance(study.searcher, Halving)
    assert (study.searcher.eta, study.searcher.max_steps, study.searcher.min_steps) == (2, 54, 2)


def test_cheap_limits_keep_the_searcher_within(tmp_path: Path) -> None:
    sizes = sorted(params(SPACE.card(SPACE.sample(derive(number)))) for number in range(20))
    study = assembled(tmp_path, limits=(f"params<={sizes[10]}",))
    for number in range(10):
        card = study.searcher.ask(study.history(), derive(number)).card
        assert params(card) <= sizes[10]  # type: ignore[arg-type]


def test_the_gate_measures_this_machine(tmp_path: Path) -> None:
    assert assembled(tmp_path, limits=("latency_ms<=1e9",)).gate(CARD) is None
    told = assemble(quick_config(limits=("latency_ms<=1e-9",)), new_log(tmp_path, "two"), tmp_path).gate(CARD)
    assert told is not None
    assert "latency_ms<=1e-09" in told


def test_what_the_gate_measured_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[Card] = []

    def each_time_another(card: Card, length: int, device: str) -> Latency:
        measured.append(card)
        return replace(ONE, median_ms=1.0 + len(measured))

    monkeypatch.setattr("formwright.study.latency.measured_latency", each_time_another)
    study = assembled(tmp_path, limits=("latency_ms<=5",))
    assert study.gate(CARD) is None
    assert study.evaluator.evaluate(Request(CARD), Context()).metrics[LATENCY] == 2.0
    assert measured == [CARD]


def test_files_of_the_users_own_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films.csv").touch()
    task = TaskChoice("films.csv", data="rows")
    found = with_whole_paths(quick_config(space="mine.py:SMALL", task=task))
    assert found.space == f"{tmp_path / 'mine.py'}:SMALL"
    assert (found.task.name, found.task.data) == (str(tmp_path / "films.csv"), str(tmp_path / "rows"))
    assert with_whole_paths(quick_config(space="mine.json")).space == str(tmp_path / "mine.json")
    (tmp_path / "mini-glue" / "sst2").mkdir(parents=True)
    assert with_whole_paths(quick_config()) == quick_config()  # what has a name is no path


@pytest.mark.parametrize(("name", "kind"), [("full", Full), ("staged", Staged), ("inherited", Inherited)])
def test_evaluators_by_name(name: str, kind: type) -> None:
    evaluator = make_evaluator(quick_config(evaluator=name), ())
    assert isinstance(evaluator, Combine)
    assert isinstance(evaluator.evaluators[0], kind)


def test_an_observation_has_the_costs_that_anyone_asks_for() -> None:
    wanted = (Objective.parse("synflow:max"), Objective.parse("latency_ms:min"))
    found = make_evaluator(quick_config(), wanted).evaluate(Request(CARD), Context())
    assert set(found.metrics) == {"synflow", "params", "macs", LATENCY}
    assert (found.metrics["params"], found.metrics["macs"]) == (params(CARD), macs(CARD, 16))
    assert found.metrics[LATENCY] > 0


def test_a_proxy_may_be_a_cost_too() -> None:
    config = quick_config(proxies=("params",), objectives=("params:max",))
    assert make_evaluator(config, ()).evaluate(Request(CARD), Context()).metrics["params"] == params(CARD)
    refuse_faulty(config)


@pytest.mark.slow
def test_rows_shorten_the_training_alone() -> None:
    short, whole = find_task(TaskChoice("mini-glue/sst2", rows=7)), find_task(TaskChoice("mini-glue/sst2"))
    assert len(short.search_view().train) == 7
    assert len(short.search_view().validation) == len(whole.search_view().validation)


def test_a_training_of_plain_values() -> None:
    training = make_training(TrainingChoice(7, 4, 1e-3, 0.2, "cosine", 0.5, 32, 0.1))
    recipe = training.recipe
    assert (recipe.steps, recipe.batch, recipe.learning_rate, recipe.warmup) == (7, 4, 1e-3, 0.2)
    assert (recipe.decay, recipe.weight_decay, training.length, training.settings.dropout) == ("cosine", 0.5, 32, 0.1)
    assert make_training(TrainingChoice(7), 70).recipe.steps == 70
    with pytest.raises(IllegalInput, match="decay is linear, cosine or none, not 'stairs'"):
        make_training(TrainingChoice(decay="stairs"))


def test_a_study_that_can_be_done_is_not_refused() -> None:
    refuse_faulty(quick_config(limits=("params<=1e9", "latency_ms<=5000", "synflow>=0")))
    refuse_faulty(quick_config(evaluator="full", objectives=("accuracy:max", "macs:min")))


@pytest.mark.parametrize(
    ("change", "kind", "told"),
    [
        ({"space": "flexibert-nanno"}, UnknownName, "no space called 'flexibert-nanno'"),
        ({"task": TaskChoice("mini-glue/sst3")}, UnknownName, "no task called 'mini-glue/sst3'"),
        ({"searcher": "regevo"}, UnknownName, "no searcher called 'regevo'"),
        ({"options": {"populaton": 3}}, IllegalInput, "has no option 'populaton'"),
        ({"options": {"trials": 3}}, IllegalInput, "trials is no option of a searcher"),
        ({"proxies": ("sinflow",)}, UnknownName, "sinflow"),
        ({"objectives": ("acuracy:max",)}, UnknownName, "'acuracy'"),
        ({"objectives": ("accuracy:max",)}, UnknownName, "'accuracy'.*synflow"),
        ({"limits": ("paramz<=5",)}, UnknownName, "Nearest: 'params'"),
        ({"limits": ("params<=5",)}, IllegalInput, "the nearest has params"),
        ({"limits": ("latency_ms<=0.001",)}, IllegalInput, r"latency_ms<=0\.001"),
        ({"objectives": ()}, IllegalInput, "there is nothing to improve"),
        ({"task": TaskChoice("digits")}, IllegalInput, "has images, but this card reads text"),
    ],
)
def test_a_study_that_nobody_could_do_is_refused_before_it_begins(
    change: dict[str, Any], kind: type[FormwrightError], told: str
) -> None:
    config = quick_config(**{"searcher": "regularized-evolution", **change})
    with pytest.raises(kind, match=told):
        refuse_faulty(config)


def test_designs_are_pretrained_where_the_evaluator_says_so(tmp_path: Path) -> None:
    choice = PretrainingChoice(40, "pydoc", 0.5)
    config = quick_config(evaluator="pretrained", proxies=(), objectives=("accuracy:max",), pretraining=choice)
    evaluator = make_evaluator(config, ())
    assert isinstance(evaluator, Combine)
    (scores,) = evaluator.evaluators
    assert isinstance(scores, Pretrained)
    assert (scores.inherited.least, scores.pretraining.training.recipe.steps) == (0.5, 40)
    assert scores.inherited.distance == Nearness(SPACE, most=None)
    assert scores.pretraining.text == pydoc_splits().train
    assert make_pretraining(replace(config, pretraining=PretrainingChoice()), 5).text is None


def sharing(**changes: Any) -> Config:
    """Give a study whose designs share weights in two branches."""
    values = {"space": "autobert-zero-nano", "evaluator": "bi-branch", "proxies": (), "objectives": ("accuracy:max",)}
    return quick_config(**{**values, **changes})


def test_designs_share_weights_where_the_evaluator_says_so() -> None:
    config = sharing(pretraining=PretrainingChoice(7))
    space = load_space(config.space)
    for seed in range(2):
        evaluator = make_evaluator(replace(config, seed=seed), ())
        assert isinstance(evaluator, Combine)
        (scores,) = evaluator.evaluators
        assert isinstance(scores, BiBranch)
        assert scores.branches == Branches.of(space.card(space.sample(derive(9))))
        assert (scores.pretraining.training.recipe.steps, scores.from_scratch) == (7, False)
    scratch = make_evaluator(replace(config, pretraining=PretrainingChoice(from_scratch=True)), ())
    assert scratch.evaluators[0].from_scratch  # type: ignore[attr-defined]


def test_designs_without_such_branches_are_refused_before_the_study_begins() -> None:
    refuse_faulty(sharing())
    with pytest.raises(IllegalInput, match=r"layer 0 is of the kind .*weights are shared in two branches where"):
        refuse_faulty(sharing(space="flexibert-nano"))


OWN_SPACE = """
from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
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
    config = sharing(space=f"{tmp_path / 'own.py'}:mine")
    with pytest.raises(IllegalInput, match=told):
        refuse_faulty(config)
    refuse_faulty(replace(config, pretraining=PretrainingChoice(from_scratch=True)))


def test_a_design_that_cannot_be_built_is_told_before_the_study_begins(tmp_path: Path) -> None:
    text = OWN_SPACE.format(kernels="range(3, 63)", depths="1").replace("kernel, 2)", "kernel // (kernel != 41), 2)")
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    with pytest.raises(BuildFailed, match=r"of space 'mine' failed for the design .*41.*: ZeroDivisionError"):
        refuse_faulty(own_rows(tmp_path, space=f"{tmp_path / 'own.py'}:mine"))


@pytest.fixture
def shared(tmp_path: Path) -> Config:
    """Give a study of the sub-networks of a tiny BERT, fine-tuned to nothing."""
    mine = own_rows(tmp_path)
    folder = bert(tmp_path, spec=HeadSpec("sequence-classification", 2), labels=("no", "yes"))
    choices = ElasticChoices(BERT, ((1, 4),) * 2, ((16, 64),) * 2)
    (tmp_path / "space.json").write_text(json.dumps(choices.to_json()), encoding="utf-8")
    times = PartTimes(1.0, {0: 0.0, 4: 1.0}, {0: 0.0, 64: 2.0})
    (tmp_path / "latency.json").write_text(json.dumps(LatencyTable({16: times}).to_json()), encoding="utf-8")
    return replace(
        mine,
        space=str(tmp_path / "space.json"),
        objectives=("accuracy:max", "macs:min", "latency_ms:min"),
        evaluator="shared",
        proxies=(),
        weights=str(folder),
        latency_table=str(tmp_path / "latency.json"),
        first=(choices.space.to_json(choices.design(((1, 16), (4, 64)))),),
    )


def test_sub_networks_are_judged_by_the_weights_and_costed_by_the_table(shared: Config, tmp_path: Path) -> None:
    study = assemble(shared, new_log(tmp_path), tmp_path)
    request = study.searcher.ask(History(), derive(0))
    assert request.card == sub_network(BERT, ((1, 16), (4, 64)))  # the first that was named
    found = study.evaluator.evaluate(request, Context(folder=tmp_path))
    assert found.metrics.keys() == {"accuracy", "f1", "params", "macs", "latency_ms"}
    assert found.metrics["latency_ms"] == 1.0 + (0.25 + 0.5) + (1.0 + 2.0)
    assert "answers" in found.artifacts


def test_rivals_of_a_sub_network_cost_no_more_in_any_goal(shared: Config) -> None:
    def races(*objectives: str) -> list[float]:
        config = replace(shared, objectives=("accuracy:max", *objectives))
        evaluator = make_evaluator(config, tuple(map(Objective.parse, config.objectives)))
        assert isinstance(evaluator, Combine)
        (scored,) = evaluator.evaluators
        assert isinstance(scored, Shared)
        return [scored.cost(BERT), *(cost(BERT) for cost in scored.others)]

    assert races("macs:min", "latency_ms:min") == [macs(BERT, 16), 7.0]
    assert races("latency_ms:min") == [7.0]
    assert races() == [params(BERT)]


def test_sub_networks_are_delivered_with_their_weights_and_the_models_own_tokeniser(shared: Config) -> None:
    part = sub_network(BERT, ((1, 16), (4, 64)))
    trainer = make_trainer(shared)
    assert trainer.tokeniser is not None
    assert trainer.tokeniser.size == tokeniser().size
    prepared = prepare(trainer.task, part, 16, trainer.tokeniser)
    start = make_final_start(shared)(part, prepared, trainer.training)
    wanted = shared_weights(shared).extracted(part).state_dict()
    assert all(tensor.equal(wanted[name]) for name, tensor in start.state_dict().items())


def test_a_latency_table_that_cannot_be_read_is_named(shared: Config, tmp_path: Path) -> None:
    for content in ("{", "[]", None):
        if content is None:
            (tmp_path / "latency.json").unlink()
        else:
            (tmp_path / "latency.json").write_text(content, encoding="utf-8")
        with pytest.raises(IllegalInput, match=r"cannot read the latency table .*latency\.json"):
            latency_of(shared)


def test_a_space_of_sub_networks_that_cannot_be_read_is_named(shared: Config, tmp_path: Path) -> None:
    (tmp_path / "space.json").write_text("{}", encoding="utf-8")
    with pytest.raises(IllegalInput, match=r"cannot read the search space .*space\.json: a stored ElasticChoices must"):
        assemble(shared, new_log(tmp_path), tmp_path)
