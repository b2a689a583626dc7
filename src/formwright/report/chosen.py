"""Which widths the delivered sub-networks of a compressed model have, beside those of the model itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.report.compression import Compression
from formwright.report.evenly import evenly
from formwright.report.facts import StudyFacts
from formwright.report.models import FinalModel
from formwright.report.rows import TrialRow

MOST = 6  # models that are drawn beside the teacher


@dataclass(frozen=True)
class Chosen:
    """A model with the heads and the channels of each of its layers; 0 where that part is left out."""

    model: FinalModel
    cost: float | None
    heads: tuple[int, ...]
    channels: tuple[int, ...]
    hidden: int | None = None


@dataclass(frozen=True)
class ChosenModels:
    """The models to draw, the costly ones first, and the names of those that are not drawn or cannot be."""

    drawn: tuple[Chosen, ...]
    further: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def teacher_of(facts: StudyFacts, found: Compression) -> Chosen:
    """Give the model itself: the full width everywhere."""
    model = facts.teacher or found.teacher
    cost = model.costs.get(found.cost, found.teacher.costs.get(found.cost))
    return Chosen(model, cost, found.full_heads, found.full_channels)


def chosen_of(facts: StudyFacts, found: Compression) -> ChosenModels:
    """Read the widths of the delivered models; of many, an even choice from the costliest to the cheapest."""
    rows = {row.digest: row for row in facts.trials}
    models = [model for model in facts.models if model.role in ("best", "front")]
    read = {model.name: _chosen(model, rows.get(model.digest), found) for model in models}
    known = sorted((one for one in read.values() if one is not None), key=_costly)
    places = evenly(len(known), MOST)
    further = [one.model.name for place, one in enumerate(known) if place not in places]
    unknown = [name for name, one in read.items() if one is None]
    return ChosenModels(tuple(known[place] for place in places), tuple(further), tuple(unknown))


def _costly(one: Chosen) -> float:
    return float("inf") if one.cost is None else -one.cost


def _chosen(model: FinalModel, row: TrialRow | None, found: Compression) -> Chosen | None:
    layers = None if row is None else _blocks(row.card)
    if row is None or layers is None or len(layers) > found.layers:
        return None
    gone = (0,) * (found.layers - len(layers))  # what a shallower design lacks, it lacks at the end
    heads = tuple(block.mixer.heads if isinstance(block.mixer, Attention) else 0 for block in layers)
    channels = tuple(sum(block.feed_forward) for block in layers)
    cost = {**row.values, **model.costs}.get(found.cost)
    return Chosen(model, cost, heads + gone, channels + gone, layers[0].width if layers else None)


def _blocks(card: Card) -> Sequence[Block] | None:
    layers = () if card.encoder is None else card.encoder.layers
    blocks = [layer for layer in layers if isinstance(layer, Block)]
    return blocks if len(blocks) == len(layers) and card.decoder is None else None
