"""Studies that the tests of the report share: logs in a real database, and facts of any size without one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, LightweightConvolution, OpGraph
from formwright.core.records import Budget, History, Objective, Observation, Request, Spent, Trial
from formwright.core.rng import derive
from formwright.cost import macs, params
from formwright.report.facts import StudyFacts, TrialRow, study_facts
from formwright.report.page import report_html
from formwright.report.predictions import Guess, Predictions
from formwright.report.space_map import MOST_OTHERS, SpaceMap, Spot
from formwright.search.op_nas import OpNas
from formwright.space.elastic import elastic
from formwright.space.space import Space
from formwright.space.term_edits import operation_names
from formwright.space.zoo import load_space
from formwright.space.zoo.autobert_zero import autobert_zero
from formwright.study.replay import asked_data
from formwright.study.store import Log, Store

SPACE: Space = load_space("flexibert-nano")
WORKER = "machine/1/2"
CONFIG: dict[str, Any] = {
    "space": "flexibert-nano",
    "task": {"name": "mini-glue/sst2"},
    "objectives": ["accuracy:max", "params:min"],
    "limits": [],
    "searcher": {"name": "nsga2"},
    "training": {"steps": 300, "length": 32},
    "stop": {"trials": 40},
    "seed": 0,
}


def pipeline_of(stages: Mapping[str, Any] | None = None, **config: Any) -> dict[str, Any]:
    """Make the JSON of a pipeline that searches and delivers, after other `stages`."""
    delivered = {name: config.pop(name) for name in ("keep", "targets") if name in config}
    search = {"stage": "search", **CONFIG, **config}
    deliver = {"stage": "deliver", "search": "search", **delivered}
    found = {**(stages or {}), "search": search, "deliver": deliver}
    return {"version": 2, "recipe": "", "stages": found, "stage": "search"}


def new_log(folder: Path, name: str = "tried", **config: Any) -> Log:
    folder.mkdir(parents=True, exist_ok=True)
    store = Store.open(folder / "study.db", create=True)
    store.create_study(name, pipeline_of(**config))
    return store.study(name)


def write_page(log: Log, space: Space | None, path: Path) -> None:
    path.write_text(report_html([study_facts(log, space)]), encoding="utf-8")


def design_of(number: int) -> Any:
    return SPACE.sample(derive(0, "design", number))


def ask(log: Log, number: int, parent: int | None = None, steps: int | None = None) -> Card:
    design = design_of(number)
    request = Request(SPACE.card(design), Budget(steps), parent, design)
    assert log.ask(number, WORKER, 60.0, asked_data(request, SPACE, 0))
    return SPACE.card(design)


def tell(log: Log, number: int, **metrics: float) -> None:
    found = Observation({"params": params(SPACE.card(design_of(number))), **metrics}, Spent(2.5, 300, 10**9))
    assert log.finish(number, WORKER, "told", {"observation": found.to_json()})


def told(log: Log, space: Space, scores: Sequence[float | dict[str, float]]) -> None:
    """Write finished trials of designs that are drawn from a space; a number is the score."""
    for number, found in enumerate(scores):
        design = space.sample(derive(0, "told", number))
        assert log.ask(number, WORKER, 60.0, asked_data(Request(space.card(design), design=design), space, 0))
        seen = Observation(found if isinstance(found, dict) else {"score": found}, Spent(0.5))
        assert log.finish(number, WORKER, "told", {"observation": seen.to_json()})


def fail(log: Log, number: int, reason: str) -> None:
    assert log.finish(number, WORKER, "failed", {"reason": reason})


def small_study(folder: Path, **config: Any) -> Log:
    """Write a study of six trials: four finished, one failed, one under way, and three final models."""
    log = new_log(folder, **config)
    log.append("started", WORKER, {"begins": True})
    log.append("note", WORKER, {"command": "formwright search --seed 0"})
    for number, accuracy in enumerate((0.61, 0.74, 0.69, 0.74)):
        ask(log, number, parent=None if number == 0 else 0)
        tell(log, number, accuracy=accuracy)
    ask(log, 4)
    fail(log, 4, "the loss is not a number")
    ask(log, 5, steps=100)
    first, second = sorted((1, 3), key=lambda number: params(SPACE.card(design_of(number))))
    for name, role, number, accuracy in (
        ("bert", "baseline", 5, 0.71),
        ("found", "front", first, 0.75),
        ("old", "front", second, 0.68),
    ):
        deliver(log, name, role, number, accuracy)
    return log


def deliver(log: Log, name: str, role: str, number: int, accuracy: float) -> None:
    """Note the final model of the design of a trial."""
    facts = {"name": name, "role": role, "digest": SPACE.card(design_of(number)).digest}
    scores = {"validation": {"accuracy": accuracy}, "test": {"accuracy": accuracy - 0.01}}
    log.append("note", WORKER, {"model": {**facts, "params": 90_000, "steps": 1000, **scores}})


def searched_study(folder: Path, count: int = 24) -> Log:
    """Write a study of one goal with enough trials for every figure, larger designs being better; one has failed."""
    log = new_log(folder, objectives=["accuracy:max"])
    for number in range(count):
        card = ask(log, number)
        tell(log, number, accuracy=0.5 + params(card) / 1e6)
    ask(log, count)
    fail(log, count, "out of memory")
    return log


def many_facts(folder: Path, count: int) -> StudyFacts:
    """Make the facts of a study of very many trials out of those of a small one: the page is tested, not the log."""
    facts = study_facts(small_study(folder), SPACE)
    rng = derive(0, "many")
    cards = [SPACE.card(SPACE.sample(rng)) for _ in range(200)]
    scores = rng.normal(0.7, 0.03, count)
    rows = tuple(_invented(facts.trials[0], number, cards[number % 200], scores[number]) for number in range(count))
    best = max(rows, key=lambda row: row.metrics["accuracy"]).number
    spots = tuple(Spot(row.number, *rng.normal(size=2).round(3).tolist()) for row in rows[::5])
    others = tuple((x, y) for x, y in rng.normal(size=(MOST_OTHERS, 2)).round(3).tolist())
    guesses = tuple(Guess(row.number, 0.7, 0.65, 0.75, row.metrics["accuracy"]) for row in rows[100:130])
    return replace(
        facts,
        trials=rows,
        best=best,
        front=(best,),
        space_map=SpaceMap(spots, others, 9_312, True, 0.5),
        predictions=Predictions(guesses, 0.1, 200, count),
    )


def _invented(row: TrialRow, number: int, card: Card, accuracy: float) -> TrialRow:
    costs = {"params": params(card) + number, "macs": 3 * params(card) + number}  # all different, as a digest is
    metrics = {"accuracy": accuracy, "loss": 1.0 - accuracy}
    digest = f"{number:064x}"
    return replace(row, number=number, card=card, digest=digest, metrics=metrics, costs=costs, elapsed=number * 2.5)


LENGTH = 32
WHOLE = Card(
    encoder=Stack(TokenEmbedding(1000, 96), (Block(96, Attention(12, 8), (384,)),) * 4), pooler=True, classes=2
)
HEADS = ((2, 4, 12), (3, 6, 12), (0, 1, 12), (0, 6, 12))
CHANNELS = ((80, 96, 384), (0, 144, 384), (32, 48, 64), (160, 176, 384))
COMPRESSED: Space = elastic(WHOLE, HEADS, CHANNELS)
COSTS = {"latency_ms": 3.25, "onnx_ms": 2.125, "int8_ms": 1.5}
TEACHER_COSTS = {"latency_ms": 8.125, "onnx_ms": 5.5, "int8_ms": 4.0, "macs": macs(WHOLE, LENGTH)}


def note_of(**changes: Any) -> dict[str, Any]:
    """Make the note of a compression."""
    cost = macs(WHOLE, LENGTH)
    space = {"full": [[12, 384]] * 4, "heads": [*map(list, HEADS)], "channels": [*map(list, CHANNELS)], "hidden": [96]}
    teacher = {"validation": {"accuracy": 0.83}, "test": None, "params": params(WHOLE), "macs": cost, "latency_ms": 7.9}
    targets = [{"target": 0.5 * cost, "cost": 0.51 * cost}, {"target": 0.25 * cost, "cost": 0.24 * cost}]
    whole = {"model": "MiniLM", "task": "glue/sst2", "teacher": teacher, "space": space, "cost": "macs"}
    return {**whole, "targets": targets, **changes}


def card_of(number: int) -> Card:
    return COMPRESSED.card(COMPRESSED.sample(derive(0, "design", number)))


def compressed_log(
    folder: Path, count: int = 6, delivered: int = 3, asked: Mapping[str, str] | None = None, **note: Any
) -> Log:
    """Write a study of trials that are all on the front, too few for a map, with delivered models and the teacher."""
    stages, goals = {"space": {"stage": "space"}}, ["accuracy:max", "macs:min"]
    log = new_log(folder, stages=stages, space="space", objectives=goals, targets=asked or {})
    log.append("note", WORKER, {"compress": note_of(**note)})
    for number in range(count):
        design = COMPRESSED.sample(derive(0, "design", number))
        card = COMPRESSED.card(design)
        assert log.ask(number, WORKER, 60.0, asked_data(Request(card, Budget(), None, design), COMPRESSED, 0))
        cost = macs(card, LENGTH)
        found = Observation({"accuracy": 0.6 + cost / 4e7, "macs": cost}, Spent(2.5, 0, 10**9))
        assert log.finish(number, WORKER, "told", {"observation": found.to_json()})
    for number in range(delivered):
        deliver_card(log, f"trial-{number}", "front", card_of(number), 0.7 + number / 100)
    deliver_card(log, "teacher", "teacher", WHOLE, 0.83, costs=TEACHER_COSTS)
    return log


def deliver_card(log: Log, name: str, role: str, card: Card, accuracy: float, **more: Any) -> None:
    """Note a delivered model with what was measured of it."""
    facts = {"name": name, "role": role, "digest": card.digest, "params": params(card), "steps": 500}
    scores = {"validation": {"accuracy": accuracy}, "test": {"accuracy": accuracy - 0.01}}
    log.append("note", WORKER, {"model": {**facts, **scores, "costs": {**COSTS, "macs": macs(card, LENGTH)}, **more}})


def compressed_facts(folder: Path, count: int = 6, delivered: int = 3, **note: Any) -> StudyFacts:
    return study_facts(compressed_log(folder, count, delivered, **note), COMPRESSED)


FORMULAS: Space = autobert_zero("tiny attentions", 3, 2, 8, largest=6, kernels=(3, 5, 9), vocabulary=50)
FORMULA_GOAL = (Objective("accuracy", "max"),)
PARENTS = 3


def merit(request: Request) -> float:
    """Score a design: products last and softmax anywhere are good in formulas, and so are long kernels."""
    layers = [layer for layer in request.card.encoder.layers if isinstance(layer, Block)]  # type: ignore[attr-defined]
    return 0.5 + sum(map(_layer_merit, layers)) / (2 * len(layers))


def _layer_merit(layer: Block) -> float:
    if isinstance(layer.mixer, LightweightConvolution):
        return layer.mixer.kernel / 30
    assert isinstance(layer.mixer, OpGraph)
    names = operation_names(layer.mixer.term)
    return 0.4 * (names[-1] == "matmul") + 0.4 * ("softmax" in names) + 0.02 * len(names)


def invented_log(folder: Path, count: int = 24, delivered: int = 1, **config: Any) -> Log:
    """Write a study of OP-NAS; the best designs are delivered."""
    options = {"population": 4, "parents": PARENTS, "children": 2}
    config = {"searcher": {"name": "op-nas", **options}, "keep": max(1, delivered), **config}
    log = new_log(folder, objectives=["accuracy:max"], **config)
    searcher, history = OpNas(FORMULAS, FORMULA_GOAL, **options), History()
    for number in range(count):
        request = searcher.ask(history, derive(0, "invented", number))
        found = Observation({"accuracy": merit(request)}, Spent(2.5, 300, 10**9))
        assert log.ask(number, WORKER, 60.0, asked_data(request, FORMULAS, 0))
        assert log.finish(number, WORKER, "told", {"observation": found.to_json()})
        history = History((*history.trials, Trial(number, request, "finished", found)))
    best = sorted(history.trials, key=lambda trial: -merit(trial.request))
    for turn, trial in enumerate(best[:delivered]):
        facts = {"name": f"found-{turn}", "role": "best", "digest": trial.request.card.digest, "params": 90_000}
        log.append("note", WORKER, {"model": {**facts, "steps": 1000, "validation": {"accuracy": 0.9}}})
    return log


def invented_facts(folder: Path, count: int = 24, delivered: int = 1, **config: Any) -> StudyFacts:
    return study_facts(invented_log(folder, count, delivered, **config), FORMULAS)
