"""Panels of a study that searches formulas: formulas by layer, population over time, operation scores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer
from formwright.arch.ops import LightweightConvolution, OpGraph
from formwright.report.facts import StudyFacts
from formwright.report.figures import evenly_spaced, figure
from formwright.report.formula import draw_formula, draw_kernel, formula
from formwright.report.formula_statistics import Lifespan, Population
from formwright.report.markup import Markup, join, note, row, table, tag
from formwright.report.panels import Panel
from formwright.report.svg_canvas import element, inline, number, path, plain, point, text
from formwright.report.trial_rows import TrialRow
from formwright.report.words import brief
from formwright.search.op_nas import OperationTable

_CELLS_LEFT, _CELLS_TOP, _CELL_WIDTH, _CELL_HEIGHT = (
    92.0,
    26.0,
    96.0,
    34.0,
)  # room for the names, and the size of a cell
_STRONGEST = 62  # percent of colour; more would hide the words on it
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 1160.0, 350.0, 66.0, 14.0, 26.0, 44.0
_MOST_OTHERS, _LOWEST = 1_500, 0.05  # dots of trials that never lived, and the share of scores below the figure
_MOST_DESIGNS = 3  # designs that are shown layer by layer
_ABOUT_FORMULAS = (
    "Formulas are simplified: Q, K, V and P are linear maps of the layer's input, d is the width of a head, and a dot "
    "is a matrix product. In a drawing the left operand enters above the right one. A kernel is drawn as the tokens "
    "it covers."
)
_LOOKING_BACK = "The search did not use these scores."


def draw_operations(table: OperationTable) -> str:
    """Draw a heat map with a row for each place and a column for each operation."""
    places, operations = table.scores.shape
    tried = abs(table.scores[table.counts > 0])
    most = float(tried.max()) if len(tried) else 0.0
    heads = [
        text(_CELLS_LEFT + (column + 0.5) * _CELL_WIDTH, _CELLS_TOP - 9, name, text_anchor="middle")
        for column, name in enumerate(table.operations)
    ]
    sides = [
        text(
            _CELLS_LEFT - 12,
            _CELLS_TOP + (row + 0.5) * _CELL_HEIGHT + 4,
            f"{row + 1}",
            text_anchor="end",
            class_="quiet",
        )
        for row in range(places)
    ]
    title = text(0, _CELLS_TOP - 9, "place", class_="quiet")
    cells = [_operation_cell(table, row, column, most) for row in range(places) for column in range(operations)]
    label = f"Scores of {operations} operations at {places} places. Every cell has its number."
    return inline(
        _CELLS_LEFT + operations * _CELL_WIDTH,
        _CELLS_TOP + places * _CELL_HEIGHT,
        label,
        [title, *heads, *sides, *cells],
    )


def _operation_cell(table: OperationTable, row: int, column: int, most: float) -> str:
    count, score = int(table.counts[row, column]), float(table.scores[row, column])
    x, y = _CELLS_LEFT + column * _CELL_WIDTH, _CELLS_TOP + row * _CELL_HEIGHT
    place: dict[str, str | float] = {
        "x": x + 1,
        "y": y + 1,
        "width": _CELL_WIDTH - 2,
        "height": _CELL_HEIGHT - 2,
        "rx": 4,
    }
    where = f"Place {row + 1}, {table.operations[column]}"
    if not count:
        title = element("title", plain(f"{where}: never tried"))
        return element("g", title + element("rect", **place, class_="untried"))
    times = "1 formula" if count == 1 else f"{count:,} formulas"
    share = _STRONGEST * abs(score) / most if most else 0.0
    colour = f"fill:color-mix(in srgb, var(--{'better' if score > 0 else 'worse'}) {number(share)}%, var(--sheet))"
    return element(
        "g",
        element("title", plain(f"{where}: {score:+.2f} in {times}"))
        + element("rect", **place, class_="cell", style=colour)
        + text(x + _CELL_WIDTH / 2, y + 16, f"{score:+.2f}", text_anchor="middle", class_="figure")
        + text(x + _CELL_WIDTH / 2, y + 28, f"{count:,}", text_anchor="middle", class_="quiet small"),
    )


@dataclass(frozen=True)
class _Scale:
    """The positions of trial numbers and scores; values beyond the ends are clamped."""

    last: int
    low: float
    high: float

    def x(self, number: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * number / max(1, self.last)

    def y(self, score: float) -> float:
        share = (score - self.low) / (self.high - self.low) if self.high != self.low else 0.5
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * min(1.0, max(0.0, share))


def draw_population(found: Population, goal: str, *, larger_is_better: bool) -> str:
    """Draw lifespans over the trials, with a line to each child, and dots for all other trials."""
    scale = _population_scale(found, larger_is_better)
    shown = [found.others[place] for place in evenly_spaced(len(found.others), _MOST_OTHERS)]
    dots = [_dot(scale, number, score, goal, "other", 2.5) for number, score in shown]
    scores = {life.number: life.score for life in found.lives} | dict(found.others)
    births = [_birth(scale, life, scores[life.parent]) for life in found.lives if life.parent in scores]
    lives = [_life(scale, life, goal) for life in found.lives]
    label = f"{goal} of {len(scores):,} trials in the order of their numbers; {len(found.lives):,} were among the best."
    return inline(_WIDTH, _HEIGHT, label, [*_axes(scale, goal), *dots, *births, *lives])


def _population_scale(found: Population, larger_is_better: bool) -> _Scale:
    scores = [life.score for life in found.lives] + [score for _, score in found.others]
    ends = (_LOWEST, 1.0) if larger_is_better else (0.0, 1.0 - _LOWEST)
    low, high = np.quantile(scores, ends).tolist()
    lived = [life.score for life in found.lives]
    return _Scale(found.last, min(low, *lived), max(high, *lived))


def _axes(scale: _Scale, goal: str) -> list[str]:
    rows = [(scale.y(value), f"{value:g}") for value in _ticks(scale.low, scale.high)]
    lines = [path(f"M{point(_LEFT, y)}H{_WIDTH - _RIGHT:.1f}", "none", class_="rule") for y, _ in rows]
    words = [text(_LEFT - 10, y + 4, one, class_="quiet", text_anchor="end") for y, one in rows]
    low = _HEIGHT - _BOTTOM
    numbers = [
        text(scale.x(value), low + 18, f"{value:,g}", class_="quiet", text_anchor="middle")
        for value in _ticks(0, max(1, scale.last))
        if value == int(value)
    ]
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    names = [text(middle, low + 36, "trial", class_="quiet", text_anchor="middle"), text(0, 10, goal, class_="quiet")]
    return [*lines, *words, *numbers, *names]


def _ticks(low: float, high: float) -> Sequence[float]:
    """Choose five to ten round numbers between two ends."""
    if low == high:
        return [low]
    size = 10.0 ** np.floor(np.log10((high - low) / 5))
    step = next(size * times for times in (1, 2, 5, 10) if (high - low) / (size * times) <= 10)
    found = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
    return [float(f"{value:.10g}") for value in found]


def _dot(scale: _Scale, number: int, score: float, goal: str, kind: str, radius: float) -> str:
    title = element("title", plain(f"Trial {number:,}: {goal} {figure(score, goal)}"))
    return element(
        "circle", title, cx=scale.x(number), cy=scale.y(score), r=radius, class_=kind, data_trial=str(number)
    )


def _birth(scale: _Scale, life: Lifespan, parent: float) -> str:
    x = scale.x(life.number)
    return path(f"M{point(x, scale.y(parent))}V{scale.y(life.score):.1f}", "none", class_="birth")


def _life(scale: _Scale, life: Lifespan, goal: str) -> str:
    end = scale.last if life.ends is None else life.ends
    kind = "life" if life.ends is not None else "life alive"
    words = f"trial {life.ends:,} took its place" if life.ends is not None else "among the best to the end"
    title = element("title", plain(f"Trial {life.number:,}: {goal} {figure(life.score, goal)}, {words}"))
    x, y = scale.x(life.number), scale.y(life.score)
    line = path(f"M{point(x, y)}H{scale.x(end):.1f}", "none")
    dot = element("circle", cx=x, cy=y, r=4)
    return element("g", title + line + dot, class_=kind, data_trial=str(life.number))


def formulas_section(facts: StudyFacts) -> Markup:
    """Show every layer of the delivered designs, or of the best so far; empty for studies without formulas."""
    if facts.formulas is None:
        return join()
    shown = _designs(facts)
    parts = [_design(facts, row, names, opened=turn == 0) for turn, (row, names) in enumerate(shown[:_MOST_DESIGNS])]
    more = len(shown) - _MOST_DESIGNS
    left = [note(f"{more:,} more delivered designs are in the table of trials.")] if more > 0 else []
    return join(note(_ABOUT_FORMULAS), *parts, *left)


def population_section(facts: StudyFacts) -> Markup:
    """Draw which designs were among the best at any time; empty for studies without formulas."""
    if facts.formulas is None:
        return join()
    found, goal = facts.formulas.population, facts.goals[0]
    who = ", the parents of new designs" if facts.formulas.breeds else ""
    born = any(life.parent is not None for life in found.lives)
    about = (
        f"A line is a design, at the height of its score and for as long as it was among the best {found.most}{who}. "
        f"{'A thin line connects it with its parent. ' if born else ''}Dots are all other trials."
    )
    drawing = draw_population(found, goal.name, larger_is_better=goal.direction == "max")
    return join(note(about), tag("figure", Markup(drawing), tabindex=0))


def operation_scores(facts: StudyFacts) -> Markup:
    """Draw the scores of operations by their place in formulas; empty for studies without formulas."""
    if facts.formulas is None:
        return join()
    about = (
        "How well designs did that have an operation at a place of a formula, counted in the order of computation: the "
        "mean score, in standard deviations above or below that of all trials, with a bonus for what was tried "
        "rarely. The number below is how many formulas tried it. "
    ) + ("The search draws operations by these scores." if facts.formulas.guided else _LOOKING_BACK)
    return join(note(about), tag("figure", Markup(draw_operations(facts.formulas.operations)), tabindex=0))


def _designs(facts: StudyFacts) -> list[tuple[TrialRow, list[str]]]:
    """List the trials of delivered designs with their models' names, or the best trial without names."""
    rows = {row.digest: row for row in reversed(facts.trials) if row.state == "finished"}
    names: dict[str, list[str]] = {}
    for model in facts.models:
        if model.role in ("best", "front") and model.digest in rows:
            names.setdefault(model.digest, []).append(model.name)
    if names:
        return [(rows[digest], found) for digest, found in names.items()]
    return [] if facts.best_row is None else [(facts.best_row, [])]


def _design(facts: StudyFacts, trial: TrialRow, names: Sequence[str], *, opened: bool) -> Markup:
    goal = facts.goals[0].name
    score = f", {goal} {figure(trial.values.get(goal), goal)} in the search"
    summary = tag("summary", tag("b", ", ".join(names) or "Best design"), f": trial {trial.number:,}{score}")
    layers = [layer for stack in trial.card.stacks for layer in stack.layers] if isinstance(trial.card, Card) else []
    largest = max((mixer.kernel for mixer in _kernels(layers)), default=1)
    lines = [_layer(index, layer, largest) for index, layer in enumerate(layers, 1)]
    listed = table(("Layer", "Formula or kernel", "Drawing"), lines, class_="formulas")
    return tag("details", summary, listed, **({"open": "open"} if opened else {}))


def _kernels(layers: Iterable[Layer]) -> Iterable[LightweightConvolution]:
    mixers = [layer.mixer for layer in layers if isinstance(layer, Block)]
    return (mixer for mixer in mixers if isinstance(mixer, LightweightConvolution))


def _layer(index: int, layer: Layer, largest: int) -> Markup:
    words, drawing = _mixer_cells(layer, largest)
    return row(f"Layer {index}", (words, Markup(drawing)), "")


def _mixer_cells(layer: Layer, largest: int) -> tuple[Markup, str]:
    mixer = layer.mixer if isinstance(layer, Block) else None
    if isinstance(mixer, OpGraph):
        return tag("span", formula(mixer.term), class_="formula"), draw_formula(mixer.term)
    if isinstance(mixer, LightweightConvolution):
        return join(f"convolution, kernel {mixer.kernel}"), draw_kernel(mixer.kernel, largest)
    return join(brief(layer)), ""


FORMULAS = Panel(formulas_section, "Formulas, layer by layer", rank=40)
POPULATION = Panel(population_section, "Population over time", rank=41)
OPERATIONS = Panel(operation_scores, "Operations at their places", rank=42)
