"""The panel of a training: the model, its scores, and the loss over the steps."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from formwright.arch.card import Card
from formwright.pipeline.conclusion import training_summary
from formwright.report.markup import Markup, join, row, table, tag
from formwright.report.panels import Panel
from formwright.report.svg import draw_svg
from formwright.report.svg_canvas import path
from formwright.report.svg_chart import Chart

_MOST_POINTS = 300  # of a curve; of a longer training, means of neighbouring steps are drawn


def training_section(facts: Mapping[str, Any]) -> Markup:
    """Show the facts of a training (`TrainingOutcome.facts`)."""
    found = training_summary(facts)
    drawing = tag("figure", draw_svg(Card.from_json(facts["card"]), facts["name"]), tabindex=0)
    scores = table([found.heads[0], "Value"], [row(name, [value], "") for name, value in found.rows])
    curve = draw_curve(facts["losses"], facts["best_step"])
    return join(
        *(tag("p", line, class_="finding") for line in found.conclusion),
        tag("div", drawing, scores, class_="split"),
        *([tag("h3", "Training loss"), tag("figure", curve, tabindex=0)] if curve else []),
    )


def draw_curve(losses: Sequence[float], best_step: int) -> Markup:
    """Draw the loss over the steps, and the step of the weights that were kept; empty without any finite loss."""
    each = -(-len(losses) // _MOST_POINTS)  # steps that one point stands for, rounded up
    points = [
        (start + (len(part) + 1) / 2, float(np.mean(part)))
        for start in range(0, len(losses), max(each, 1))
        if all(map(isfinite, part := losses[start : start + each]))
    ]
    if not points:
        return join()
    values = [value for _, value in points]
    chart = Chart(len(losses), min(0.0, *values), max(values))
    line = path("M" + "L".join(chart.point(*one) for one in points), "none", class_="curve")
    kept = path(f"M{chart.point(best_step, chart.low)}V{chart.y(chart.high):.1f}", "none", class_="birth")
    label = f"Training loss over {len(losses):,} steps, from {values[0]:.4g} to {values[-1]:.4g}"
    title = tag("title", f"The weights after step {best_step:,} were kept")
    return chart.draw(label, "step", "loss", [line, tag("g", title, kept)])


TRAINING = Panel(training_section, "Training", source="stage", rank=20)
