"""The end of the page: which choices matter, what failed, what it cost, and how it was set up."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from formwright.report.facts import StudyFacts
from formwright.report.figures import duration, score, short_count
from formwright.report.importance import Bar
from formwright.report.markup import Markup, join, tag

_MOST_BARS, _MOST_REASONS, _MOST_NUMBERS = 15, 50, 12


def choices_that_matter(facts: StudyFacts) -> Markup:
    """Show the importance of choices as bars, or say why it cannot be told."""
    found, goal = facts.importance, facts.goals[0].name
    title = tag("h2", "Which choices matter")
    if found.hidden or found.r2 is None:
        return tag("section", title, tag("p", found.hidden, class_="note"), id="importance")
    about = (
        f"A random forest that knows the choices alone explains {found.r2:.0%} of the variance of {goal} in trials it "
        f"has not seen (R² = {score(found.r2)}, {found.trials:,} trials, five-fold cross-validation). A bar is the R² "
        "that is lost when this choice is shuffled among the trials: what moved the score in this search, not the "
        "reason why. Numbers count the parts of a design, which may be groups of equal layers."
    )
    charts = tag("div", _bars("In all layers together", found.by_kind), _bars("By place", found.by_place), class_="two")
    return tag("section", title, tag("p", about, class_="note"), charts, id="importance")


def failures(facts: StudyFacts) -> Markup:
    """List the failed trials by reason, the most frequent first."""
    reasons: dict[str, list[int]] = {}
    for row in facts.trials:
        if row.state == "failed":
            reasons.setdefault(row.reason, []).append(row.number)
    title = tag("h2", "Failures")
    if not reasons:
        return tag("section", title, tag("p", "No trial failed.", class_="note"), id="failures")
    ordered = sorted(reasons.items(), key=lambda item: -len(item[1]))
    items = [_failure(reason, numbers) for reason, numbers in ordered[:_MOST_REASONS]]
    left = len(ordered) - len(items)
    more = tag("p", f"and {left:,} more reasons; the table shows every failed trial", class_="note") if left else ""
    return tag("section", title, tag("ul", *items, class_="reasons"), more, id="failures")


def cost_ledger(facts: StudyFacts) -> Markup:
    """Add up what the search cost."""
    ledger = facts.ledger
    lines = [
        ("Trials finished", f"{ledger.finished:,}"),
        ("Trials failed", f"{ledger.failed:,}"),
        ("Trials under way", f"{ledger.pending:,}"),
        ("Time of the search, pauses left out", duration(ledger.elapsed)),
        ("Time of all evaluations together", duration(ledger.spent.seconds)),
        ("Training steps", f"{ledger.spent.steps:,}"),
        ("Multiply-accumulates", f"{short_count(ledger.spent.macs)}"),
    ]
    rows = [tag("tr", tag("th", name, scope="row"), tag("td", value, class_="number")) for name, value in lines]
    return tag("section", tag("h2", "What the search cost"), tag("table", tag("tbody", *rows)), id="ledger")


def configuration(facts: StudyFacts) -> Markup:
    """Print the whole configuration."""
    text = json.dumps(facts.config, indent=2, ensure_ascii=False)
    details = tag("details", tag("summary", "Everything needed to repeat this study"), tag("pre", text, tabindex=0))
    return tag("section", tag("h2", "Configuration"), details, id="configuration")


def footer(facts: StudyFacts) -> Markup:
    """Say what wrote the page, and as of when."""
    when = "" if facts.as_of is None else f", as of {datetime.fromtimestamp(facts.as_of, UTC):%Y-%m-%d %H:%M:%S} UTC"
    again = "" if facts.over else " The study was running then: write the report again to see more."
    return tag("footer", f"Written by formwright {facts.version}{when}.{again}")


def _bars(title: str, bars: Sequence[Bar]) -> Markup:
    if not bars:
        return tag("div", tag("h3", title), tag("p", "No choice changes the prediction.", class_="note"))
    longest = bars[0].lost
    rows = [_bar(bar, longest) for bar in bars[:_MOST_BARS]]
    left = len(bars) - len(rows)
    more = tag("p", f"and {left:,} smaller ones", class_="note") if left else ""
    return tag("div", tag("h3", title), tag("ol", *rows, class_="bars"), more)


def _bar(bar: Bar, longest: float) -> Markup:
    line = tag("span", tag("i", style=f"width:{100 * bar.lost / longest:.1f}%"), class_="track")
    return tag("li", tag("span", bar.name, class_="label"), line, tag("span", f"{bar.lost:.3f}", class_="amount"))


def _failure(reason: str, numbers: Sequence[int]) -> Markup:
    count = "1 trial" if len(numbers) == 1 else f"{len(numbers):,} trials"
    buttons = [tag("button", f"{number:,}", type="button", data_trial=number) for number in numbers[:_MOST_NUMBERS]]
    left = len(numbers) - len(buttons)
    more = f" and {left:,} more" if left else ""
    return tag("li", tag("b", count), tag("p", reason), tag("div", *buttons, join(more), class_="numbers"))
