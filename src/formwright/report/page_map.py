"""The figures that know where designs stand: the map of the space, and predictions beside outcomes."""

from math import sqrt

from formwright.report.facts import StudyFacts
from formwright.report.markup import Markup, join, tag
from formwright.report.predictions import FIRST, Predictions
from formwright.report.space_map import SpaceMap

_PATHS = (("best", "best to best"), ("all", "every trial"))


def map_of_space(facts: StudyFacts) -> Markup:
    """Make room for the map, with what it shows in words, or say why there is none."""
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


def predictions_and_outcomes(facts: StudyFacts) -> Markup:
    """Make room for the predictions, with what they are worth in words, or say why there are none."""
    found, title = facts.predictions, "Prediction against outcome"
    if found.hidden:
        return _without(title, found.hidden, "predictions-part")
    return _figure("predictions", title, _about_predictions(found, facts.goals[0].name), "plot")


def _about_map(found: SpaceMap, trials: int) -> str:
    known = "designs of the space" if found.whole else "designs drawn from the space, which is too large to list"
    thinned = (
        f" An even choice of {len(found.spots):,} of {trials:,} trials is shown." if len(found.spots) < trials else ""
    )
    return (
        f"The less two designs differ, the closer they stand: these are the two directions in which {found.designs:,} "
        f"{known} vary most, {found.share:.0%} of the variance of their Transformer2vec embedding. Trials have the "
        "colour of their score, and a line that grows stronger follows their order; grey dots are other designs."
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
        f"What the surrogate of BOSHNAS expects of {count} trials after the first {FIRST}, each time knowing only the "
        f"trials before it, whether or not the search followed it. {_worth(found.spearman, count, goal)} "
        f"{held} of {count} outcomes lie within the 90 % interval.{some}"
    )


def _worth(spearman: float, count: int, goal: str) -> str:
    told = f"The rank correlation with the {goal} that came out is {spearman:.2f}"
    chance = 1.645 / sqrt(count - 1)  # beyond which one in ten would lie without any connection
    if abs(spearman) < chance:
        return f"{told}, which may be chance: so few trials do not show that it tells better designs from worse ones."
    if spearman < 0:
        return f"{told}: it took worse designs for better ones."
    strength = "mostly" if spearman >= 0.7 else "often" if spearman >= 0.4 else "sometimes"
    return f"{told}: it {strength} told better designs from worse ones."


def _figure(name: str, title: str, about: str, kind: str, switch: Markup | None = None) -> Markup:
    head = tag("div", tag("h3", title, id=f"{name}-title"), switch or join(), class_="plot-head")
    plot = tag("div", id=name, class_=kind, role="img", aria_labelledby=f"{name}-title")
    return tag("div", head, tag("p", about, class_="note"), plot, id=f"{name}-part")


def _without(title: str, why: str, name: str) -> Markup:
    return tag("div", tag("div", tag("h3", title), class_="plot-head"), tag("p", why, class_="note"), id=name)
