"""Searches of one trained super-network, counted in whole validations, and sub-networks that nobody searched for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compress_kit.bench import SHARES, SPLITS, Bench, Row, write_json
from formwright.arch.card import Card
from formwright.core.records import History, Objective, Observation, Request, Spent, Trial
from formwright.core.rng import derive
from formwright.evaluate.context import Combine, Context
from formwright.evaluate.shared import STOPPED, RaceRules, Shared, SharedWeights
from formwright.pipeline.chosen_designs import best_within
from formwright.search import make_searcher
from formwright.search.baselines import First
from formwright.space.elastic import ElasticChoices
from formwright.supernet.automatic import BudgetMatch
from formwright.testing.toy_problem import ask, tell

RANDOM = 5  # sub-networks drawn for each share
ENOUGH = 0.98  # of the hypervolume that many validations reach
_STEPS = 2000  # of a walk to a share of the MACs
_WALKS = 5


@dataclass(frozen=True)
class Network:
    """A trained super-network, its space, the sub-networks that drew it up, and the folder of all that."""

    weights: SharedWeights
    choices: ElasticChoices
    met: tuple[BudgetMatch, ...]
    folder: Path


@dataclass(frozen=True)
class Remembering:
    """Judge a sub-network whole, once: what was judged before, by whichever search and run, is read."""

    evaluator: Shared
    folder: Path

    def evaluate(self, request: Request, context: Context) -> Observation:
        path = self.folder / f"{request.card.digest}.json"
        if not path.is_file():
            write_json(path, dict(self.evaluator.evaluate(request, context).metrics))
        return Observation(json.loads(path.read_text(encoding="utf-8")), Spent())


def searched(
    bench: Bench,
    network: Network,
    searcher: str,
    evaluations: int,
    rules: RaceRules | None,
    is_over: Callable[[], bool] = lambda: False,
) -> History:
    """Search a front in one process, until it `is_over`; without rules every sub-network is judged whole."""
    space = network.choices.space
    objectives = (Objective(bench.metric, "max"), Objective("macs", "min"))
    made = make_searcher(searcher, space, objectives, trials=evaluations)
    first = First(space, tuple(network.choices.design(one.widths) for one in network.met), made)
    shared: Any = Shared(network.weights, bench.cost, rules)
    scores = Remembering(shared, network.folder / "judged") if rules is None else shared
    evaluator, history = Combine((scores,), {"macs": bench.cost}), History()
    folder = network.folder / "races"
    for number in range(evaluations):
        if is_over():
            break
        history = ask(first, history, bench.setting.seed)
        # whole validations keep no answers: nobody races against them
        context = Context(folder=None if rules is None else folder, history=history)
        history = tell(history, number, evaluator.evaluate(history.trials[number].request, context))
    shutil.rmtree(folder, ignore_errors=True)
    return history


def points_of(bench: Bench, history: History) -> list[tuple[float, float]]:
    """List MACs as shares of the teacher's, and scores, of all trials."""
    full, found = bench.cost(bench.card), [trial.observation for trial in history.finished]
    return [(one.metrics["macs"] / full, one.metrics[bench.metric]) for one in found if one is not None]


def curve(bench: Bench, history: History) -> list[tuple[float, float]]:
    """List, trial after trial, the whole validations so far and the hypervolume of what was judged."""
    points, rows = points_of(bench, history), len(bench.prepared.validation.examples)
    found, spent = [], 0.0
    for number, trial in enumerate(history.finished, start=1):
        assert trial.observation is not None
        stopped = trial.observation.artifacts.get(STOPPED)
        spent += 1.0 if stopped is None else int(stopped.split()[0]) / rows
        found.append((spent, bench.volume(points[:number])))
    return found


def whole_validations(bench: Bench, history: History) -> float:
    return curve(bench, history)[-1][0]


def best_models(bench: Bench, network: Network, history: History, name: str) -> dict[str, Row]:
    """Test what would be delivered for each share of the MACs; a model that serves several shares is tested once."""
    full, goal = bench.cost(bench.card), Objective(bench.metric, "max")
    targets = {f"{share:.0%}": f"macs<={share * full}" for share in (1.0, *SHARES)}
    known: dict[str, Row] = {}

    def tested(share: str, trial: Trial) -> Row:
        card = trial.request.card
        assert isinstance(card, Card)
        if card.digest not in known:
            model = network.weights.extracted(card)
            known[card.digest] = bench.judged_design(model, f"{name}-{share}") | {"card": card.to_json()}
        return known[card.digest]

    return {share: tested(share, trial) for share, trial in best_within(history, goal, targets, (), {}).items()}


def random_models(bench: Bench, network: Network, number: int = RANDOM) -> Row:
    """Judge sub-networks drawn at random just below each share: their mean is what no search would give."""
    rng, at = derive(bench.setting.seed, "random"), dict[str, Row]()
    for share in SHARES:
        drawn = [_drawn(bench, network.choices, share, rng) for _ in range(number)]
        rows = [
            bench.judged_design(network.weights.extracted(card), f"random-{share:.0%}-{index}")
            for index, card in enumerate(drawn)
        ]
        names = [name for name in rows[0] if rows[0][name] is not None]
        at[f"{share:.0%}"] = dict.fromkeys(SPLITS) | {
            name: float(np.mean([row[name] for row in rows])) for name in names if name != "answers"
        }
        at[f"{share:.0%}"]["answers"] = [row["answers"] for row in rows if "answers" in row]
    return {"at": at, "hypervolume": bench.volumes(at)}


def _drawn(bench: Bench, choices: ElasticChoices, share: float, rng: np.random.Generator) -> Card:
    """Draw a sub-network and change it at random until it costs between nine tenths of a share and the share."""
    space = choices.space

    def off(one: Any) -> float:
        at = bench.share(space.card(one))
        return max(at - share, 0.9 * share - at, 0.0)

    for _ in range(_WALKS):
        design = space.sample(rng)
        for _ in range(_STEPS):
            if not off(design):
                return space.card(design)
            child = space.mutate(design, rng)
            design = child if off(child) < off(design) else design
    raise SystemExit(f"no sub-network was found that costs about {share:.0%}")


def searches(bench: Bench, network: Network, raced: Sequence[Sequence[float]]) -> Row:
    """Compare the search of an arm, by the curve it left, with one without races and with NSGA-II of many trials."""
    found: Row = {"linas with races": {"curve": [list(point) for point in raced]}}
    for name, evaluations in (("linas", bench.setting.evaluations), ("nsga2", bench.setting.many)):
        found[name] = {"curve": curve(bench, searched(bench, network, name, evaluations, None))}
    wanted = ENOUGH * found["nsga2"]["curve"][-1][1]
    for row in found.values():
        row["hypervolume"] = row["curve"][-1][1]
        row["validations"] = row["curve"][-1][0]
        row["validations to 98%"] = next((spent for spent, reached in row["curve"] if reached >= wanted), None)
    return found
