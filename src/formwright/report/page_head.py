"""The panels at the top of a study's page: task and space, main result, best design and final models."""

from collections.abc import Iterable, Mapping
from typing import Any

from formwright.arch.card import Card
from formwright.cost import input_size
from formwright.pipeline.conclusion import between, comparison_line, score_line
from formwright.report.facts import StudyFacts
from formwright.report.figures import duration, figure, short_count
from formwright.report.final_models import FinalModel
from formwright.report.markup import Markup, asset, join, note, table, tag
from formwright.report.page_pipeline import command_box
from formwright.report.page_trials import design_text, value_names
from formwright.report.panels import Panel
from formwright.report.svg import draw_svg

_SPLITS = ("validation", "test")


def main_result(facts: StudyFacts) -> str:
    """Summarise the result: score and size of the best design, compared with the teacher or the baseline."""
    best, goal, model = facts.best_row, facts.goals[0].name, facts.found
    if best is None and facts.ledger.finished:
        return f"No trial {'' if facts.over else 'so far '}satisfies all limits."
    if best is None:
        return "No trial has finished." if facts.over else "No trial has finished yet."
    split = "validation" if model is None else model.split
    if model is None or goal not in model.scores(split):
        found = f"{goal} {figure(best.values.get(goal), goal)}{_size(best.costs.get('params'))}"
        return f"The best design{'' if facts.over else ' so far'}, trial {best.number:,}, has {found}."
    size = _size(model.params or best.costs.get("params"))
    score = score_line(goal, split, model.scores(split)[goal], model.evidence.get(split))
    return f"The best design, trial {best.number:,}{size and ','}{size}: {score}{_compared(facts, model, split, goal)}."


def _compared(facts: StudyFacts, model: FinalModel, split: str, goal: str) -> str:
    """Report the score of the teacher or the baseline, and whether the difference is significant."""
    other = facts.teacher or facts.baseline
    if other is None or goal not in other.scores(split):
        return ""
    name = "teacher" if other.role == "teacher" else "hand-made baseline"
    found, scores = facts.comparisons.get(model.name), (model.scores(split)[goal], other.scores(split)[goal])
    if found is None:
        return f"; the {name}{_size(other.params)} has {figure(scores[1], goal)}"
    evidence = model.evidence.get(split)
    beats = None if evidence is None else evidence.beats_majority(goal)
    return f". Compared row by row: {comparison_line(found, *scores, beats=beats, other=f'the {name}')}"


def _size(params: float | None) -> str:
    return f" with {short_count(params)} parameters" if params else ""


def header(facts: StudyFacts) -> Markup:
    """Write the title, the main result, and the command line with a button that copies it."""
    between_them = [tag("span", " in ", class_="quiet")] if facts.task else []
    title = join(facts.task, *between_them, _space(facts))
    parts = [
        tag("p", "Formwright study ", tag("b", facts.name), class_="kicker"),
        tag("h1", title),
        tag("p", main_result(facts), class_="finding"),
        *(note(f"Warning about the data: {warning}") for warning in facts.data_warnings),
        _chips(facts),
        command_box(facts.run.command),
        _tiles(facts),
    ]
    return tag("header", *parts)


def best_design(facts: StudyFacts) -> Markup:
    """Draw the best design next to its scores and costs, above the final models; other designs are shown as text."""
    row = facts.best_row
    if row is None:
        return tag("p", main_result(facts))
    numbers = {name: figure(row.values.get(name), name) for name in value_names([row], facts.goals)}
    if isinstance(row.card, Card):
        design = tag("figure", draw_svg(row.card, f"Trial {row.number:,}"), tabindex=0)
    else:
        design = tag("pre", design_text(row.card), class_="design", tabindex=0)
    if row.steps:
        numbers["training steps"] = figure(row.steps, "steps")
    numbers |= {"time": figure(row.seconds, "seconds"), "digest": row.digest[:12]}
    listed = tag("div", tag("h3", "In the search"), _pairs(numbers.items(), "pairs"))
    return join(tag("div", design, listed, class_="split"), models_table(facts))


def models_table(facts: StudyFacts) -> Markup:
    """List the final models with their validation and test scores; empty if there are none yet."""
    if not facts.models:
        return join()
    goals = [goal.name for goal in facts.goals]
    names = list(dict.fromkeys(name for model in facts.models for name in [*model.validation, *model.test]))
    names.sort(key=lambda name: name not in goals)
    costs = list(dict.fromkeys(name for model in facts.models for name in model.costs if name != "params"))
    heads = [f"{split} {name}" for name in names for split in _SPLITS]
    trained = any(model.steps for model in facts.models)
    heads += ["Parameters", *(name.removesuffix("_ms") for name in costs), *(["Steps"] if trained else [])]
    rows = [_model_row(model, names, costs, trained) for model in facts.models]
    rows += _majority_row(facts, names, len(heads))
    title = tag("h3", "Final models, trained to the end" if trained else "Delivered models")
    listed = table(["Model", "Role", *((head, "number") for head in heads)], rows)
    return join(title, listed, _how_measured(facts, costs))


def _how_measured(facts: StudyFacts, costs: list[str]) -> Markup:
    """Say for which input costs were counted and measured, and whether the machine was busy."""
    row = facts.best_row
    if row is None or not costs or not isinstance(row.card, Card):
        return join()
    words = f"Operations and milliseconds are those of one row of {input_size(row.card, facts.length)}"
    if facts.session is not None:
        where = "one thread" if facts.session.device == "cpu" else facts.session.device
        words += f"; milliseconds were measured on {where}, all models in turns"
        words += ", while the machine was busy with other work" if facts.session.busy else ""
    return note(f"{words}.")


def _model_row(model: FinalModel, names: list[str], costs: list[str], trained: bool) -> Markup:
    scores = [score_cell(model, split, name) for name in names for split in _SPLITS]
    counted = [figure(model.costs.get(name), name) for name in costs]
    cells = [*scores, figure(model.params, "params"), *counted]
    cells += [figure(model.steps, "steps")] if trained else []
    place = tag("small", model.path) if model.path else ""
    return _table_row(join(tag("b", model.name), place), model.role, cells)


def _table_row(name: Markup, role: str, cells: Iterable[str]) -> Markup:
    badge = tag("span", role, class_=f"badge {'best' if role == 'best' else ''}")
    numbers = (tag("td", cell, class_="number") for cell in cells)
    return tag("tr", tag("td", name, class_="name"), tag("td", badge), *numbers)


def score_cell(model: FinalModel, split: str, name: str) -> Markup:
    """Write a score with its 95 % interval below it."""
    evidence = model.evidence.get(split)
    interval = None if evidence is None else evidence.intervals.get(name)
    below = "" if interval is None else tag("small", between(interval))
    return join(figure(model.scores(split).get(name), name), below)


def _majority_row(facts: StudyFacts, names: list[str], columns: int) -> list[Markup]:
    """List the scores of a constant answer, if one of the models has them."""
    model = next((model for model in facts.models if model.evidence), None)
    known = {} if model is None else {split: one.majority for split, one in model.evidence.items()}
    answer = next((one.answer for one in known.values() if one is not None), None)
    if answer is None:
        return []
    found = [(known.get(split), name) for name in names for split in _SPLITS]
    cells = ["" if one is None else figure(one.scores.get(name), name) for one, name in found]
    return [_table_row(tag("b", answer), "ignores the input", [*cells, *[""] * (columns - len(cells))])]


def _space(facts: StudyFacts) -> str:
    """Name what was searched; the file name of an elastic space would not name the model."""
    if facts.compression is not None:
        return f"sub-networks of {facts.compression.model}"
    space = facts.config.get("space")
    return str(space["python"]).partition("#")[0] if isinstance(space, Mapping) and "python" in space else _text(space)


def _chips(facts: StudyFacts) -> Markup:
    goals = [f"{'maximise' if goal.direction == 'max' else 'minimise'} {goal.name}" for goal in facts.goals]
    signs = {"min": "\N{LESS-THAN OR EQUAL TO}", "max": "\N{GREATER-THAN OR EQUAL TO}"}
    limits = [f"{one.name} {signs[one.direction]} {figure(one.bound, one.name)}" for one in facts.limits]
    searcher = facts.config.get("searcher")
    name = _text(searcher.get("name", searcher.get("python")) if isinstance(searcher, Mapping) else searcher)
    evaluator = facts.config.get("evaluator")
    rows = evaluator.get("rows") if isinstance(evaluator, Mapping) else None
    judged = [f"judged by {rows:,} rows"] if isinstance(rows, int) else []
    recipe = [f"recipe {facts.run.recipe}"] if facts.run.recipe else []
    words = [*recipe, *goals, *limits, *judged, f"searcher {name}", f"seed {_text(facts.config.get('seed'))}"]
    state = f"ended: {facts.over}" if facts.over else "still running"
    live = tag("li", state, class_="over" if facts.over else "running")
    return tag("ul", live, *(tag("li", word) for word in words), class_="chips")


def _tiles(facts: StudyFacts) -> Markup:
    best, goal, ledger = facts.best_row, facts.goals[0].name, facts.ledger
    # what is chosen for a target need not have the highest score
    score = f"{goal} of the best in the search" if facts.targets else f"best {goal} in the search"
    several = len(facts.goals) > 1
    size = None if best is None else best.costs.get("params")
    counted = best is None or size is not None  # nothing is counted of designs that are no cards of ours
    entries = [
        (score, figure(None if best is None else best.values.get(goal), goal)),
        *([("parameters of the best", "\N{EN DASH}" if size is None else short_count(size))] if counted else []),
        ("designs tried", f"{ledger.finished:,}"),
        ("on the front", f"{len(facts.front):,}") if several else ("failed", f"{ledger.failed:,}"),
        ("time of the search", duration(ledger.elapsed)),
    ]
    return _pairs(entries, "tiles")


def _pairs(pairs: Iterable[tuple[str, str]], kind: str) -> Markup:
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs), class_=kind)


def _text(value: Any) -> str:
    return "unnamed" if value is None else str(value)


HEAD = Panel(header, rank=0, script=asset("copy.js"))
BEST = Panel(best_design, "Best design", rank=30)
