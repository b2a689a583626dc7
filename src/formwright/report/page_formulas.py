"""Panels of a study that searches formulas: formulas by layer, population over time, operation scores."""

from collections.abc import Sequence

import numpy as np

from formwright.arch.card import Card
from formwright.arch.formula import formula
from formwright.arch.layers import Block, Layer
from formwright.arch.ops import LightweightConvolution, OpGraph
from formwright.report.facts import StudyFacts, TrialRow
from formwright.report.figures import evenly_spaced, figure
from formwright.report.formula import draw_formula, draw_kernel
from formwright.report.formula_statistics import Lifespan, Population
from formwright.report.markup import Markup, join, note, number, row, table, tag
from formwright.report.panels import Panel
from formwright.report.svg_canvas import inline, path, point, text
from formwright.report.svg_chart import Chart
from formwright.report.words import brief
from formwright.search.op_nas import OperationTable

_CELLS_LEFT, _CELLS_TOP, _CELL_WIDTH, _CELL_HEIGHT = 92.0, 26.0, 96.0, 34.0  # room for names, and size of a cell
_STRONGEST = 62  # percent of colour; more would hide the words on it
_MOST_OTHERS, _LOWEST = 1_500, 0.05  # dots of trials that never lived, and the share of scores below the figure
_MOST_DESIGNS = 3  # designs that are shown layer by layer
_ABOUT_FORMULAS = (
    "Formulas are simplified: Q, K, V and P are linear maps of the layer's input, d is the width of a head, and a dot "
    "is a matrix product. In a drawing the left operand enters above the right one. A kernel is drawn as the tokens "
    "it covers."
)
_LOOKING_BACK = "The search did not use these scores."


def draw_operations(table: OperationTable) -> Markup:
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


def _operation_cell(table: OperationTable, row: int, column: int, most: float) -> Markup:
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
        return tag("g", tag("title", f"{where}: never tried"), tag("rect", **place, class_="untried"))
    times = "1 formula" if count == 1 else f"{count:,} formulas"
    share = _STRONGEST * abs(score) / most if most else 0.0
    colour = f"fill:color-mix(in srgb, var(--{'better' if score > 0 else 'worse'}) {number(share)}%, var(--sheet))"
    return tag(
        "g",
        tag("title", f"{where}: {score:+.2f} in {times}"),
        tag("rect", **place, class_="cell", style=colour),
        text(x + _CELL_WIDTH / 2, y + 16, f"{score:+.2f}", text_anchor="middle", class_="figure"),
        text(x + _CELL_WIDTH / 2, y + 28, f"{count:,}", text_anchor="middle", class_="quiet small"),
    )


def draw_population(found: Population, goal: str, *, larger_is_better: bool) -> Markup:
    """Draw lifespans over the trials, with a line to each child, and dots for all other trials."""
    scores = {life.number: life.score for life in found.lives} | dict(found.others)
    ends = (_LOWEST, 1.0) if larger_is_better else (0.0, 1.0 - _LOWEST)
    low, high = np.quantile(list(scores.values()), ends).tolist()
    lived = [life.score for life in found.lives]
    scale = Chart(found.last, min(low, *lived), max(high, *lived))
    shown = [found.others[place] for place in evenly_spaced(len(found.others), _MOST_OTHERS)]
    dots = [_dot(scale, number, score, goal, "other", 2.5) for number, score in shown]
    births = [
        path(f"M{scale.point(life.number, scores[life.parent])}V{scale.y(life.score):.1f}", "none", class_="birth")
        for life in found.lives
        if life.parent in scores
    ]
    lives = [_life(scale, life, goal) for life in found.lives]
    label = f"{goal} of {len(scores):,} trials in the order of their numbers; {len(found.lives):,} were among the best."
    return scale.draw(label, "trial", goal, [*dots, *births, *lives])


def _dot(scale: Chart, number: int, score: float, goal: str, kind: str, radius: float) -> Markup:
    title = tag("title", f"Trial {number:,}: {goal} {figure(score, goal)}")
    return tag("circle", title, cx=scale.x(number), cy=scale.y(score), r=radius, class_=kind, data_trial=number)


def _life(scale: Chart, life: Lifespan, goal: str) -> Markup:
    end = scale.last if life.ends is None else life.ends
    kind = "life" if life.ends is not None else "life alive"
    words = f"trial {life.ends:,} took its place" if life.ends is not None else "among the best to the end"
    title = tag("title", f"Trial {life.number:,}: {goal} {figure(life.score, goal)}, {words}")
    x, y = scale.x(life.number), scale.y(life.score)
    line = path(f"M{point(x, y)}H{scale.x(end):.1f}", "none")
    return tag("g", title, line, tag("circle", cx=x, cy=y, r=4), class_=kind, data_trial=life.number)


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
    return join(note(about), tag("figure", drawing, tabindex=0))


def operation_scores(facts: StudyFacts) -> Markup:
    """Draw the scores of operations by their place in formulas; empty for studies without formulas."""
    if facts.formulas is None:
        return join()
    about = (
        "How well designs did that have an operation at a place of a formula, counted in the order of computation: the "
        "mean score, in standard deviations above or below that of all trials, with a bonus for what was tried "
        "rarely. The number below is how many formulas tried it. "
    ) + ("The search draws operations by these scores." if facts.formulas.guided else _LOOKING_BACK)
    return join(note(about), tag("figure", draw_operations(facts.formulas.operations), tabindex=0))


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
    mixers = [layer.mixer for layer in layers if isinstance(layer, Block)]
    largest = max((one.kernel for one in mixers if isinstance(one, LightweightConvolution)), default=1)
    lines = [row(f"Layer {index}", _mixer_cells(layer, largest), "") for index, layer in enumerate(layers, 1)]
    listed = table(("Layer", "Formula or kernel", "Drawing"), lines, class_="formulas")
    return tag("details", summary, listed, **({"open": "open"} if opened else {}))


def _mixer_cells(layer: Layer, largest: int) -> tuple[Markup, Markup]:
    mixer = layer.mixer if isinstance(layer, Block) else None
    if isinstance(mixer, OpGraph):
        return tag("span", formula(mixer.term), class_="formula"), draw_formula(mixer.term)
    if isinstance(mixer, LightweightConvolution):
        return join(f"convolution, kernel {mixer.kernel}"), draw_kernel(mixer.kernel, largest)
    return join(brief(layer)), join()


FORMULAS = Panel(formulas_section, "Formulas, layer by layer", rank=40)
POPULATION = Panel(population_section, "Population over time", rank=41)
OPERATIONS = Panel(operation_scores, "Operations at their places", rank=42)
