"""The page of a run: one HTML file that opens without a server and without a network, made of panels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any

from plotly.offline import get_plotlyjs

from formwright.report.facts import StudyFacts
from formwright.report.markup import Markup, asset, join, script_json, script_source, tag
from formwright.report.page_trials import PLOTS
from formwright.report.panels import EVERY_RUN, EVERY_SEARCH, PANELS, Contributions, Panel
from formwright.report.run_facts import RunFacts

StageFactsOf = Callable[[str], Any]  # gives what the stage of that name says of itself, or None


@dataclass(frozen=True)
class _Written:
    """A panel with what it came to."""

    name: str
    panel: Panel
    content: Markup
    data: Any

    @property
    def section(self) -> Markup:
        """Return the panel as an element of the page."""
        if not self.panel.title:
            return self.content
        title = tag("h2", self.panel.title, id=f"{self.name}-heading")
        return tag("section", title, self.content, id=self.name, aria_labelledby=f"{self.name}-heading")

    @property
    def script(self) -> str:
        """Return the script of the panel as a function of its own."""
        given = f'const data = JSON.parse(document.getElementById("data").textContent)[{script_json(self.name)}];'
        return f'(() => {{\n"use strict";\n{given}\n{self.panel.script}\n}})();\n' if self.panel.script else ""


def report_html(facts: StudyFacts, facts_of: StageFactsOf = lambda stage: None) -> str:
    """Write the page of a run that has a search."""
    title = " \N{MIDDLE DOT} ".join(filter(None, [facts.task, facts.name]))
    return _page(title, (*EVERY_SEARCH, *EVERY_RUN), facts.contributed, {"run": facts.run, "study": facts}, facts_of)


def run_html(run: RunFacts, contributed: Contributions, facts_of: StageFactsOf) -> str:
    """Write the page of a run without a search: what its stages contribute."""
    title = " \N{MIDDLE DOT} ".join(filter(None, [run.recipe, run.name]))
    return _page(title, ("run-head", *EVERY_RUN), contributed, {"run": run}, facts_of)


def _page(
    title: str, own: Sequence[str], contributed: Contributions, facts: Mapping[str, Any], facts_of: StageFactsOf
) -> str:
    """Put a page together.

    Its policy lets the browser run the scripts of its panels and nothing else, and load nothing from anywhere.
    """
    written, missing = [_written(name, PANELS.get(name), facts) for name in own], list(contributed.missing)
    for name, stage in contributed.panels.items():
        if name in own:
            continue
        try:
            panel = PANELS.get(name)
            given = {"stage": facts_of(stage)} if panel.source == "stage" else facts
            written.append(_written(name, panel, given))
        except Exception as error:  # a panel of another package may fail in any way; the page is written all the same
            missing.append(f"The panel {name} of the stage {stage} cannot be shown: {error or type(error).__name__}")
    shown = sorted((one for one in written if one.content), key=lambda one: one.panel.rank)
    plotly = any(one.panel.plotly for one in shown)
    scripts = ([get_plotlyjs()] if plotly else []) + [one.script for one in shown if one.script]
    allowed = " ".join([*(["'unsafe-eval'"] if plotly else []), *map(script_source, scripts)])
    return Template(asset("page.html")).substitute(
        title=join(title),
        style="\n".join([asset("page.css"), *dict.fromkeys(one.panel.style for one in shown if one.panel.style)]),
        body=_body(shown, missing),
        data=script_json({one.name: one.data for one in shown if one.data is not None}),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
        allowed=allowed or "'none'",
    )


def _written(name: str, panel: Panel, facts: Mapping[str, Any]) -> _Written:
    given = facts.get(panel.source)
    if given is None:
        return _Written(name, panel, join(), None)
    content = join(panel.html(given))
    return _Written(name, panel, content, panel.data(given) if panel.data is not None and content else None)


def _body(shown: Sequence[_Written], missing: Sequence[str]) -> Markup:
    plots = join(*(one.section for one in shown if one.panel.place == "plots"))
    page = [one for one in shown if one.panel.place == "page"]
    inside = any(PLOTS in one.content for one in page)
    sections = [Markup(one.section.replace(PLOTS, plots)) for one in page] + ([] if inside else [plots])
    lines = [tag("li", line) for line in missing]
    note = tag("section", tag("h2", "Left out"), tag("ul", *lines), id="left-out") if lines else join()
    return join(*sections[:-1], note, *sections[-1:])
