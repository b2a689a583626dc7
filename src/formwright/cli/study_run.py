"""Conduct a study from its beginning or its middle to its end: search, deliver, report, and say what was found."""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from formwright.cli.cost_columns import cost_columns, size_line
from formwright.cli.output import echo, note, print_drawing, print_json, print_table
from formwright.cli.program import call
from formwright.core.errors import Unsuccessful
from formwright.core.text import without_password
from formwright.study.run_record import RunOptions

if TYPE_CHECKING:
    from pathlib import Path

    from formwright.study.delivered import Delivered
    from formwright.study.place import Opened, Place
    from formwright.train.interrupt import Interruption

REPORT = "report.html"


@dataclass(frozen=True)
class Wishes:
    """Say how a study is to be conducted."""

    run: RunOptions = field(default_factory=RunOptions)
    as_json: bool = False
    command: str = ""
    notes: dict[str, Any] = field(default_factory=dict)


def conduct(place: "Place", wishes: Wishes) -> None:
    """Run a study to its end, deliver its best designs, write its page, and print what came out.

    Raise `Unsuccessful` where no model did.
    """
    from formwright.study.no_model import why_no_model

    _begin(place, wishes)
    with place.open() as opened:  # only now: what was begun may say anew when to stop
        try:
            models = _work(opened, wishes)
        except KeyboardInterrupt:
            note(f"stopped; everything is saved. To resume:\n  {call('resume', *_source(place))}")
            raise
        reason = None if any(model.role != "baseline" for model in models) else why_no_model(opened)
        if wishes.as_json:
            print_json(_facts(opened, models) | ({} if reason is None else {"no_model": asdict(reason)}))
        elif reason is None:
            _print(opened, models)
        if reason is not None:
            raise Unsuccessful(f"{reason}\nthe page: {opened.place.folder / REPORT}")


def search_and_deliver(place: "Place", wishes: Wishes) -> "tuple[list[Delivered], Path]":
    """Run a study to its end and deliver its models; give them, those delivered before among them, and its page."""
    from formwright.study.delivered import measured_models

    _begin(place, wishes)
    with place.open() as opened:
        found = _work(opened, wishes)
        known = {model.name: model for model in measured_models(opened).values()}
        names = [name for name in known if name not in {model.name for model in found}]
        return [*(known[name] for name in names), *found], opened.place.folder / REPORT


def _begin(place: "Place", wishes: Wishes) -> None:
    from formwright.study.assemble import find_task
    from formwright.study.identity import own_name
    from formwright.study.run_record import begin_run, refuse_changed_data

    with place.open() as opened:
        task = find_task(opened.config.task)
        refuse_changed_data(opened.log, opened.config.task, task)
        opened.make_folder()
        begin_run(opened.log, wishes.run, task, wishes.notes)
        if wishes.command:
            opened.log.append("note", own_name(), {"command": wishes.command})


def _work(opened: "Opened", wishes: Wishes) -> "list[Delivered]":
    from formwright.study.compare import note_comparisons
    from formwright.study.identity import own_name
    from formwright.train.interrupt import gentle_interruption

    over = _search(opened, wishes)
    if not over:
        opened.log.append("stopped", own_name(), {"reason": "interrupted"})
        _write_report(opened)
        raise KeyboardInterrupt
    # an exception that Ctrl-C raises may be lost in torch's own code: a wish is not
    with gentle_interruption() as wish:
        note(f"the search is over: {_reason(opened)}")
        _write_report(opened)
        models = _deliver(opened, wishes, wish)
        note_comparisons(opened, models)
        _write_report(opened)
    return models


def _source(place: "Place") -> list[str]:
    """Give the words that find a study again, apart from a password."""
    from formwright.study.place import CONFIG

    if (place.folder / CONFIG).is_file():
        return [str(place.folder)]
    return [f"{without_password(place.storage)}#{place.name}", "--folder", str(place.folder)]


def _reason(opened: "Opened") -> str:
    stops = [event for event in opened.log.read() if event.kind == "stopped"]
    return str(stops[-1].data["reason"])


def _search(opened: "Opened", wishes: Wishes) -> bool:
    from formwright.cli.study_view import StudyView
    from formwright.study.launch import run_workers

    with StudyView(opened) as view:
        run = wishes.run
        if run.ray is not None:
            from formwright.study.on_ray import run_on_ray

            return run_on_ray(opened.place, run.workers, view.look, run.ray, cpus=run.ray_cpus, gpus=run.ray_gpus)
        return run_workers(opened.place, run.workers, view.look)


def _deliver(opened: "Opened", wishes: Wishes, wish: "Interruption") -> "list[Delivered]":
    from formwright.cli.delivery_view import showing_delivery
    from formwright.study.assemble import assemble
    from formwright.study.candidates import candidates, failed_targets, unmet_targets, within_targets
    from formwright.study.finish import FINAL, made_before
    from formwright.study.finish_all import deliver_all
    from formwright.study.measured import measure_delivered

    study = assemble(opened.config, opened.log, opened.place.folder)
    targets = opened.config.targets
    chosen = (
        within_targets(study, targets)
        if targets
        else candidates(study, opened.config.keep, baseline=wishes.run.baseline)
    )
    missing = [candidate.name for candidate in chosen if made_before(opened, candidate) is None]
    if missing:
        names, steps = ", ".join(missing), opened.config.final_steps
        note(f"training {names} for at most {steps:,} steps" if steps else f"writing {names}")
    # what is measured on this machine is measured alone
    workers = 1 if opened.config.evaluator == "shared" else wishes.run.workers
    with showing_delivery(opened.place.folder / FINAL, opened.config.final_steps):
        models = deliver_all(opened, chosen, workers, wish)
    models = measure_delivered(opened, models)
    failed = failed_targets(study, targets)
    for name in unmet_targets(study, targets):
        limit = targets[name]
        why = f"all designs within {limit} failed" if name in failed else f"no design that was judged has {limit}"
        note(f"nothing is delivered for {name}: {why}")
    return models


def _write_report(opened: "Opened") -> None:
    from formwright.report.page import write_report
    from formwright.study.spaces import find_space

    write_report(opened.log, find_space(opened.config.space), opened.place.folder / REPORT)


def sitting_json(opened: "Opened") -> dict[str, Any] | None:
    """Give what the milliseconds of the models were measured on; None where none were."""
    from formwright.study.sitting import last_sitting

    sitting = last_sitting(opened.log.read())
    names = ("length", "device", "threads", "busy")
    return None if sitting is None else {"batch": 1, **{name: getattr(sitting, name) for name in names}}


def _facts(opened: "Opened", models: "list[Delivered]") -> dict[str, Any]:
    from formwright.study.compare import comparisons, conclusion
    from formwright.study.facts import study_json

    return study_json(opened) | {
        "models": [asdict(model) for model in models],
        "comparisons": [asdict(found) for found in comparisons(opened.log.read()).values()],
        "conclusion": conclusion(opened, models),
        "measured": sitting_json(opened),
        "report": str(opened.place.folder / REPORT),
    }


def _print(opened: "Opened", models: "list[Delivered]") -> None:
    from formwright.study.compare import conclusion
    from formwright.study.delivered import card_of_model

    page = opened.place.folder / REPORT
    first, *others = conclusion(opened, models)
    echo(f"\n{first}\n\n{models[0].name}, the best design found:\n")
    print_drawing(card_of_model(models[0]))
    print_models(models, _metric(opened))
    echo(f"{size_line(opened, models[0])}\n")
    for line in others:
        echo(f"{line}\n")
    echo(f"the page:  {page}\nthe model: {models[0].path}\n\ntry next:")
    for line in _next(opened, models[0].path):
        echo(f"  {line}")


def print_models(models: "list[Delivered]", metric: str) -> None:
    """Print a table of models with their scores, the interval of the first, and what ignoring the input scores."""
    from formwright.study.conclusion import between
    from formwright.study.delivered import reported, reported_split

    split = reported_split(models[0])
    names = sorted(reported(models[0], split), key=lambda name: name != metric)
    costs, rows = cost_columns(models), []
    for row, model in enumerate(models):
        evidence = model.evidence.get(split)
        interval = evidence.intervals.get(names[0]) if evidence is not None else None
        scores = [f"{reported(model, split)[name]:.4f}" for name in names]
        told = "" if interval is None else between(interval)
        counted = [f"{model.params:,}", *(cells[row] for _, cells in costs), f"{model.steps:,}"]
        rows.append((_named(model), scores[0], told, *scores[1:], *counted))
    known = models[0].evidence.get(split)
    if known is not None and known.majority is not None:
        scores = [_figure(known.majority.scores.get(name)) for name in names]
        rows.append((known.majority.answer, scores[0], "", *scores[1:], "", *("" for _ in costs), ""))
    heads = [f"model ({split})", f">{names[0]}", ">95 % interval", *(f">{name}" for name in names[1:])]
    print_table([*heads, ">parameters", *(head for head, _ in costs), ">steps"], rows)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _metric(opened: "Opened") -> str:
    return opened.config.objectives[0].partition(":")[0]


def _next(opened: "Opened", model: str) -> list[str]:
    """Give the command lines that are worth trying when a study is over."""
    source = _source(opened.place)
    length = ["--length", str(opened.config.training.length)]
    return [call("measure", model, *length), call("show", source[0]), call("resume", *source, *_further(opened))]


def _further(opened: "Opened") -> list[str]:
    """Give the option that takes a study twice as far."""
    stop, wide = opened.config.stop, [("--trials", "trials"), ("--seconds", "seconds"), ("--spend-steps", "steps")]
    for option, name in [*wide, ("--patience", "patience")]:
        if (limit := getattr(stop, name)) is not None:
            return [option, f"{2 * limit:g}" if isinstance(limit, float) else str(2 * limit)]
    raise AssertionError("a study has an end")


def _named(model: "Delivered") -> str:
    return "baseline, made by hand" if model.role == "baseline" else model.name
