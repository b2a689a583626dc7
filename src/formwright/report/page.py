"""The page of a study: one HTML file that opens without a server and without a network."""

from pathlib import Path
from string import Template

from plotly.offline import get_plotlyjs

from formwright.core.files import write_whole
from formwright.report.facts import StudyFacts, study_facts
from formwright.report.markup import join, script_json
from formwright.report.page_compression import chosen_widths, search_space
from formwright.report.page_data import page_data
from formwright.report.page_foot import choices_that_matter, configuration, cost_ledger, failures, footer
from formwright.report.page_formulas import formulas_of_layers, operation_scores, population_over_time
from formwright.report.page_head import best_design, header, task_of
from formwright.report.page_map import map_of_space, predictions_and_outcomes
from formwright.report.page_targets import asked_and_met
from formwright.report.source import asset, script_source
from formwright.space.space import Space
from formwright.study.store import Log

_SCRIPTS = (
    "study.js",
    "format.js",
    "drawing.js",
    "choose.js",
    "figure.js",
    "plots.js",
    "map.js",
    "predictions.js",
    "table.js",
    "start.js",
)


def report_html(facts: StudyFacts) -> str:
    """Write the page of a study.

    Its policy lets the browser run our two scripts and nothing else, and load nothing from anywhere.
    """
    plotly, script = get_plotlyjs(), _script()
    sections = {
        "title": join(f"{task_of(facts.config)} \N{MIDDLE DOT} {facts.name}"),
        "header": header(facts),
        "targets": asked_and_met(facts),
        "best": best_design(facts),
        "space": search_space(facts),
        "chosen": chosen_widths(facts),
        "formulas": formulas_of_layers(facts),
        "population": population_over_time(facts),
        "operations": operation_scores(facts),
        "map": map_of_space(facts),
        "predictions": predictions_and_outcomes(facts),
        "importance": choices_that_matter(facts),
        "failures": failures(facts),
        "ledger": cost_ledger(facts),
        "configuration": configuration(facts),
        "footer": footer(facts),
    }
    parts = {"style": asset("page.css"), "plotly": plotly, "script": script, "data": script_json(page_data(facts))}
    return Template(asset("page.html")).substitute(
        sections, **parts, scripts=f"{script_source(plotly)} {script_source(script)}"
    )


def write_report(log: Log, space: Space | None, path: Path) -> None:
    """Write the page of a study, running or over, to a file: all of it, or nothing; `space` as in `study_facts`."""
    write_whole(path, report_html(study_facts(log, space)))


def _script() -> str:
    parts = "\n".join(asset(name) for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'
