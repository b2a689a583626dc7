"""Panels about the run as a whole: its stages, drawn and with their options, and what wrote the page."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from formwright import __version__
from formwright.report.markup import Markup, asset, join, tag
from formwright.report.panels import Panel, RunFacts, StageFacts, stages_in
from formwright.report.svg_canvas import inline, path, point, text
from formwright.report.words import shortened

_WIDTH, _HEIGHT, _ACROSS, _DOWN = 138.0, 44.0, 34.0, 14.0  # of a box, and the room between two
_LETTERS, _MOST_LETTERS = 17, 400  # of a name in a box, and of an option


def run_head(facts: RunFacts) -> Markup:
    """Write the head of a run that has no search, or several."""
    done = sum(stage.done for stage in facts.stages)
    parts = [
        tag("p", "Formwright run ", tag("b", facts.name), class_="kicker"),
        tag("h1", facts.recipe or facts.name),
        tag("p", f"{done} of {len(facts.stages)} stages are done.", class_="finding"),
        command_box(facts.command),
    ]
    return tag("header", *parts)


def command_box(command: str) -> Markup:
    """Show the command lines with a button that copies them; empty if there are none."""
    if not command:
        return join()
    button = tag("button", "Copy", type="button", id="copy", aria_label="Copy the command line")
    return tag("div", tag("code", command, id="command", tabindex=0), button, class_="command")


def pipeline_figure(facts: RunFacts) -> Markup:
    return tag("figure", draw_pipeline(facts.stages), tabindex=0) if facts.stages else join()


def draw_pipeline(stages: Sequence[StageFacts]) -> Markup:
    """Draw stages as boxes from left to right, each behind all that it reads from.

    A line is left out where others lead the same way: who reads from `b`, which reads from `a`, may read from `a` too.
    """
    places: dict[str, tuple[float, float]] = {}
    behind: dict[str, set[str]] = {}
    wires, columns = [], list[int]()
    for stage in stages:
        known = [name for name in stage.inputs if name in places]
        column = max((columns[list(places).index(name)] + 1 for name in known), default=0)
        places[stage.name] = (1 + column * (_WIDTH + _ACROSS), 1 + columns.count(column) * (_HEIGHT + _DOWN))
        columns.append(column)
        implied = {further for name in known for further in behind[name]}
        behind[stage.name] = implied | set(known)
        wires += [_wire(places[name], places[stage.name]) for name in known if name not in implied]
    width = max(x for x, _ in places.values()) + _WIDTH + 1
    height = max(y for _, y in places.values()) + _HEIGHT + 1
    done = ", ".join(stage.name for stage in stages if stage.done) or "none"
    label = f"{len(stages)} stages: {', '.join(places)}. Done: {done}."
    return inline(width, height, label, [*wires, *(_box(stage, *places[stage.name]) for stage in stages)], grows=False)


def _box(stage: StageFacts, x: float, y: float) -> Markup:
    state = "done" if stage.done else "not done yet"
    reads = f"; reads from {', '.join(stage.inputs)}" if stage.inputs else ""
    return tag(
        "g",
        tag("title", f"{stage.name}: {state}{reads}"),
        tag("rect", x=x, y=y, width=_WIDTH, height=_HEIGHT, rx=8),
        text(x + 12, y + 19, shortened(stage.name, _LETTERS), class_="strong"),
        text(x + 12, y + 35, "\N{CHECK MARK} done" if stage.done else "not done", class_="quiet"),
        class_=f"stage {'done' if stage.done else 'open'}",
        data_stage=stage.name,
    )


def _wire(start: tuple[float, float], end: tuple[float, float]) -> Markup:
    """Draw a curve from the right edge of a box to the left edge of another."""
    x, y, to_x, to_y = start[0] + _WIDTH, start[1] + _HEIGHT / 2, end[0], end[1] + _HEIGHT / 2
    bend = _ACROSS / 2 + (to_x - x) / 6
    curve = f"M{point(x, y)}C{point(x + bend, y)} {point(to_x - bend, to_y)} {point(to_x, to_y)}"
    return path(curve, "none", class_="wire")


def configuration(facts: RunFacts) -> Markup:
    """List the options of every stage, and the whole configuration as JSON."""
    stages = stages_in(facts.config)
    listed = [_stage(name, options, stages) for name, options in stages.items()]
    whole = json.dumps(facts.config, indent=2, ensure_ascii=False)
    details = tag("details", tag("summary", "Everything needed to reproduce this run"), tag("pre", whole, tabindex=0))
    recipe = tag("p", "Recipe: ", tag("b", facts.recipe), class_="note") if facts.recipe else join()
    return join(recipe, tag("div", *listed, class_="stages"), details)


def _stage(name: str, options: Mapping[str, Any], stages: Mapping[str, Any]) -> Markup:
    kind = str(options.get("stage", ""))
    badge = join(" ", tag("span", kind, class_="badge")) if kind != name else ""
    rows = [
        tag("tr", tag("th", option.replace("_", " "), scope="row"), tag("td", _value(value, stages)))
        for option, value in options.items()
        if option != "stage" and value not in (None, "", [], {})
    ]
    return tag("div", tag("h3", name, badge), tag("table", tag("tbody", *rows)), id=f"stage-{name}")


def _value(value: Any, stages: Mapping[str, Any]) -> Markup:
    """Write the value of an option; the name of a stage leads to it."""
    if isinstance(value, str) and value in stages:
        return tag("a", value, href=f"#stage-{value}")
    if isinstance(value, Mapping):
        return _part(value, stages)
    if isinstance(value, list | tuple):
        pieces = [piece for item in value for piece in (join(", "), _value(item, stages))]
        return join(*pieces[1:])
    words = {True: "yes", False: "no"}.get(value) if isinstance(value, bool) else str(value)
    return join(shortened(str(words), _MOST_LETTERS))


def _part(value: Mapping[str, Any], stages: Mapping[str, Any]) -> Markup:
    """Write a part with its options, or any other object."""
    if value.keys() == {"python"}:
        return join(tag("code", str(value["python"])), " (Python)")
    name = tag("b", str(value["name"])) if "name" in value else ""
    options = [
        join(f"{option.replace('_', ' ')} ", _value(item, stages))
        for option, item in value.items()
        if option != "name" and item not in (None, "", [], {})
    ]
    return join(name, *(tag("span", option, class_="option") for option in options))


def footer(facts: RunFacts) -> Markup:
    """Say what wrote the page, and as of when."""
    when = "" if facts.as_of is None else f", as of {datetime.fromtimestamp(facts.as_of, UTC):%Y-%m-%d %H:%M:%S} UTC"
    again = "" if facts.over else " The run was not over: run the report again to see more."
    return tag("footer", f"Written by formwright {__version__}{when}.{again}")


HEAD = Panel(run_head, source="run", rank=0, script=asset("copy.js"))
PIPELINE = Panel(pipeline_figure, "Pipeline", source="run", rank=10)
CONFIGURATION = Panel(configuration, "Configuration", source="run", rank=90)
FOOTER = Panel(footer, source="run", rank=100)
