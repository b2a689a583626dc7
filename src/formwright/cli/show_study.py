"""What `formwright show` says of a study: its best trials, what became of the others, and what it cost."""

import os
from collections.abc import Iterable
from math import inf
from typing import Any

from formwright.cli.output import echo, print_json, print_table
from formwright.cli.progress import clock

ROWS = 10  # of the table of trials
_DIGITS = 12  # of a digest, enough to find it in the page


def is_study(name: str) -> bool:
    """Tell whether a name on the command line means a study: the folder of one, or a database."""
    from formwright.space.zoo import CARDS, SPACES

    if "://" in name:
        return True
    # what a published name means does not depend on the folder one stands in
    if not os.path.isdir(name) or name in SPACES.names() or name in CARDS.names():
        return False
    from formwright.study.place import CONFIG, DATABASE

    return any(os.path.isfile(os.path.join(name, file)) for file in (CONFIG, DATABASE))


def show_study(source: str, as_json: bool) -> None:
    """Print a study, also while it runs."""
    from formwright.study.facts import study_json
    from formwright.study.place import find

    with find(source).open() as opened:
        facts = study_json(opened)
    if as_json:
        print_json(facts)
    else:
        _print(facts)


def _print(facts: dict[str, Any]) -> None:
    config, trials = facts["config"], facts["trials"]
    goals = [text.partition(":")[0] for text in config["objectives"]]
    wishes = ", ".join([*config["objectives"], *config["limits"]])
    method = f"{config['searcher']['name']} on {config['space']}, {config['task']['name']}"
    echo(f"{facts['name']}: {method}; {wishes}\n")
    best = _best_first(facts, goals)
    if best:
        several = len(goals) > 1
        echo(f"the front, {len(facts['best'])} trials" if several else "best trials")
        names = dict.fromkeys([*goals, *_names(best, "metrics"), *_names(best, "costs")])
        columns = ["trial", "digest", *(f">{name}" for name in names), ">seconds", ">parent"]
        print_table(columns, [_row(trial, names) for trial in best[:ROWS]])
    _print_failures(trials)
    _print_ledger(facts)


def _best_first(facts: dict[str, Any], goals: list[str]) -> list[dict[str, Any]]:
    """List the trials of the front, or, for a single goal, those within the limits from the best on."""
    trials = facts["trials"]
    if len(goals) > 1:
        return [trials[number] for number in facts["best"]]
    from formwright.core.records import Objective

    limits = [Objective.parse(text) for text in facts["config"]["limits"]]
    values = {trial["number"]: trial["metrics"] | trial["costs"] for trial in _longest(trials)}
    kept = [
        number
        for number, found in values.items()
        if all(limit.meets(found[limit.name]) for limit in limits if limit.name in found)
    ]
    highest = facts["config"]["objectives"][0].endswith(":max")
    return [trials[number] for number in sorted(kept, key=lambda number: values[number][goals[0]], reverse=highest)]


def _longest(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """List the finished trials with the largest budget of all: a score after fewer steps says little beside theirs."""
    finished = [trial for trial in trials if trial["state"] == "finished"]
    budgets = {trial["number"]: inf if trial["steps"] is None else trial["steps"] for trial in finished}
    return [trial for trial in finished if budgets[trial["number"]] == max(budgets.values())]


def _names(trials: Iterable[dict[str, Any]], kind: str) -> list[str]:
    return [name for trial in trials for name in trial[kind]]


def _row(trial: dict[str, Any], names: Iterable[str]) -> tuple[str, ...]:
    found = trial["metrics"] | trial["costs"]
    parent = "" if trial["parent"] is None else str(trial["parent"])
    values = [_number(found[name]) if name in found else "" for name in names]
    return (str(trial["number"]), trial["digest"][:_DIGITS], *values, f"{trial['seconds']:.1f}", parent)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() and abs(value) >= 1000 else f"{value:.4g}"


def _print_failures(trials: list[dict[str, Any]]) -> None:
    reasons: dict[str, list[int]] = {}
    for trial in trials:
        if trial["state"] == "failed":
            reasons.setdefault(trial["reason"], []).append(trial["number"])
    if reasons:
        often = sorted(reasons.items(), key=lambda item: -len(item[1]))
        print_table([">failed", "because"], [(str(len(numbers)), reason) for reason, numbers in often[:ROWS]])


def _print_ledger(facts: dict[str, Any]) -> None:
    states = [trial["state"] for trial in facts["trials"]]
    counts = ", ".join(f"{states.count(state)} {state}" for state in ("finished", "failed", "pending"))
    spent = facts["spent"]
    echo(f"trials  {len(states)}: {counts}")
    echo(
        f"spent   {clock(facts['seconds'])} in all; {clock(spent['seconds'])} of evaluation, "
        f"{spent['steps']:,} training steps, {spent['macs']:.3g} MACs"
    )
