"""Panels of a compressed model: targets and models, the search space, and the widths of delivered models."""

from collections.abc import Sequence
from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.pipeline.conclusion import comparison_line
from formwright.report.compression import AskedTarget, CompressionFacts, SpaceTarget
from formwright.report.facts import StudyFacts
from formwright.report.figures import evenly_spaced, figure, long_count
from formwright.report.final_models import FinalModel
from formwright.report.markup import Markup, join, note, row, table, tag
from formwright.report.page_head import score_cell
from formwright.report.panels import Panel
from formwright.report.svg_widths import draw_space, draw_widths, listed
from formwright.report.trial_rows import TrialRow

_MOST_DRAWN = 6  # models drawn below the teacher
_ABOUT_TARGETS = (
    "For each target the best design within it is delivered. Milliseconds were measured on the delivered model; during "
    "the search they were added up from its parts."
)
_MOST_NAMES = 12
_ABOUT_CHOSEN = (
    "What each layer of a delivered model keeps: a bar shows its share of the full width, and the number above it "
    "the heads or channels."
)


@dataclass(frozen=True)
class Chosen:
    """A model with the heads and channels of each layer; 0 where that part is left out."""

    model: FinalModel
    cost: float | None
    heads: tuple[int, ...]
    channels: tuple[int, ...]
    hidden: int | None = None


@dataclass(frozen=True)
class ChosenModels:
    """The models to draw, costliest first, and the names of those that are not drawn or cannot be."""

    drawn: tuple[Chosen, ...]
    further: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def teacher_of(facts: StudyFacts, found: CompressionFacts) -> Chosen:
    """Return the teacher: the full width everywhere."""
    model = facts.teacher or found.teacher
    cost = model.costs.get(found.cost, found.teacher.costs.get(found.cost))
    return Chosen(model, cost, found.full_heads, found.full_channels)


def chosen_of(facts: StudyFacts, found: CompressionFacts) -> ChosenModels:
    """Read the widths of the delivered models; if there are many, evenly spaced ones by cost."""
    rows = {row.digest: row for row in facts.trials}
    models = [model for model in facts.models if model.role in ("best", "front")]
    read = {model.name: _chosen(model, rows.get(model.digest), found) for model in models}
    known = sorted((one for one in read.values() if one is not None), key=_costly)
    places = evenly_spaced(len(known), _MOST_DRAWN)
    further = [one.model.name for place, one in enumerate(known) if place not in places]
    unknown = [name for name, one in read.items() if one is None]
    return ChosenModels(tuple(known[place] for place in places), tuple(further), tuple(unknown))


def _costly(one: Chosen) -> float:
    return float("inf") if one.cost is None else -one.cost


def _chosen(model: FinalModel, trial: TrialRow | None, found: CompressionFacts) -> Chosen | None:
    layers = None if trial is None or not isinstance(trial.card, Card) else _blocks(trial.card)
    if trial is None or layers is None or len(layers) > found.layers:
        return None
    gone = (0,) * (found.layers - len(layers))  # what a shallower design lacks, it lacks at the end
    heads = tuple(block.mixer.heads if isinstance(block.mixer, Attention) else 0 for block in layers)
    channels = tuple(sum(block.feed_forward) for block in layers)
    cost = {**trial.values, **model.costs}.get(found.cost)
    return Chosen(model, cost, heads + gone, channels + gone, layers[0].width if layers else None)


def _blocks(card: Card) -> Sequence[Block] | None:
    layers = () if card.encoder is None else card.encoder.layers
    blocks = [layer for layer in layers if isinstance(layer, Block)]
    return blocks if len(blocks) == len(layers) and card.decoder is None else None


def targets_section(facts: StudyFacts) -> Markup:
    """List the targets with the models chosen for them; empty for studies without targets."""
    if not facts.targets:
        return join()
    goal = facts.goals[0].name
    heads: list[str | tuple[str, str]] = [
        "Target",
        ("Asked for", "number"),
        "Model",
        ("Its cost", "number"),
        (f"validation {goal}", "number"),
        "",
    ]
    return join(note(_ABOUT_TARGETS), table(heads, [_target_row(facts, one) for one in facts.targets], class_="asked"))


def _target_row(facts: StudyFacts, one: AskedTarget) -> Markup:
    goal, cost, model = facts.goals[0].name, one.limit.name, one.model
    asked = f"{cost.removesuffix('_ms')} \N{LESS-THAN OR EQUAL TO} {figure(one.limit.bound, cost)}"
    cells = [
        tag("th", one.name, scope="row"),
        tag("td", asked, _small(_share_of_teacher(facts, cost, one.limit.bound)), class_="number"),
        tag("td", tag("b", model.name) if model else "\N{EN DASH}"),
        tag("td", figure(one.met, cost), _small(_share_of_teacher(facts, cost, one.met)), class_="number"),
        tag("td", score_cell(model, "validation", goal) if model else figure(None, goal), class_="number"),
        tag("td", *_verdict(one), *(_small(line) for line in _told_apart(facts, one))),
    ]
    return tag("tr", *cells)


def _told_apart(facts: StudyFacts, one: AskedTarget) -> list[str]:
    """Compare a model with the teacher."""
    found = None if one.model is None else facts.comparisons.get(one.model.name)
    other = facts.teacher
    if found is None or other is None or one.model is None:
        return []
    scores = [each.scores(found.split).get(found.metric) for each in (one.model, other)]
    evidence = one.model.evidence.get(found.split)
    beats = None if evidence is None else evidence.beats_majority(found.metric)
    if scores[0] is None or scores[1] is None:
        return []
    return [comparison_line(found, scores[0], scores[1], beats=beats, other="the teacher")]


def _share_of_teacher(facts: StudyFacts, name: str, cost: float | None) -> str:
    teacher = facts.teacher
    whole = None if teacher is None else {"params": teacher.params, **teacher.costs}.get(name)
    share = _share(cost, whole)
    return f"{share} of the teacher" if share else ""


def _small(words: str) -> Markup:
    return tag("small", words) if words else join()


def _verdict(one: AskedTarget) -> list[Markup]:
    """Say whether a target is met, and why."""
    if one.model is None:
        return [_badge("not delivered") if one.digest else _badge("no design keeps it", "failed")]
    badge = _badge("exceeded", "failed") if one.exceeded else _badge("kept", "running")
    return [badge, *(tag("small", line) for line in _remarks(one))]


def _badge(word: str, kind: str = "") -> Markup:
    return tag("span", word, class_=f"badge {kind}".strip())


def _remarks(one: AskedTarget) -> list[str]:
    assert one.model is not None
    designs = "1 other design was" if one.tried == 1 else f"{one.tried} other designs were"
    lines = [f"the best within this target and {one.model.name}" if one.shared else ""]
    if one.exceeded:
        lines.append(f"the sum of its parts is {figure(one.counted, one.limit.name)}")
        lines.append(f"the fastest of {one.tried} designs that were measured" if one.tried > 1 else "")
    elif one.tried:
        lines.append(f"{designs} measured beyond it")
    return [line for line in lines if line]


def space_section(facts: StudyFacts) -> Markup:
    """Draw the widths that each layer may have, above the targets they come from; empty for other studies."""
    found = facts.compression
    if found is None:
        return join()
    drawing = tag("figure", Markup(draw_space(found)), tabindex=0)
    return join(note(_about_space(found)), drawing, _as_numbers(found), _targets(found))


def chosen_section(facts: StudyFacts) -> Markup:
    """Draw the widths of the teacher and of the delivered models; empty for other studies."""
    found = facts.compression
    if found is None:
        return join()
    models, teacher = chosen_of(facts, found), teacher_of(facts, found)
    rows = [_model_row(facts, found, one, teacher.cost) for one in (teacher, *models.drawn)]
    lines = [
        "" if models.drawn or models.unknown else "No model has been delivered yet.",
        _named("Also delivered, not drawn", models.further),
        _named("Not drawn, because no trial has its design", models.unknown),
    ]
    models_drawn = table(("Model", "Attention heads", "Feed-forward channels"), rows, class_="chosen")
    return join(note(_ABOUT_CHOSEN), models_drawn, *(note(line) for line in lines if line))


def _about_space(found: CompressionFacts) -> str:
    nets = "1 sub-network" if found.count == 1 else f"{long_count(found.count)} sub-networks"
    sizes = listed(found.hidden)
    hidden = f" The hidden size is {sizes}." if len(found.hidden) == 1 else ""
    hidden = f" All layers together have one of the hidden sizes {sizes}." if len(found.hidden) > 1 else hidden
    return (
        f"Every dot is a width that a layer of {found.model} may have, and a grey bar reaches to the full one: "
        f"{nets} in all.{hidden}"
    )


def _as_numbers(found: CompressionFacts) -> Markup:
    """List the widths as text, for screen readers and where the drawing has no room for numbers."""
    widths = enumerate(zip(found.heads, found.channels, strict=True), 1)
    rows = [row(str(index), map(listed, both), "") for index, both in widths]
    words = tag("summary", "All widths as numbers")
    return tag("details", words, table(("Layer", "Attention heads", "Feed-forward channels"), rows))


def _targets(found: CompressionFacts) -> Markup:
    if not found.targets:
        return join()
    heads = (f"Aimed at, {found.cost.removesuffix('_ms')}", "Of the teacher", "Nearest sub-network", "Difference")
    rows = [_target(found, target) for target in found.targets]
    aimed_at = table([(head, "number") for head in heads], rows, class_="targets")
    return join(tag("h3", "Costs at which the space was drawn up"), aimed_at)


def _target(found: CompressionFacts, target: SpaceTarget) -> Markup:
    share = _share(target.wanted, found.teacher.costs.get(found.cost)) or "\N{EN DASH}"
    cells = [figure(target.wanted, found.cost), share, figure(target.met, found.cost), f"{100 * target.off:+.1f} %"]
    return tag("tr", *(tag("td", cell, class_="number") for cell in cells))


def _model_row(facts: StudyFacts, found: CompressionFacts, one: Chosen, whole: float | None) -> Markup:
    goal, teacher = facts.goals[0].name, one.model.role == "teacher"
    share = "" if teacher else _share(one.cost, whole)
    words = [
        f"{goal} {figure(one.model.validation.get(goal), goal)} on validation",
        f"{found.cost.removesuffix('_ms')} {figure(one.cost, found.cost)}",
        f"{share} of the teacher" if share else "",
        f"hidden size {one.hidden}" if one.hidden and len(found.hidden) > 1 else "",
    ]
    badge = join(" ", tag("span", "teacher", class_="badge")) if teacher else ""
    name = tag("b", found.model if teacher else one.model.name)
    head = tag("th", name, badge, *(tag("small", line) for line in words if line), scope="row")
    heads = draw_widths("heads", one.heads, found.full_heads)
    channels = draw_widths("channels", one.channels, found.full_channels)
    return tag("tr", head, tag("td", Markup(heads)), tag("td", Markup(channels)))


def _share(part: float | None, whole: float | None) -> str:
    return f"{100 * part / whole:.0f} %" if part is not None and whole else ""


def _named(words: str, names: tuple[str, ...]) -> str:
    left = len(names) - _MOST_NAMES
    more = f" and {left:,} more" if left > 0 else ""
    return f"{words}: {', '.join(names[:_MOST_NAMES])}{more}." if names else ""


TARGETS = Panel(targets_section, "Targets, asked and met", rank=20)
SPACE = Panel(space_section, "Search space, layer by layer", rank=31)
CHOSEN = Panel(chosen_section, "Chosen widths, layer by layer", rank=32)
