"""Panels about the search itself: map, predictions, importance of choices, failures and cost."""

from collections.abc import Sequence
from math import sqrt

from formwright.report.choice_importance import Bar
from formwright.report.facts import StudyFacts
from formwright.report.figures import duration, score, short_count
from formwright.report.markup import Markup, join, note, row, tag
from formwright.report.panels import Panel
from formwright.report.predictions import FIRST, Predictions
from formwright.report.space_map import SpaceMap

_PATHS = (("best", "best to best"), ("all", "every trial"))
_MOST_BARS, _MOST_REASONS, _MOST_NUMBERS = 15, 50, 12


def map_section(facts: StudyFacts) -> Markup:
    """Write the placeholder of the map with its caption, or the reason why there is no map."""
    found = facts.space_map
    if found.hidden:
        return _without("Map of the space", found.hidden, "map-part")
    # where there are few trials, the way through all of them can be followed by eye
    pressed = "all" if len(found.spots) <= 100 else "best"
    buttons = [
        tag("button", words, type="button", data_path=path, aria_pressed=str(path == pressed).lower())
        for path, words in _PATHS
    ]
    switch = tag("div", *buttons, class_="switch", role="group", aria_label="Path of the search")
    return _figure("map", "Map of the space", _about_map(found, len(facts.trials)), "plot tall", switch)


def predictions_section(facts: StudyFacts) -> Markup:
    """Write the placeholder of the predictions with their quality, or the reason why there are none."""
    found, title = facts.predictions, "Prediction against outcome"
    if found.hidden:
        return _without(title, found.hidden, "predictions-part")
    return _figure("predictions", title, _about_predictions(found, facts.goals[0].name), "plot")


def _about_map(found: SpaceMap, trials: int) -> str:
    known = "designs of the space" if found.whole else "designs drawn from the space, which is too large to list"
    coordinates = "Transformer2vec embedding" if found.embedded else "one-hot encoding"
    thinned = (
        f" {len(found.spots):,} evenly spaced of {trials:,} trials are shown." if len(found.spots) < trials else ""
    )
    return (
        f"Similar designs are close together: the axes are the two directions in which {found.designs:,} "
        f"{known} vary most, {found.share:.0%} of the variance of their {coordinates}. Trials have the "
        "colour of their score, and a line that grows stronger connects them in order; grey dots are other designs."
        f"{thinned}"
    )


def _about_predictions(found: Predictions, goal: str) -> str:
    count, held = len(found.guesses), sum(guess.holds for guess in found.guesses)
    some = (
        f" Of {found.trials:,} trials, {found.learnt:,} evenly spaced ones were used."
        if found.learnt < found.trials
        else ""
    )
    return (
        f"What the surrogate of BOSHNAS predicts for {count} trials after the first {FIRST}, each time from the "
        f"trials before it only, whether or not the search used it. {_worth(found.spearman, count, goal)} "
        f"{held} of {count} outcomes lie within the 90 % interval.{some}"
    )


def _worth(spearman: float, count: int, goal: str) -> str:
    result = f"The rank correlation with the measured {goal} is {spearman:.2f}"
    chance = 1.645 / sqrt(count - 1)  # the 90 % bound without any correlation
    if abs(spearman) < chance:
        return f"{result}, which may be chance: {count} trials are too few to show that it ranks designs."
    if spearman < 0:
        return f"{result}: it ranked worse designs above better ones."
    strength = "mostly" if spearman >= 0.7 else "often" if spearman >= 0.4 else "sometimes"
    return f"{result}: it {strength} ranked better designs above worse ones."


def _figure(name: str, title: str, about: str, kind: str, switch: Markup | None = None) -> Markup:
    head = tag("div", tag("h3", title, id=f"{name}-title"), switch or join(), class_="plot-head")
    plot = tag("div", id=name, class_=kind, role="img", aria_labelledby=f"{name}-title")
    return tag("div", head, note(about), plot, id=f"{name}-part")


def _without(title: str, why: str, name: str) -> Markup:
    return tag("div", tag("div", tag("h3", title), class_="plot-head"), note(why), id=name)


def importance_section(facts: StudyFacts) -> Markup:
    """Show the importance of choices as bars, or the reason why it is unknown."""
    found, goal = facts.importance, facts.goals[0].name
    if found.hidden or found.r2 is None:
        return note(found.hidden)
    about = (
        f"A random forest fitted to the choices explains {found.r2:.0%} of the variance of {goal} in held-out "
        f"trials (R² = {score(found.r2)}, {found.trials:,} trials, five-fold cross-validation). A bar is the R² "
        "that is lost when this choice is shuffled among the trials. It shows what moved the score in this search, "
        "not the cause. Numbers count the parts of a design, which may be groups of equal layers."
    )
    charts = tag("div", _bars("In all layers together", found.by_kind), _bars("By place", found.by_place), class_="two")
    return join(note(about), charts)


def failures(facts: StudyFacts) -> Markup:
    """List the failed trials by reason, most frequent first."""
    reasons: dict[str, list[int]] = {}
    for trial in facts.trials:
        if trial.state == "failed":
            reasons.setdefault(trial.reason, []).append(trial.number)
    if not reasons:
        return note("No trial failed.")
    ordered = sorted(reasons.items(), key=lambda item: -len(item[1]))
    items = [_failure(reason, numbers) for reason, numbers in ordered[:_MOST_REASONS]]
    left = len(ordered) - len(items)
    more = note(f"and {left:,} more reasons; the table shows every failed trial") if left else ""
    return join(tag("ul", *items, class_="reasons"), more)


def cost_ledger(facts: StudyFacts) -> Markup:
    ledger = facts.ledger
    lines = [
        ("Trials finished", f"{ledger.finished:,}"),
        ("Trials failed", f"{ledger.failed:,}"),
        ("Trials running", f"{ledger.pending:,}"),
        ("Search time, without pauses", duration(ledger.elapsed)),
        ("Total evaluation time", duration(ledger.spent.seconds)),
        ("Training steps", f"{ledger.spent.steps:,}"),
        ("Multiply-accumulates", f"{short_count(ledger.spent.macs)}"),
    ]
    return tag("table", tag("tbody", *(row(name, [value]) for name, value in lines)))


def _bars(title: str, bars: Sequence[Bar]) -> Markup:
    if not bars:
        return tag("div", tag("h3", title), note("No choice changes the prediction."))
    longest = bars[0].lost
    rows = []
    for bar in bars[:_MOST_BARS]:
        line = tag("span", tag("i", style=f"width:{100 * bar.lost / longest:.1f}%"), class_="track")
        amount = tag("span", f"{bar.lost:.3f}", class_="amount")
        rows.append(tag("li", tag("span", bar.name, class_="label"), line, amount))
    left = len(bars) - len(rows)
    more = note(f"and {left:,} smaller ones") if left else ""
    return tag("div", tag("h3", title), tag("ol", *rows, class_="bars"), more)


def _failure(reason: str, numbers: Sequence[int]) -> Markup:
    count = "1 trial" if len(numbers) == 1 else f"{len(numbers):,} trials"
    buttons = [tag("button", f"{number:,}", type="button", data_trial=number) for number in numbers[:_MOST_NUMBERS]]
    left = len(numbers) - len(buttons)
    more = f" and {left:,} more" if left else ""
    return tag("li", tag("b", count), tag("p", reason), tag("div", *buttons, join(more), class_="numbers"))


MAP = Panel(map_section, rank=61, place="plots")
PREDICTIONS = Panel(predictions_section, rank=62, place="plots")
IMPORTANCE = Panel(importance_section, "Which choices matter", rank=70)
FAILURES = Panel(failures, "Failures", rank=75)
LEDGER = Panel(cost_ledger, "What the search cost", rank=80)
