"""Conduct a study from its beginning or its middle to its end: search, deliver, report, and say what was found."""

import shlex
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from formwright.cli.output import print_json, print_table

if TYPE_CHECKING:
    from formwright.study.finish import Delivered
    from formwright.study.place import Opened, Place

REPORT = "report.html"


@dataclass(frozen=True)
class Wishes:
    """Say how a study is to be conducted."""

    workers: int = 2
    ray: str | None = None
    ray_cpus: float = 1.0
    ray_gpus: float = 0.0
    baseline: bool = True
    as_json: bool = False
    command: str = ""
    notes: dict[str, Any] = field(default_factory=dict)


def conduct(place: "Place", wishes: Wishes) -> None:
    """Run a study to its end, deliver its best designs, write its page, and print what came out."""
    _begin(place, wishes)
    with place.open() as opened:  # only now: what was begun may say anew when to stop
        try:
            models = _work(opened, wishes)
        except KeyboardInterrupt:
            print(f"stopped; everything is saved. This goes on:\n  formwright resume {_source(place)}", file=sys.stderr)
            raise
        if wishes.as_json:
            print_json(_facts(opened, models))
        else:
            _print(opened, models)


def _begin(place: "Place", wishes: Wishes) -> None:
    from formwright.study.identity import own_name

    with place.open() as opened:
        opened.log.append("started", own_name(), {"begins": True, **wishes.notes})
        if wishes.command:
            opened.log.append("note", own_name(), {"command": wishes.command})


def _work(opened: "Opened", wishes: Wishes) -> "list[Delivered]":
    from formwright.study.identity import own_name

    over = _search(opened, wishes)
    if not over:
        opened.log.append("stopped", own_name(), {"reason": "interrupted"})
        _write_report(opened)
        raise KeyboardInterrupt
    print(f"the search is over: {_reason(opened)}", file=sys.stderr, flush=True)
    _write_report(opened)
    models = _deliver(opened, wishes)
    _write_report(opened)
    return models


def _source(place: "Place") -> str:
    """Give the words that find a study again."""
    from formwright.study.place import CONFIG

    if (place.folder / CONFIG).is_file():
        return shlex.quote(str(place.folder))
    return f"{shlex.quote(f'{place.storage}#{place.name}')} --folder {shlex.quote(str(place.folder))}"


def _reason(opened: "Opened") -> str:
    stops = [event for event in opened.log.read() if event.kind == "stopped"]
    return str(stops[-1].data["reason"])


def _search(opened: "Opened", wishes: Wishes) -> bool:
    from formwright.cli.study_view import StudyView
    from formwright.study.launch import run_workers

    with StudyView(opened) as view:
        if wishes.ray is not None:
            from formwright.study.on_ray import run_on_ray

            size = (opened.place, wishes.workers)
            return run_on_ray(*size, view.look, wishes.ray, cpus=wishes.ray_cpus, gpus=wishes.ray_gpus)
        return run_workers(opened.place, wishes.workers, view.look)


def _deliver(opened: "Opened", wishes: Wishes) -> "list[Delivered]":
    from formwright.study.assemble import assemble
    from formwright.study.finish import candidates, deliver_all

    study = assemble(opened.config, opened.log, opened.place.folder)
    chosen = candidates(study, opened.config.keep, baseline=wishes.baseline)
    if chosen:
        names = ", ".join(candidate.name for candidate in chosen)
        print(f"training {names} for {opened.config.final_steps:,} steps", file=sys.stderr, flush=True)
    return deliver_all(opened, chosen, wishes.workers)


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
    from formwright.cli.output import console
    from formwright.report.terminal import draw_text
    from formwright.study.finish import card_of_model

    if not models:
        typer.echo("no design was evaluated within the limits; the page says why: " + str(opened.place.folder / REPORT))
        return
    screen = console()
    card = card_of_model(models[0])
    typer.echo(f"\n{models[0].name}, the best design found:\n")
    typer.echo(draw_text(card, colour=screen.is_terminal, columns=min(screen.width, 100)))
    metric = opened.config.objectives[0].partition(":")[0]
    names = list(models[0].test or models[0].validation)
    rows = [(_named(model), f"{model.params:,}", *(_score(model, name) for name in names)) for model in models]
    split = "test" if models[0].test is not None else "validation"
    print_table([f"model ({split}, {models[0].steps:,} steps)", ">parameters", *(f">{name}" for name in names)], rows)
    typer.echo(_verdict(models, metric))
    folder = opened.place.folder
    typer.echo(f"\nthe page:  {folder / REPORT}\nthe model: {models[0].path}\n\ntry next:")
    typer.echo(f"  formwright measure {models[0].path}")
    typer.echo(f"  formwright export {models[0].path} --to onnx --int8 --out {folder / 'onnx'}")
    typer.echo(f"  formwright resume {_source(opened.place)} --trials {2 * (opened.config.stop.trials or 30)}")


def _named(model: "Delivered") -> str:
    return "baseline, made by hand" if model.role == "baseline" else model.name


def _score(model: "Delivered", name: str) -> str:
    scores = model.test if model.test is not None else model.validation
    return f"{scores[name]:.4f}"


def _verdict(models: "list[Delivered]", metric: str) -> str:
    from formwright.tasks.metrics import METRICS

    base = next((model for model in models if model.role == "baseline"), None)
    scores = models[0].test if models[0].test is not None else models[0].validation
    if base is None or metric not in scores or metric not in METRICS:
        return ""
    other = (base.test if base.test is not None else base.validation)[metric]
    gain = (scores[metric] - other) * (1 if METRICS[metric].direction == "max" else -1)
    size = models[0].params / base.params
    word = "better" if gain > 0 else "no better"
    return f"the found design is {word} by {abs(gain):.4f} {metric}, with {size:.0%} of the baseline's parameters"
