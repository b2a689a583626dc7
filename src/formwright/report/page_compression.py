"""Panels of a compressed model: targets and models, the search space, and the widths of delivered models, drawn."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer
from formwright.cost import is_measured
from formwright.pipeline.conclusion import comparison_line
from formwright.report.compression import AskedTarget, CompressionFacts, Part, Widths
from formwright.report.facts import StudyFacts, TrialRow
from formwright.report.figures import evenly_spaced, figure, long_count
from formwright.report.final_models import FinalModel
from formwright.report.markup import Markup, join, note, row, table, tag
from formwright.report.page_head import score_cell
from formwright.report.panels import Panel
from formwright.report.svg_canvas import inline, path, point, text
from formwright.space.elastic_parts import layers_of, scored_parts

_BARS_WIDTH, _BARS_COLUMN = 440.0, 36.0  # width of the drawing, and of a column at least
_WIDEST_BAR = 38.0
_BARS_TOP, _BARS_HEIGHT = 17.0, 46.0  # of the bars; the words above and below them take a line each
_LEFT, _RIGHT = 66.0, 16.0  # room of the axis, and of the numbers behind the last column
_LEAST, _COLUMN = 1160.0, 56.0  # width of the whole drawing and of a column at least
_HEAD, _OUT = 30.0, 22.0  # room above the full width, and below no width at all, where parts are left out
_APART = 11.0  # from one number to the next above it, at least
_BAR, _DOT = 16.0, 4.5
_NAMES: dict[Part, str] = {
    "heads": "Attention heads",
    "cross": "Heads of attention to the encoder",
    "channels": "Feed-forward channels",
}
_TALL: dict[Part, float] = {"heads": 140.0, "cross": 140.0, "channels": 170.0}
_OPTIONS: dict[Part, str] = {"heads": "heads", "cross": "cross", "channels": "feed_forward"}  # of elastic spaces
_FURTHER_TALL = 140.0
_MOST_DRAWN = 6  # models drawn below the teacher
_ABOUT_TARGETS = "For each target the best design within it is delivered."
_ABOUT_MEASURED = " What is measured was measured on the delivered model; during the search it was added up from parts."
_MOST_NAMES = 12
_ABOUT_CHOSEN = (
    "What each layer of a delivered model keeps: a bar shows its share of the full width, and the number above it "
    "the heads or channels."
)


@dataclass(frozen=True)
class Chosen:
    """A model with the widths of each part of each layer; 0 where that part is left out."""

    model: FinalModel
    cost: float | None
    widths: Mapping[Part, tuple[int, ...]]
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
    return Chosen(model, cost, {part: full for part, (full, _) in found.parts.items()})


def chosen_of(facts: StudyFacts, found: CompressionFacts) -> ChosenModels:
    """Read the widths of the delivered models; if there are many, evenly spaced ones by cost."""
    rows = {row.digest: row for row in facts.trials}
    models = [model for model in facts.models if model.role in ("best", "front")]
    read = {model.name: _chosen(model, rows.get(model.digest), found) for model in models}
    known = [one for one in read.values() if one is not None]
    known.sort(key=lambda one: float("inf") if one.cost is None else -one.cost)
    places = evenly_spaced(len(known), _MOST_DRAWN)
    further = [one.model.name for place, one in enumerate(known) if place not in places]
    unknown = [name for name, one in read.items() if one is None]
    return ChosenModels(tuple(known[place] for place in places), tuple(further), tuple(unknown))


def _chosen(model: FinalModel, trial: TrialRow | None, found: CompressionFacts) -> Chosen | None:
    if trial is None or not isinstance(trial.card, Card):
        return None
    layers = [_sizes(layer) for layer in layers_of(trial.card)]
    if len(layers) > found.layers or not all(isinstance(layer, Block) for layer in layers_of(trial.card)):
        return None
    gone = (0,) * (found.layers - len(layers))  # what a shallower design lacks, it lacks at the end
    widths = {part: tuple(sizes.get(_OPTIONS.get(part, part), 0) for sizes in layers) + gone for part in found.parts}
    cost = {**trial.values, **model.costs}.get(found.cost)
    return Chosen(model, cost, widths, trial.card.stacks[0].layers[0].width)


def _title(part: Part) -> str:
    return _NAMES.get(part, part.replace("_", " ").capitalize())


def _class(part: Part) -> str:
    """Name the colour of a part; other parts have that of channels."""
    return part if part in _NAMES else "channels"


def _sizes(layer: Layer) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for part in scored_parts(layer):  # a layer may have several feed-forward maps
        sizes[part.option] = sizes.get(part.option, 0) + part.most
    return sizes


def targets_section(facts: StudyFacts) -> Markup:
    """List the targets with the models chosen for them; empty for studies without targets."""
    if not facts.targets:
        return join()
    goal = facts.goals[0].name
    heads = ("Target", ("Asked for", "number"), "Model", ("Its cost", "number"), (f"validation {goal}", "number"), "")
    measured = any(is_measured(one.limit.name) for one in facts.targets)
    return join(
        note(_ABOUT_TARGETS + _ABOUT_MEASURED * measured),
        table(heads, [_target_row(facts, one) for one in facts.targets], class_="asked"),
    )


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
    model, other = one.model, facts.teacher
    found = None if model is None else facts.comparisons.get(model.name)
    if found is None or other is None or model is None:
        return []
    score, other_score = (each.scores(found.split).get(found.metric) for each in (model, other))
    if score is None or other_score is None:
        return []
    evidence = model.evidence.get(found.split)
    beats = None if evidence is None else evidence.beats_majority(found.metric)
    return [comparison_line(found, score, other_score, beats=beats, other="the teacher")]


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
        words, kind = ("not delivered", "badge") if one.digest else ("no design keeps it", "badge failed")
        return [tag("span", words, class_=kind)]
    designs = "1 other design was" if one.tried == 1 else f"{one.tried} other designs were"
    lines = [f"the best within this target and {one.model.name}" if one.shared else ""]
    if one.exceeded:
        lines.append(f"the sum of its parts is {figure(one.counted, one.limit.name)}")
        lines.append(f"the fastest of {one.tried} designs that were measured" if one.tried > 1 else "")
    elif one.tried:
        lines.append(f"{designs} measured beyond it")
    words, kind = ("exceeded", "failed") if one.exceeded else ("kept", "running")
    return [tag("span", words, class_=f"badge {kind}"), *(tag("small", line) for line in lines if line)]


def space_section(facts: StudyFacts) -> Markup:
    """Draw the widths that each layer may have, above the targets they come from; empty for other studies."""
    found = facts.compression
    if found is None:
        return join()
    drawing = tag("figure", draw_space(found), tabindex=0)
    # widths as text, for screen readers and where the drawing has no room for numbers
    layers = enumerate(zip(*(widths for _, widths in found.parts.values()), strict=True), 1)
    rows = [row(str(index), map(listed, own), "") for index, own in layers]
    names = [_title(part) for part in found.parts]
    numbers = tag("details", tag("summary", "All widths as numbers"), table(("Layer", *names), rows))
    return join(note(_about_space(found)), drawing, numbers, _targets(found))


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
    models_drawn = table(("Model", *map(_title, found.parts)), rows, class_="chosen")
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


def _targets(found: CompressionFacts) -> Markup:
    if not found.targets:
        return join()
    heads = (f"Aimed at, {found.cost.removesuffix('_ms')}", "Of the teacher", "Nearest sub-network", "Difference")
    rows = []
    for one in found.targets:
        share = _share(one.wanted, found.teacher.costs.get(found.cost)) or "\N{EN DASH}"
        cells = [figure(one.wanted, found.cost), share, figure(one.met, found.cost), f"{100 * one.off:+.1f} %"]
        rows.append(tag("tr", *(tag("td", cell, class_="number") for cell in cells)))
    aimed_at = table([(head, "number") for head in heads], rows, class_="targets")
    return join(tag("h3", "Costs at which the space was drawn up"), aimed_at)


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
    drawn = (draw_widths(part, one.widths[part], full) for part, (full, _) in found.parts.items())
    return tag("tr", head, *(tag("td", each) for each in drawn))


def _share(part: float | None, whole: float | None) -> str:
    return f"{100 * part / whole:.0f} %" if part is not None and whole else ""


def _named(words: str, names: tuple[str, ...]) -> str:
    left = len(names) - _MOST_NAMES
    more = f" and {left:,} more" if left > 0 else ""
    return f"{words}: {', '.join(names[:_MOST_NAMES])}{more}." if names else ""


def listed(widths: Iterable[int]) -> str:
    """Join widths with commas."""
    return ", ".join(str(one) if one else "left out" for one in widths)


def draw_widths(part: Part, chosen: Sequence[int], full: Sequence[int]) -> Markup:
    """Draw one part of every layer as a bar, with its width above and the number of the layer below."""
    width, most = max(_BARS_WIDTH, _BARS_COLUMN * len(full)), max(*full, *chosen, 1)
    column = width / len(full)
    layers = [
        _layer(part, index, column, (one, whole, most))
        for index, (one, whole) in enumerate(zip(chosen, full, strict=True))
    ]
    return inline(width, _BARS_TOP + _BARS_HEIGHT + 16, f"{part} of layers 1 to {len(full)}: {listed(chosen)}", layers)


def _layer(part: Part, index: int, column: float, widths: tuple[int, int, int]) -> Markup:
    """Draw one layer; `widths` are its own, its full width, and the full width of the widest layer."""
    chosen, full, most = widths
    middle, bottom = (index + 0.5) * column, _BARS_TOP + _BARS_HEIGHT
    name = text(middle, bottom + 13, str(index + 1), class_="quiet small", text_anchor="middle")
    if not full:  # the layer has no such part
        return tag("g", name)
    tall, all_of_it = max(1.5, _BARS_HEIGHT * chosen / most), _BARS_HEIGHT * full / most
    wide = min(_WIDEST_BAR, column - 8)
    place: dict[str, str | float] = {"x": middle - wide / 2, "width": wide, "rx": 2}
    bars = [tag("rect", **place, y=bottom - all_of_it, height=all_of_it, class_="full" if chosen else "full out")]
    if chosen:
        bars.append(tag("rect", **place, y=bottom - tall, height=tall, class_=_class(part)))
    words = f"{chosen} of {full} {part}" if chosen else f"no {part}: left out"
    number = text(middle, _BARS_TOP - 5, str(chosen) if chosen else "out", text_anchor="middle")
    return tag("g", tag("title", f"Layer {index + 1}: {words}"), *bars, number, name)


def draw_space(found: CompressionFacts) -> Markup:
    """Draw the allowed widths of each part of each layer, one part below the other."""
    width, top = max(_LEAST, _LEFT + _COLUMN * found.layers + _RIGHT), 0.0
    halves: list[_SpaceHalf] = []
    for part, (full, widths) in found.parts.items():
        halves.append(_SpaceHalf(part, widths, full, width, top, _TALL.get(part, _FURTHER_TALL)))
        top = halves[-1].bottom + 22
    y = halves[-1].bottom + 25
    axis = [text(_LEFT - 12, y, "layer", class_="quiet", text_anchor="end")]
    axis += [text(halves[0].middle(index), y, str(index + 1), text_anchor="middle") for index in range(found.layers)]
    label = (
        f"Widths that each of the {found.layers} layers of {found.model} may have, from above: "
        f"{', '.join(_title(part).lower() for part in found.parts)}. The table after it gives them as numbers."
    )
    return inline(width, y + 6, label, [*(tags for half in halves for tags in half.draw()), *axis])


@dataclass(frozen=True)
class _SpaceHalf:
    """The half of the drawing that shows one part of every layer, between `top` and `bottom`."""

    part: Part
    widths: Widths
    full: tuple[int, ...]
    width: float
    top: float
    tall: float

    @property
    def bottom(self) -> float:
        return self.top + _HEAD + self.tall + (_OUT if self._skips else 0)

    @property
    def _skips(self) -> bool:
        return any(0 in layer for layer, full in zip(self.widths, self.full, strict=True) if full)

    @property
    def _most(self) -> int:
        return max(1, *self.full, *(one for layer in self.widths for one in layer))

    def middle(self, index: int) -> float:
        return _LEFT + (index + 0.5) * (self.width - _LEFT - _RIGHT) / len(self.full)

    def draw(self) -> list[Markup]:
        title = text(0, self.top + 13, _title(self.part), class_="strong")
        return [title, *self._lines(), *(self._layer(index) for index in range(len(self.full)))]

    def _y(self, width: int) -> float:
        """Return the y of a width; zero is set apart so that it is not mistaken for a small width."""
        return self.top + _HEAD + self.tall * (1 - width / self._most) if width else self.bottom

    def _lines(self) -> list[Markup]:
        ticks = {self._y(one): str(one) for one in (self._most, self._most // 2) if one}
        ticks[self.bottom] = "left out" if self._skips else "0"
        lines = [path(f"M{point(_LEFT, y)}H{self.width:.1f}", "none", class_="rule") for y in ticks]
        look: dict[str, str | float] = {"class_": "quiet", "text_anchor": "end"}
        return lines + [text(_LEFT - 12, y + 4, words, **look) for y, words in ticks.items()]

    def _layer(self, index: int) -> Markup:
        x, full, widths = self.middle(index), self.full[index], self.widths[index]
        if not full:  # the layer has no such part
            return tag("g")
        tall = self.tall * full / self._most
        low = self.top + _HEAD + self.tall
        words = listed(widths)
        title = tag("title", f"Layer {index + 1}, {_title(self.part).lower()}: {words}; full {full}")
        bar = tag("rect", x=x - _BAR / 2, y=low - tall, width=_BAR, height=tall, class_="full", rx=3)
        dots = [
            tag("circle", cx=x, cy=self._y(one), r=_DOT, class_=_class(self.part) if one else "hollow")
            for one in widths
        ]
        numbers = [
            text(x + _BAR / 2 + 5, self._y(one) + 4, str(one), class_="over") for one in self._numbered(widths) if one
        ]
        return tag("g", title, bar, *dots, *numbers)

    def _numbered(self, widths: Sequence[int]) -> list[int]:
        """Choose the widths with room for a label: the largest, then from below all that are far enough apart."""
        kept: list[int] = []
        for one in (widths[-1], *widths[:-1]):
            if all(abs(self._y(one) - self._y(other)) >= _APART for other in kept):
                kept.append(one)
        return kept


TARGETS = Panel(targets_section, "Targets, asked and met", rank=20)
SPACE = Panel(space_section, "Search space, layer by layer", rank=31)
CHOSEN = Panel(chosen_section, "Chosen widths, layer by layer", rank=32)
