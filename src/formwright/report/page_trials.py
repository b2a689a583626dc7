"""The panel of all trials: plots, table and chosen design, whose script gets compact JSON with one entry per trial."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from formwright.arch.card import Card
from formwright.arch.layers import Block, Cell, Layer
from formwright.arch.ops import Identity, Operation, Swatch
from formwright.core.protocols import CardLike
from formwright.core.records import Objective
from formwright.report import words as wording
from formwright.report.facts import StudyFacts, TrialRow
from formwright.report.figures import kind_of
from formwright.report.final_models import REFERENCE_ROLES, FinalModel
from formwright.report.markup import Markup, asset
from formwright.report.panels import Panel

_MOST_LETTERS = 20_000  # of a design as text
_LETTERS = 160  # of one phrase; an op graph may be a formula without end
_SCRIPTS = ("study", "format", "drawing", "choose", "figure", "plots", "map", "predictions", "table", "start")
_EXACT = 2**53  # whole numbers that a browser reads exactly are smaller
_STATES = {"finished": 0, "pending": 1, "failed": 2}


@dataclass
class Sketches:
    """Collect the sketches of many cards, which share `layers`, `phrases` and `swatches`.

    A card is `[headline, head, stacks]`, a stack `[first line, second line, layers]`, a layer `[words, width, output
    width, bands, bars, lines]`: a band is a row of boxes `[swatch, heads]`, a bar a feed-forward width. Layers,
    swatches and all words are numbers of entries in the lists. Other designs are `[headline, JSON]`.
    """

    layers: list[Any] = field(default_factory=list)
    phrases: list[str] = field(default_factory=list)
    swatches: list[Swatch] = field(default_factory=list)
    _layers: dict[Layer, int] = field(default_factory=dict)
    _phrases: dict[str, int] = field(default_factory=dict)

    def add(self, card: Card | CardLike) -> list[Any]:
        """Return the sketch of a card."""
        if not isinstance(card, Card):
            return [self._phrase(json.dumps(card.to_json(), ensure_ascii=False, default=str)), design_text(card)]
        stacks = []
        for stack in card.stacks:
            shared = card.share_embedding and stack is card.decoder
            lines = stack.embedding.describe(shared=shared)
            stacks.append([*map(self._phrase, lines), [self._layer(layer) for layer in stack.layers]])
        return [
            self._phrase(wording.headline(card)),
            [self._phrase(words) for words in wording.describe_head(card)],
            stacks,
        ]

    def _layer(self, layer: Layer) -> int:
        if layer not in self._layers:
            self._layers[layer] = len(self.layers)
            bands, bars, lines = self._cell(layer) if isinstance(layer, Cell) else self._block(layer)
            words = self._phrase(wording.describe_layer(layer))
            numbers = [self._phrase(line) for line in lines]
            self.layers.append([words, layer.width, layer.output_width, bands, bars, numbers])
        return self._layers[layer]

    def _block(self, block: Block) -> tuple[list[Any], list[int], list[str]]:
        parts: list[Operation] = [block.mixer] if block.cross is None else [block.mixer, block.cross]
        shown = [part for part in parts if not isinstance(part, Identity)]
        lines = [*(one.describe_alone() for one in shown), wording.describe_feed_forward(block)]
        bars = list(block.feed_forward)
        return [[self._box(part)] for part in shown], bars, [line for line in lines if line] or ["nothing"]

    def _cell(self, cell: Cell) -> tuple[list[Any], list[int], list[str]]:
        bands = [[self._box(branch.operation) for branch in junction.branches] for junction in cell.junctions]
        lines = [wording.describe_branch(branch) for junction in cell.junctions for branch in junction.branches]
        return bands, [], lines

    def _box(self, operation: Operation) -> list[int]:
        shown = operation.SWATCH
        if shown not in self.swatches:
            self.swatches.append(shown)
        return [self.swatches.index(shown), operation.head_count]

    def _phrase(self, words: str) -> int:
        short = wording.shortened(words, _LETTERS)
        if short not in self._phrases:
            self._phrases[short] = len(self.phrases)
            self.phrases.append(short)
        return self._phrases[short]


def design_text(card: CardLike) -> str:
    """Return a design as readable JSON text."""
    return wording.shortened(json.dumps(card.to_json(), indent=2, ensure_ascii=False, default=str), _MOST_LETTERS)


def page_data(facts: StudyFacts) -> dict[str, Any]:
    """Return the trials, their designs, and the data of all figures."""
    rows, known = facts.trials, value_names(facts.trials, facts.goals)
    of_models = dict.fromkeys(name for model in facts.models for name in model.costs)
    spots, others = facts.space_map.spots, facts.space_map.others
    return {
        "goals": [{"name": goal.name, "direction": goal.direction} for goal in facts.goals],
        "limits": [{"name": limit.name, "bound": limit.bound} for limit in facts.limits],
        "best": facts.best,
        "front": list(facts.front),
        "models": [_model(model) for model in facts.models if model.role != "earlier"],
        "progress": {"number": facts.progress.by_number, "seconds": facts.progress.by_seconds},
        "values": [
            {"name": name, "kind": kind_of(name), "of": [_short(row.values.get(name)) for row in rows]}
            for name in known
        ],
        # what was measured for final models only: they can be plotted along it, trials cannot
        "model_values": [{"name": name, "kind": kind_of(name)} for name in of_models if name not in known],
        "trials": _columns(rows),
        "reasons": {row.number: row.reason for row in rows if row.reason},
        "designs": _designs(rows),
        "map": None
        if facts.space_map.hidden
        else {
            "spots": [[spot.number, spot.x, spot.y] for spot in spots],
            "x": [x for x, _ in others],
            "y": [y for _, y in others],
        },
        "predictions": [
            [one.number, _short(one.mean), _short(one.low), _short(one.high)] for one in facts.predictions.guesses
        ],
    }


def value_names(rows: Sequence[TrialRow], goals: Sequence[Objective]) -> list[str]:
    """List everything that was measured or counted: goals, then other metrics, then costs."""
    metrics = [name for row in rows for name in row.metrics]
    costs = [name for row in rows[:1] for name in row.costs]
    named = dict.fromkeys([*(goal.name for goal in goals), *metrics, *costs])
    return sorted(named, key=lambda name: name in costs and name not in [goal.name for goal in goals])


def _columns(rows: Sequence[TrialRow]) -> dict[str, list[Any]]:
    return {
        "number": [row.number for row in rows],
        "state": [_STATES[row.state] for row in rows],
        "kept": [int(row.feasible) for row in rows],
        "digest": [row.digest for row in rows],
        "parent": [row.parent for row in rows],
        "budget": [row.budget for row in rows],
        "steps": [row.steps for row in rows],
        "seconds": [_short(row.seconds) for row in rows],
        "elapsed": [_short(row.elapsed) for row in rows],
        "worker": [row.worker for row in rows],
        "finished": [None if row.finished is None else round(row.finished) for row in rows],
    }


def _designs(rows: Sequence[TrialRow]) -> dict[str, Any]:
    sketches = Sketches()
    drawn = [sketches.add(row.card) for row in rows]
    swatches = [{"name": one.name, "colour": one.colour, "filled": one.filled} for one in sketches.swatches]
    return {"of": drawn, "layers": sketches.layers, "phrases": sketches.phrases, "swatches": swatches}


def _model(model: FinalModel) -> dict[str, Any]:
    """Return a final model with its number of steps: its scores are not comparable with those of shorter trials."""
    steps = "" if not model.steps else f" after {model.steps:,.0f} steps"
    known = {"params": model.params, **model.costs, **model.validation}
    values = {name: value for name, value in known.items() if value is not None}
    return {"name": f"{model.name}{steps}", "baseline": model.role in REFERENCE_ROLES, "values": values}


def _short(value: float | None) -> float | None:
    """Round to visible precision to keep the page small; counts stay exact."""
    if value is None:
        return None
    return int(value) if abs(value) < _EXACT and value == int(value) else float(f"{value:.6g}")


TRIALS = Panel(
    lambda facts: Markup(asset("trials.html")),
    "All trials",
    rank=60,
    data=page_data,
    script="\n".join(asset(f"{name}.js") for name in _SCRIPTS),
    plotly=True,
)
