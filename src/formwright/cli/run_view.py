"""How commands run a pipeline: shown on the terminal while it works, and printed when it is over."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from formwright.cli.output import echo, note, print_drawing, print_json, print_table
from formwright.cli.program import call
from formwright.core.errors import IllegalInput, Unsuccessful
from formwright.core.text import printable, without_password

if TYPE_CHECKING:
    from formwright.pipeline.conclusion import Summary
    from formwright.pipeline.delivered import Delivered
    from formwright.pipeline.run import PipelineRun, Progress
    from formwright.pipeline.study_place import Opened, Place
    from formwright.result import Result

REPORT = "report.html"


class Terminal:
    """Show a run on standard error."""

    def tell(self, line: str) -> None:
        note(line)

    def progress(self, what: str, total: int) -> "AbstractContextManager[Progress]":
        from formwright.cli.progress import showing

        return showing(what, total)

    @contextmanager
    def study(self, opened: "Opened") -> Iterator[Callable[[], None]]:
        from formwright.cli.study_view import StudyView

        with StudyView(opened) as view:
            yield view.look

    def trainings(self, folder: Path, total: int) -> AbstractContextManager[None]:
        from formwright.cli.progress import showing_delivery

        return showing_delivery(folder, total)


@contextmanager
def resumable(*source: object) -> Iterator[None]:
    """Say how to resume a run that the user stopped."""
    from formwright.pipeline.run import Interrupted
    from formwright.pipeline.run_folder import holds_run

    try:
        yield
    except Interrupted as stopped:
        note(f"stopped at {stopped}; everything is saved. To resume:\n  {call('resume', *source)}")
        raise KeyboardInterrupt from None
    except KeyboardInterrupt:  # a second Ctrl-C, or one before the stages began
        if "://" in str(source[0]) or holds_run(Path(str(source[0]))):
            note(f"stopped at once; what was saved before is kept. To resume:\n  {call('resume', *source)}")
        raise


def confirm_space(opened: "Opened", trusted: bool) -> None:
    """Ask whether the file of a study's space may run, unless this user ran it before; refuse where nobody answers."""
    from formwright.pipeline.designs import is_trusted, own_file, trust

    file = own_file(opened.search.space)
    if file is None or is_trusted(file):
        return
    detail = f"the space of {opened.place.name} is the Python file {file}"
    if not file.is_file():
        raise IllegalInput(f"{detail}, and there is no such file")
    detail += ", which you have not run before, or which has changed since"
    if not trusted and not (sys.stdin.isatty() and typer.confirm(printable(f"{detail}. Run it?"), err=True)):
        raise IllegalInput(f"{detail}. Read it; if you trust it, add --trust-space-file")
    trust(file)


def print_result(result: "Result", as_json: bool) -> None:
    """Print the result of a run; raise `Unsuccessful` where its search delivered no model."""
    from formwright.pipeline.deliver import Deliver
    from formwright.pipeline.search import Search
    from formwright.pipeline.study_facts import why_no_model

    if not result.run.pipeline.of_kind(Search):
        print_summaries(result.run, as_json)
        return
    delivers = bool(result.run.pipeline.of_kind(Deliver))
    models = [one.facts for one in result.models]
    with result.opened() as opened:
        found = [model for model in models if model.role in ("best", "front")]
        reason = None if found or not delivers else why_no_model(opened)
        if as_json:
            print_json(_facts(opened, models) | ({} if reason is None else {"no_model": asdict(reason)}))
        elif not delivers:
            _print_trials(result)
        elif opened.deliver.targets and models:
            _print_targets(opened, models)
        elif reason is None:
            _print(opened, models)
        if reason is not None:
            raise Unsuccessful(f"{reason}\nthe page: {result.page}")


def print_summaries(run: "PipelineRun", as_json: bool) -> None:
    """Print what the stages of a run say at its end."""
    if as_json:
        print_json(summary_data(run))
        return
    page = run.out / REPORT
    for summary in _summaries(run):
        for line in summary.conclusion:
            echo(f"{line}\n")
        print_table(list(summary.heads), summary.rows)
        for line in summary.lines:
            echo(line)
    if page.is_file():
        echo(f"the page: {page}")


def summary_data(run: "PipelineRun") -> dict[str, Any]:
    """Give what the stages of a run say at its end as JSON data."""
    page = run.out / REPORT
    data = {name: value for summary in _summaries(run) for name, value in summary.data.items()}
    return data | ({"report": str(page)} if page.is_file() else {})


def _summaries(run: "PipelineRun") -> "list[Summary]":
    return [found for stage in run.pipeline if (found := stage.summary(run.stage(stage))) is not None]


def _print_trials(result: "Result") -> None:
    best = result.best_trial
    metrics = {} if best is None or best.observation is None else best.observation.metrics
    shown = ", ".join(f"{name} {value:.6g}" for name, value in metrics.items())
    echo(
        f"best of {len(result.trials)} trials: "
        + ("none finished" if best is None else f"trial {best.number}, {shown}")
    )
    echo(f"the page: {result.page}")


def source_words(place: "Place") -> list[str]:
    """Give the words that find a study again, apart from a password."""
    from formwright.pipeline.run_folder import RUN

    if (place.folder / RUN).is_file():
        return [place.typed_folder]
    return [f"{without_password(place.storage)}#{place.name}", "--folder", str(place.folder)]


def _facts(opened: "Opened", models: "list[Delivered]") -> dict[str, Any]:
    from formwright.pipeline.chosen_designs import remarks
    from formwright.pipeline.compare import comparisons, conclusion
    from formwright.pipeline.delivered import last_session
    from formwright.pipeline.study_facts import study_json

    events = opened.log.read()
    session, known = last_session(events), ("length", "device", "threads", "busy")
    measured = None if session is None else {"batch": 1, **{name: getattr(session, name) for name in known}}
    return study_json(opened) | {
        "models": [asdict(model) for model in models],
        "comparisons": [asdict(found) for found in comparisons(events).values()],
        "conclusion": conclusion(opened, models),
        "measured": measured,  # what the milliseconds of the models were measured on
        **({"remarks": remarks(opened)} if opened.deliver.targets else {}),
        "report": str(opened.place.folder / REPORT),
    }


def _print(opened: "Opened", models: "list[Delivered]") -> None:
    from formwright.pipeline.compare import conclusion
    from formwright.pipeline.delivered import card_of_model

    page = opened.place.folder / REPORT
    first, *others = conclusion(opened, models)
    echo(f"\n{first}\n\n{models[0].name}, the best design found:\n")
    print_drawing(card_of_model(models[0]))
    print_models(models, opened.search.objectives[0].partition(":")[0])
    echo(f"{_size_line(opened, models[0])}\n")
    for line in others:
        echo(f"{line}\n")
    echo(f"the page:  {page}\nthe model: {models[0].path}\n\ntry next:")
    for line in _next(opened, models[0].path):
        echo(f"  {line}")


def print_models(models: "list[Delivered]", metric: str) -> None:
    """Print a table of models with their scores, the interval of the first, and what ignoring the input scores."""
    from formwright.pipeline.conclusion import between
    from formwright.pipeline.delivered import reported, reported_split

    split = reported_split(models[0])
    names = sorted(reported(models[0], split), key=lambda name: name != metric)
    costs, rows = cost_columns(models), []
    for row, model in enumerate(models):
        evidence = model.evidence.get(split)
        interval = evidence.intervals.get(names[0]) if evidence is not None else None
        scores = [f"{reported(model, split)[name]:.4f}" for name in names]
        spread = "" if interval is None else between(interval)
        counted = [f"{model.params:,}", *(cells[row] for _, cells in costs), f"{model.steps:,}"]
        name = "baseline, made by hand" if model.role == "baseline" else model.name
        rows.append((name, scores[0], spread, *scores[1:], *counted))
    known = models[0].evidence.get(split)
    if known is not None and known.majority is not None:
        found = known.majority.scores
        scores = [f"{found[name]:.4f}" if name in found else "" for name in names]
        rows.append((known.majority.answer, scores[0], "", *scores[1:], "", *("" for _ in costs), ""))
    heads = [f"model ({split})", f">{names[0]}", ">95 % interval", *(f">{name}" for name in names[1:])]
    print_table([*heads, ">parameters", *(head for head, _ in costs), ">steps"], rows)


def _next(opened: "Opened", model: str) -> list[str]:
    """Give the command lines that are worth trying when a study is over."""
    source = source_words(opened.place)
    return [call("measure", model), call("show", source[0]), call("resume", *source, *_further(opened))]


def _further(opened: "Opened") -> list[str]:
    """Give the option that takes a study twice as far."""
    stop, wide = opened.search.stop, [("--trials", "trials"), ("--seconds", "seconds"), ("--spend-steps", "steps")]
    for option, name in [*wide, ("--patience", "patience")]:
        if (limit := getattr(stop, name)) is not None:
            return [option, f"{2 * limit:g}" if isinstance(limit, float) else str(2 * limit)]
    raise AssertionError("a study has an end")


def _named(model: "Delivered") -> str:
    return "baseline, made by hand" if model.role == "baseline" else model.name


def _print_targets(opened: "Opened", models: "list[Delivered]") -> None:
    """Print models that were delivered for targets: next to their teacher, with what is to be said of them."""
    from formwright.pipeline.chosen_designs import remarks
    from formwright.pipeline.compare import conclusion
    from formwright.pipeline.conclusion import between
    from formwright.pipeline.delivered import reported, reported_split

    metric, split = opened.search.objectives[0].partition(":")[0], reported_split(models[0])
    full = next((model.costs["macs"] for model in models if model.role == "teacher" and "macs" in model.costs), None)
    measured, rows = cost_columns(models, measured=True), []
    for place, model in enumerate(models):
        known = model.evidence.get(split)
        interval = "" if known is None else between(known.intervals[metric])
        share = f"{model.costs['macs'] / full:.0%}" if full else ""
        cells = (f"{model.params:,}", share, *(column[place] for _, column in measured), model.path)
        rows.append((model.name, f"{reported(model, split)[metric]:.4f}", interval, *cells))
    majority = models[0].evidence[split].majority if split in models[0].evidence else None
    if majority is not None:
        rows.append((majority.answer, f"{majority.scores[metric]:.4f}", *[""] * (len(rows[0]) - 2)))
    heads = ["model", f">{split} {metric}", ">95 % interval", ">parameters", ">MACs", *(head for head, _ in measured)]
    print_table([*heads, "folder"], rows)
    echo(f"the page: {opened.place.folder / REPORT}")
    for line in (_size_line(opened, models[0]), *conclusion(opened, models), *remarks(opened)):
        echo(line)


def cost_columns(models: "Sequence[Delivered]", *, measured: bool = False) -> list[tuple[str, list[str]]]:
    """Give a heading and a cell for each model, for every cost, or measured one, that is known of one of them."""
    from formwright.cost import counted_costs

    counted = counted_costs()
    names = dict.fromkeys(name for model in models for name in model.costs if name not in counted or not measured)
    shown: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: name not in counted):
        digits = ",.0f" if name in counted else ".2f"
        costs = [model.costs.get(name) for model in models]
        shown[name] = ["" if value is None else f"{value:{digits}}" for value in costs]
    return [(">MACs" if name == "macs" else f">{name.replace('_', ' ')}", cells) for name, cells in shown.items()]


def _size_line(opened: "Opened", model: "Delivered") -> str:
    """Say what costs are counted and measured on, and whether the machine was busy meanwhile."""
    from formwright.cost import input_size
    from formwright.pipeline.delivered import card_of_model, last_session

    size = input_size(card_of_model(model), opened.search.length)
    session = last_session(opened.log.read())
    if session is None:
        return f"MACs are those of one row of {size}"
    where = "on one thread" if session.device == "cpu" else f"on {session.device}"
    busy = "; the machine was busy with other work, measure again when it is idle" if session.busy else ""
    return f"MACs and milliseconds are those of one row of {size}, measured in turns {where}{busy}"
