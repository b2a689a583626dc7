"""The top of the page: what was searched, what was found, and the best design."""

from collections.abc import Mapping
from typing import Any

from formwright.core.records import Objective
from formwright.cost import input_size
from formwright.report.facts import StudyFacts
from formwright.report.figures import duration, figure, short_count
from formwright.report.markup import Markup, join, tag
from formwright.report.models import FinalModel
from formwright.report.page_data import value_names
from formwright.report.rows import TrialRow
from formwright.report.sentence import what_was_found
from formwright.report.svg import draw_svg
from formwright.study.conclusion import between

_SPLITS = ("validation", "test")


def header(facts: StudyFacts) -> Markup:
    """Write the title, the finding in one sentence, and the command line with a button that copies it."""
    title = join(task_of(facts.config), tag("span", " in ", class_="quiet"), _space(facts))
    parts = [
        tag("p", "Formwright study ", tag("b", facts.name), class_="kicker"),
        tag("h1", title),
        tag("p", what_was_found(facts), class_="finding"),
        *(tag("p", f"Warning about the data: {warning}", class_="note") for warning in facts.data_warnings),
        _chips(facts),
        _command(facts.command),
        _tiles(facts),
    ]
    return tag("header", *parts)


def best_design(facts: StudyFacts) -> Markup:
    """Draw the best design beside its scores and its costs, above the final models."""
    row = facts.best_row
    if row is None:
        return tag("section", tag("h2", "Best design"), tag("p", what_was_found(facts)), id="best")
    numbers = {name: figure(row.values.get(name), name) for name in value_names([row], facts.goals)}
    drawing = Markup(draw_svg(row.card, f"Trial {row.number:,}"))
    beside = tag("div", tag("h3", "In the search"), _pairs(numbers | _search_facts(row)))
    body = tag("div", tag("figure", drawing, tabindex=0), beside, class_="split")
    return tag("section", tag("h2", "Best design"), body, models_table(facts), id="best")


def models_table(facts: StudyFacts) -> Markup:
    """List the final models with their scores on validation and on test; nothing when there are none yet."""
    if not facts.models:
        return join()
    goals = [goal.name for goal in facts.goals]
    names = list(dict.fromkeys(name for model in facts.models for name in [*model.validation, *model.test]))
    names.sort(key=lambda name: name not in goals)
    costs = list(dict.fromkeys(name for model in facts.models for name in model.costs if name != "params"))
    heads = [f"{split} {name}" for name in names for split in ("validation", "test")]
    first = [tag("th", head) for head in ("Model", "Role")]
    trained = any(model.steps for model in facts.models)
    heads += ["Parameters", *(name.removesuffix("_ms") for name in costs), *(["Steps"] if trained else [])]
    top = tag("tr", *first, *(tag("th", head, class_="number") for head in heads))
    rows = [_model_row(model, names, costs, trained) for model in facts.models]
    rows += _majority_row(facts, names, len(heads))
    table = tag("table", tag("thead", top), tag("tbody", *rows))
    title = "Final models, trained to the end" if trained else "Delivered models"
    return join(tag("h3", title), tag("div", table, class_="scroll", tabindex=0), _how_measured(facts, costs))


def _how_measured(facts: StudyFacts, costs: list[str]) -> Markup:
    """Say at which length operations are counted and milliseconds measured, and whether the machine was busy."""
    row = facts.best_row
    if row is None or not costs:
        return join()
    words = f"Operations and milliseconds are those of one row of {input_size(row.card, facts.length)}"
    if facts.sitting is not None:
        where = "one thread" if facts.sitting.device == "cpu" else facts.sitting.device
        words += f"; milliseconds were measured on {where}, all models in turns"
        words += ", while the machine was busy with other work" if facts.sitting.busy else ""
    return tag("p", f"{words}.", class_="note")


def task_of(config: Mapping[str, Any]) -> str:
    """Name the task of a study."""
    task = config.get("task")
    return _text(task.get("name") if isinstance(task, Mapping) else task)


def _model_row(model: FinalModel, names: list[str], costs: list[str], trained: bool) -> Markup:
    scores = [_score(model, split, name) for name in names for split in _SPLITS]
    counted = [figure(model.costs.get(name), name) for name in costs]
    cells = [*scores, figure(model.params, "params"), *counted]
    cells += [figure(model.steps, "steps")] if trained else []
    place = tag("small", model.path) if model.path else ""
    name = tag("td", tag("b", model.name), place, class_="name")
    role = tag("td", tag("span", model.role, class_=f"badge {'best' if model.role == 'best' else ''}"))
    return tag("tr", name, role, *(tag("td", cell, class_="number") for cell in cells))


def _score(model: FinalModel, split: str, name: str) -> Markup:
    """Write a score, and its 95 % interval below it."""
    evidence = model.evidence.get(split)
    interval = None if evidence is None else evidence.intervals.get(name)
    below = "" if interval is None else tag("small", between(interval))
    return join(figure(model.scores(split).get(name), name), below)


def _majority_row(facts: StudyFacts, names: list[str], columns: int) -> list[Markup]:
    """List what an answer that ignores the input scores, where one of the models knows."""
    model = next((model for model in facts.models if model.evidence), None)
    known = {} if model is None else {split: one.majority for split, one in model.evidence.items()}
    answer = next((one.answer for one in known.values() if one is not None), None)
    if answer is None:
        return []
    found = [known.get(split) for _ in names for split in _SPLITS]
    cells = [
        "" if one is None else figure(one.scores.get(name), name)
        for one, name in zip(found, [name for name in names for _ in _SPLITS], strict=True)
    ]
    cells += [""] * (columns - len(cells))
    ignoring = tag("td", tag("span", "ignores the input", class_="badge"))
    return [
        tag(
            "tr",
            tag("td", tag("b", answer), class_="name"),
            ignoring,
            *(tag("td", cell, class_="number") for cell in cells),
        )
    ]


def _space(facts: StudyFacts) -> str:
    """Name what was searched: the file of a space says nothing of whose sub-networks are in it."""
    found = facts.compression
    return _text(facts.config.get("space")) if found is None else f"sub-networks of {found.model}"


def _search_facts(row: TrialRow) -> dict[str, str]:
    steps = {} if not row.steps else {"training steps": figure(row.steps, "steps")}
    return steps | {"time": figure(row.seconds, "seconds"), "digest": row.digest[:12]}


def _chips(facts: StudyFacts) -> Markup:
    goals = [f"{'maximise' if goal.direction == 'max' else 'minimise'} {goal.name}" for goal in facts.goals]
    limits = [_limit(limit) for limit in facts.limits]
    searcher = facts.config.get("searcher")
    name = _text(searcher.get("name") if isinstance(searcher, Mapping) else searcher)
    rows = facts.config.get("judged_rows")
    judged = [f"judged by {rows:,} rows"] if isinstance(rows, int) else []
    words = [*goals, *limits, *judged, f"searcher {name}", f"seed {_text(facts.config.get('seed'))}"]
    state = f"ended: {facts.over}" if facts.over else "still running"
    live = tag("li", state, class_="over" if facts.over else "running")
    return tag("ul", live, *(tag("li", word) for word in words), class_="chips")


def _limit(limit: Objective) -> str:
    sign = "\N{LESS-THAN OR EQUAL TO}" if limit.direction == "min" else "\N{GREATER-THAN OR EQUAL TO}"
    return f"{limit.name} {sign} {figure(limit.bound, limit.name)}"


def _command(command: str) -> Markup:
    if not command:
        return join()
    button = tag("button", "Copy", type="button", id="copy", aria_label="Copy the command line")
    return tag("div", tag("code", command, id="command", tabindex=0), button, class_="command")


def _tiles(facts: StudyFacts) -> Markup:
    best, goal, ledger = facts.best_row, facts.goals[0].name, facts.ledger
    # what is chosen for a target need not have the highest score
    score = f"{goal} of the best in the search" if facts.targets else f"best {goal} in the search"
    entries = [
        (score, "\N{EN DASH}" if best is None else figure(best.metrics[goal], goal)),
        ("parameters of the best", "\N{EN DASH}" if best is None else short_count(best.costs["params"])),
        ("designs tried", f"{ledger.finished:,}"),
        ("on the front" if len(facts.goals) > 1 else "failed", f"{_fourth(facts):,}"),
        ("time of the search", duration(ledger.elapsed)),
    ]
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in entries), class_="tiles")


def _fourth(facts: StudyFacts) -> int:
    return len(facts.front) if len(facts.goals) > 1 else facts.ledger.failed


def _pairs(pairs: Mapping[str, str]) -> Markup:
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs.items()), class_="pairs")


def _text(value: Any) -> str:
    return "unnamed" if value is None else str(value)
