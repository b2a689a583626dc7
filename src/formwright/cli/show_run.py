"""What `formwright show` says of a run: its stages or, of a study, best trials, failures, and what it cost."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.cli.output import echo, print_json, print_table
from formwright.cli.run_view import print_summaries, summary_data
from formwright.core.text import clock

if TYPE_CHECKING:
    from formwright.pipeline.run import PipelineRun

ROWS = 10  # of the table of trials
_DIGITS = 12  # of a digest, enough to find it in the page


def is_run(name: str) -> bool:
    """Tell whether a name on the command line means a run: the folder of one, or a database."""
    from formwright.space.zoo import CARDS, SPACES

    if "://" in name:
        return True
    # what a published name means does not depend on the folder one stands in
    if not os.path.isdir(name) or name in SPACES.names() or name in CARDS.names():
        return False
    from formwright.pipeline.run_folder import DATABASE, RUN

    return any(os.path.isfile(os.path.join(name, file)) for file in (RUN, DATABASE))


def show_study(source: str, as_json: bool) -> None:
    """Print a study, also while it runs."""
    from formwright.pipeline.study_facts import study_json
    from formwright.pipeline.study_place import find

    with find(source).open() as opened:
        facts = study_json(opened)
    if as_json:
        print_json(facts)
    else:
        _print(facts)


def _print(facts: dict[str, Any]) -> None:
    from formwright.pipeline.study_facts import best_trials

    config, trials = facts["config"], facts["trials"]
    goals = [text.partition(":")[0] for text in config["objectives"]]
    objectives = ", ".join([*config["objectives"], *config["limits"]])
    task = f", {config['task']['name']}" if config["task"] else ""
    method = f"{_name(config['searcher'])} on {_name(config['space'])}{task}"
    echo(f"{facts['name']}: {method}; {objectives}\n")
    best = best_trials(facts)
    if best:
        several, number = len(goals) > 1, len(facts["best"])
        echo(f"the front, {number} trial{'' if number == 1 else 's'}" if several else "best trials")
        names = dict.fromkeys([*goals, *_names(best, "metrics"), *_names(best, "costs")])
        columns = ["trial", "digest", *(f">{name}" for name in names), ">seconds", ">parent"]
        print_table(columns, [_row(trial, names) for trial in best[:ROWS]])
    _print_failures(trials)
    _print_ledger(facts)


def _name(part: Any) -> str:
    """Name a space or a searcher, also one that only a program of the user's has."""
    return str(part.get("name") or part["python"]).partition("#")[0] if isinstance(part, dict) else str(part)


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


def run_without_study(source: str) -> "PipelineRun | None":
    """Give the run in a folder that has no study, or none yet; None for a study."""
    from formwright.pipeline.pipeline import Pipeline
    from formwright.pipeline.run import PipelineRun
    from formwright.pipeline.run_folder import DATABASE, RUN, RunRecord

    folder = Path(source)
    if "://" in source or not (folder / RUN).is_file() or (folder / DATABASE).is_file():
        return None
    record = RunRecord.read(folder)
    return None if record.storage else PipelineRun(Pipeline.from_json(record.pipeline), folder, record.options)


def show_run(run: "PipelineRun", as_json: bool) -> None:
    """Print how far a run is, and what came out where it is over."""
    from formwright.pipeline.run_folder import DONE, resume_line

    states = {name: (run.out / name / DONE).is_file() for name in run.pipeline.named}
    if as_json:
        stages = [{"name": name, "done": done} for name, done in states.items()]
        facts = {"kind": "run", "out": str(run.out), "recipe": run.pipeline.recipe, "stages": stages}
        print_json(facts | {"result": summary_data(run) if all(states.values()) else None})
        return
    of_recipe = f" of the recipe {run.pipeline.recipe}" if run.pipeline.recipe else ""
    echo(f"{run.out}: {sum(states.values())} of {len(states)} stages{of_recipe} are done\n")
    about = {name: (type(stage).__doc__ or "").partition("\n")[0] for name, stage in run.pipeline.named.items()}
    rows = [(name, "done" if done else "", about[name]) for name, done in states.items()]
    print_table(["stage", "state", "what it does"], rows)
    if all(states.values()):
        print_summaries(run, as_json)
    else:
        echo(resume_line(run.out))
