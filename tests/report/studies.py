"""Studies that the tests of the report share: logs in a real database, and facts of any size without one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from formwright.arch.card import Card
from formwright.core.records import Budget, Observation, Request, Spent
from formwright.core.rng import derive
from formwright.cost import params
from formwright.report.facts import StudyFacts, TrialRow, study_facts
from formwright.report.page import report_html
from formwright.report.predictions import Guess, Predictions
from formwright.report.space_map import MOST_OTHERS, SpaceMap, Spot
from formwright.space.space import Space
from formwright.space.zoo import load_space
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
