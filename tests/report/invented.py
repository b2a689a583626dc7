"""A study that searched formulas, as the tests of its page need it: nothing is trained, cards have known scores."""

from pathlib import Path
from typing import Any

from tests.report.studies import WORKER, new_log

from formwright.arch.layers import Block
from formwright.arch.ops import LightweightConvolution, OpGraph
from formwright.core.records import History, Objective, Observation, Request, Spent, Trial
from formwright.core.rng import derive
from formwright.report.facts import StudyFacts, study_facts
from formwright.search.op_nas import OpNas
from formwright.space.space import Space
from formwright.space.term_edits import operation_names
from formwright.space.zoo.autobert_zero import autobert_zero
from formwright.study.replay import asked_data
from formwright.study.store import Log

SPACE: Space = autobert_zero("tiny attentions", 3, 2, 8, largest=6, kernels=(3, 5, 9), vocabulary=50)
GOAL = (Objective("accuracy", "max"),)
PARENTS = 3


def merit(request: Request) -> float:
    """Score a design: products last and softmax anywhere are good in formulas, and so are long kernels."""
    layers = [layer for layer in request.card.encoder.layers if isinstance(layer, Block)]  # type: ignore[attr-defined]
    return 0.5 + sum(map(_merit, layers)) / (2 * len(layers))


def _merit(layer: Block) -> float:
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
    searcher, history = OpNas(SPACE, GOAL, **options), History()
    for number in range(count):
        request = searcher.ask(history, derive(0, "invented", number))
        found = Observation({"accuracy": merit(request)}, Spent(2.5, 300, 10**9))
        assert log.ask(number, WORKER, 60.0, asked_data(request, SPACE, 0))
        assert log.finish(number, WORKER, "told", {"observation": found.to_json()})
        history = History((*history.trials, Trial(number, request, "finished", found)))
    best = sorted(history.trials, key=lambda trial: -merit(trial.request))
    for turn, trial in enumerate(best[:delivered]):
        facts = {"name": f"found-{turn}", "role": "best", "digest": trial.request.card.digest, "params": 90_000}
        log.append("note", WORKER, {"model": {**facts, "steps": 1000, "validation": {"accuracy": 0.9}}})
    return log


def invented_facts(folder: Path, count: int = 24, delivered: int = 1, **config: Any) -> StudyFacts:
    return study_facts(invented_log(folder, count, delivered, **config), SPACE)
