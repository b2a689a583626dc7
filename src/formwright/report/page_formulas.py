"""The page of a study that searches formulas: those of its models, who lived when, and which operations did well."""

from collections.abc import Iterable, Sequence

from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer
from formwright.arch.ops import LightweightConvolution, OpGraph
from formwright.report.facts import StudyFacts
from formwright.report.figures import figure
from formwright.report.formula import formula
from formwright.report.markup import Markup, join, tag
from formwright.report.rows import TrialRow
from formwright.report.svg_formula import draw_formula, draw_kernel
from formwright.report.svg_operations import draw_operations
from formwright.report.svg_population import draw_population
from formwright.report.words import brief

_MOST = 3  # designs that are shown layer by layer
_ABOUT_FORMULAS = (
    "Formulas are simplified: Q, K, V and P are linear maps of the layer's input, d is the width of a head, and a dot "
    "is a matrix product. In a drawing the left operand enters above the right one. A kernel is drawn as the tokens "
    "that it sees."
)

_LOOKING_BACK = "The search did not go by these scores."


def formulas_of_layers(facts: StudyFacts) -> Markup:
    """Write every layer of the delivered designs, or of the best one so far; nothing for studies without formulas."""
    if facts.invention is None:
        return join()
    shown = _designs(facts)
    parts = [_design(facts, row, names, opened=turn == 0) for turn, (row, names) in enumerate(shown[:_MOST])]
    more = len(shown) - _MOST
    left = [tag("p", f"{more:,} more delivered designs are in the table of trials.", class_="note")] if more > 0 else []
    title, about = tag("h2", "Formulas, layer by layer"), tag("p", _ABOUT_FORMULAS, class_="note")
    return tag("section", title, about, *parts, *left, id="formulas")


def population_over_time(facts: StudyFacts) -> Markup:
    """Draw which designs were among the best at any time; nothing for studies without formulas."""
    if facts.invention is None:
        return join()
    found, goal = facts.invention.population, facts.goals[0]
    who = ", which are those that have children" if facts.invention.breeds else ""
    born = any(life.parent is not None for life in found.lives)
    about = (
        f"A line is a design, at the height of its score and as long as it was among the best {found.most}{who}. "
        f"{'A thin line comes from its parent. ' if born else ''}Dots are trials that were never among them."
    )
    drawing = draw_population(found, goal.name, larger_is_better=goal.direction == "max")
    return _figure("population", "Population over time", about, drawing)


def operation_scores(facts: StudyFacts) -> Markup:
    """Draw the scores of operations at their places in formulas; nothing for studies without formulas."""
    if facts.invention is None:
        return join()
    about = (
        "How well designs did that have an operation at a place of a formula, counted in the order of computation: the "
        "mean score, in standard deviations above or below that of all trials, with an allowance for what was tried "
        "seldom. Below it stands in how many formulas it was tried. "
    ) + ("The search draws operations by these scores." if facts.invention.guided else _LOOKING_BACK)
    return _figure("operations", "Operations at their places", about, draw_operations(facts.invention.operations))


def _figure(name: str, title: str, about: str, drawing: str) -> Markup:
    figure_of_it = tag("figure", Markup(drawing), tabindex=0)
    return tag("section", tag("h2", title), tag("p", about, class_="note"), figure_of_it, id=name)


def _designs(facts: StudyFacts) -> list[tuple[TrialRow, list[str]]]:
    """List the trials whose designs were delivered with the names of their models, or the best one without."""
    rows = {row.digest: row for row in reversed(facts.trials) if row.state == "finished"}
    names: dict[str, list[str]] = {}
    for model in facts.models:
        if model.role in ("best", "front") and model.digest in rows:
            names.setdefault(model.digest, []).append(model.name)
    if names:
        return [(rows[digest], found) for digest, found in names.items()]
    return [] if facts.best_row is None else [(facts.best_row, [])]


def _design(facts: StudyFacts, row: TrialRow, names: Sequence[str], *, opened: bool) -> Markup:
    goal = facts.goals[0].name
    score = f", {goal} {figure(row.values.get(goal), goal)} in the search"
    summary = tag("summary", tag("b", ", ".join(names) or "Best design"), f": trial {row.number:,}{score}")
    top = tag("tr", *(tag("th", head) for head in ("Layer", "Formula or kernel", "Drawing")))
    largest = max((mixer.kernel for mixer in _kernels(row.card)), default=1)
    lines = [_layer(index, layer, largest) for index, layer in enumerate(_layers(row.card), 1)]
    table = tag("table", tag("thead", top), tag("tbody", *lines), class_="formulas")
    scroll = tag("div", table, class_="scroll", tabindex=0)
    return tag("details", summary, scroll, **({"open": "open"} if opened else {}))


def _layers(card: Card) -> list[Layer]:
    return [layer for stack in card.stacks for layer in stack.layers]


def _kernels(card: Card) -> Iterable[LightweightConvolution]:
    mixers = [layer.mixer for layer in _layers(card) if isinstance(layer, Block)]
    return (mixer for mixer in mixers if isinstance(mixer, LightweightConvolution))


def _layer(index: int, layer: Layer, largest: int) -> Markup:
    words, drawing = _told(layer, largest)
    return tag("tr", tag("th", f"Layer {index}", scope="row"), tag("td", words), tag("td", Markup(drawing)))


def _told(layer: Layer, largest: int) -> tuple[Markup, str]:
    mixer = layer.mixer if isinstance(layer, Block) else None
    if isinstance(mixer, OpGraph):
        return tag("span", formula(mixer.term), class_="formula"), draw_formula(mixer.term)
    if isinstance(mixer, LightweightConvolution):
        return join(f"convolution, kernel {mixer.kernel}"), draw_kernel(mixer.kernel, largest)
    return join(brief(layer)), ""
