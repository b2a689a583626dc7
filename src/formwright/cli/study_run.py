"""Conduct a study from its beginning or its middle to its end: search, deliver, report, and say what was found."""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from formwright.cli.output import echo, note, print_drawing, print_json, print_table
from formwright.cli.program import call
from formwright.core.errors import Unsuccessful
from formwright.core.text import without_password
from formwright.study.run_record import RunOptions

if TYPE_CHECKING:
    from collections.abc import Mapping
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
    from formwright.study.delivered import delivered

    _begin(place, wishes)
    with place.open() as opened:
        found = _work(opened, wishes)
        known = {model.name: model for model in delivered(opened).values()}
        names = [name for name in known if name not in {model.name for model in found}]
        return [*(known[name] for name in names), *found], opened.place.folder / REPORT


def _begin(place: "Place", wishes: Wishes) -> None:
    from formwright.study.assemble import find_task
    from formwright.study.identity import own_name
    from formwright.study.run_record import begin_run, refuse_changed_data

    with place.open() as opened:
        task = find_task(opened.config.task)
        refuse_changed_data(opened.log, opened.config.task, task)
        begin_run(opened.log, wishes.run, task, wishes.notes)
        if wishes.command:
            opened.log.append("note", own_name(), {"command": wishes.command})


def _work(opened: "Opened", wishes: Wishes) -> "list[Delivered]":
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
        note(f"training {names} for {steps:,} steps" if steps else f"writing {names}")
    # what is measured on this machine is measured alone
    workers = 1 if opened.config.evaluator == "shared" else wishes.run.workers
    with showing_delivery(opened.place.folder / FINAL, opened.config.final_steps):
        models = deliver_all(opened, chosen, workers, wish)
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


def _facts(opened: "Opened", models: "list[Delivered]") -> dict[str, Any]:
    from formwright.study.facts import study_json

    return study_json(opened) | {
        "models": [asdict(model) for model in models],
        "report": str(opened.place.folder / REPORT),
    }


def _print(opened: "Opened", models: "list[Delivered]") -> None:
    from formwright.study.delivered import card_of_model

    page = opened.place.folder / REPORT
    echo(f"\n{models[0].name}, the best design found:\n")
    print_drawing(card_of_model(models[0]))
    _print_models(models)
    if told := verdict(models, opened.config.objectives[0].partition(":")[0]):
        echo(f"{told}\n")
    echo(f"the page:  {page}\nthe model: {models[0].path}\n\ntry next:")
    for line in _next(opened, models[0].path):
        echo(f"  {line}")


def _print_models(models: "list[Delivered]") -> None:
    names = list(models[0].test or models[0].validation)
    rows = [(_named(model), f"{model.params:,}", *(_score(model, name) for name in names)) for model in models]
    split = "test" if models[0].test is not None else "validation"
    print_table([f"model ({split}, {models[0].steps:,} steps)", ">parameters", *(f">{name}" for name in names)], rows)


def _next(opened: "Opened", model: str) -> list[str]:
    """Give the command lines that are worth trying when a study is over."""
    source = _source(opened.place)
    return [call("measure", model), call("show", source[0]), call("resume", *source, *_further(opened))]


def _further(opened: "Opened") -> list[str]:
    """Give the option that takes a study twice as far."""
    stop, wide = opened.config.stop, [("--trials", "trials"), ("--seconds", "seconds"), ("--spend-steps", "steps")]
    for option, name in [*wide, ("--patience", "patience")]:
        if (limit := getattr(stop, name)) is not None:
            return [option, f"{2 * limit:g}" if isinstance(limit, float) else str(2 * limit)]
    raise AssertionError("a study has an end")


def _named(model: "Delivered") -> str:
    return "baseline, made by hand" if model.role == "baseline" else model.name


def _score(model: "Delivered", name: str) -> str:
    return f"{_scores(model)[name]:.4f}"


def _scores(model: "Delivered") -> "Mapping[str, float]":
    return model.test if model.test is not None else model.validation


def verdict(models: "list[Delivered]", metric: str) -> str:
    """Say how the first model does beside the baseline; empty when there is none, or the metric tells nothing."""
    from formwright.tasks.metrics import METRICS

    base = next((model for model in models if model.role == "baseline"), None)
    if base is None or metric not in _scores(models[0]) or metric not in METRICS:
        return ""
    gain = _scores(models[0])[metric] - _scores(base)[metric]
    gain = gain if METRICS[metric].direction == "max" else -gain
    word = f"{'better' if gain > 0 else 'worse'} by {abs(gain):.4f} {metric}" if gain else f"as good in {metric}"
    return f"the found design is {word}, with {models[0].params / base.params:.0%} of the baseline's parameters"
