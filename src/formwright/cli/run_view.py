"""How commands run a pipeline: shown on the terminal while it works, and printed when it is over."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.cli.cost_columns import cost_columns, size_line
from formwright.cli.output import echo, note, print_drawing, print_json, print_table
from formwright.cli.program import call
from formwright.cli.target_view import print_targets, remarks_json
from formwright.core.errors import Unsuccessful
from formwright.core.text import without_password

if TYPE_CHECKING:
    from formwright.pipeline.conclusion import Summary
    from formwright.pipeline.delivered import Delivered
    from formwright.pipeline.run import PipelineRun, Progress
    from formwright.pipeline.run_folder import Opened, Place
    from formwright.result import Result

REPORT = "report.html"


class Terminal:
    """Show a run on standard error."""

    def tell(self, line: str) -> None:
        """Show a line."""
        note(line)

    def progress(self, what: str, total: int) -> "AbstractContextManager[Progress]":
        """Show how far some work is."""
        from formwright.cli.progress import showing

        return showing(what, total)

    @contextmanager
    def study(self, opened: "Opened") -> Iterator[Callable[[], None]]:
        """Show a search."""
        from formwright.cli.study_view import StudyView

        with StudyView(opened) as view:
            yield view.look

    def trainings(self, folder: Path, total: int) -> AbstractContextManager[None]:
        """Show the trainings that other processes do in a folder."""
        from formwright.cli.delivery_view import showing_delivery

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


def print_result(result: "Result", as_json: bool) -> None:
    """Print what a run came to; raise `Unsuccessful` where its search delivered no model."""
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
        ordered = _ordered(result, models)
        if as_json:
            print_json(_facts(opened, ordered) | ({} if reason is None else {"no_model": asdict(reason)}))
        elif not delivers:
            _print_trials(result)
        elif opened.deliver.targets and models:
            print_targets(opened, ordered)
        elif reason is None:
            _print(opened, ordered)
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


def _ordered(result: "Result", models: "list[Delivered]") -> "list[Delivered]":
    """Put what the study delivers now first, the best one before all; leave out what it delivered before."""
    from formwright.pipeline.candidates import candidates

    with result.opened() as opened:
        if opened.deliver.targets:  # those of a teacher first, and then by target
            names = list(opened.deliver.targets)
            return sorted(models, key=lambda model: names.index(model.name) if model.name in names else -1)
        wanted = [one.card.digest for one in candidates(opened.study(), opened.deliver.keep, baseline=False)]
    kept = [model for model in models if model.digest in wanted or model.role not in ("best", "front")]
    return sorted(kept, key=lambda model: wanted.index(model.digest) if model.digest in wanted else len(wanted))


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
        return [str(place.folder)]
    return [f"{without_password(place.storage)}#{place.name}", "--folder", str(place.folder)]


def sitting_json(opened: "Opened") -> dict[str, Any] | None:
    """Give what the milliseconds of the models were measured on; None where none were."""
    from formwright.pipeline.delivered import last_sitting

    sitting = last_sitting(opened.log.read())
    names = ("length", "device", "threads", "busy")
    return None if sitting is None else {"batch": 1, **{name: getattr(sitting, name) for name in names}}


def _facts(opened: "Opened", models: "list[Delivered]") -> dict[str, Any]:
    from formwright.pipeline.compare import comparisons, conclusion
    from formwright.pipeline.study_facts import study_json

    return study_json(opened) | {
        "models": [asdict(model) for model in models],
        "comparisons": [asdict(found) for found in comparisons(opened.log.read()).values()],
        "conclusion": conclusion(opened, models),
        "measured": sitting_json(opened),
        **remarks_json(opened),
        "report": str(opened.place.folder / REPORT),
    }


def _print(opened: "Opened", models: "list[Delivered]") -> None:
    from formwright.pipeline.compare import conclusion
    from formwright.pipeline.delivered import card_of_model

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
    from formwright.pipeline.conclusion import between
    from formwright.pipeline.delivered import reported, reported_split

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
    return opened.search.objectives[0].partition(":")[0]


def _next(opened: "Opened", model: str) -> list[str]:
    """Give the command lines that are worth trying when a study is over."""
    source = source_words(opened.place)
    length = ["--length", str(opened.search.length)]
    return [call("measure", model, *length), call("show", source[0]), call("resume", *source, *_further(opened))]


def _further(opened: "Opened") -> list[str]:
    """Give the option that takes a study twice as far."""
    stop, wide = opened.search.stop, [("--trials", "trials"), ("--seconds", "seconds"), ("--spend-steps", "steps")]
    for option, name in [*wide, ("--patience", "patience")]:
        if (limit := getattr(stop, name)) is not None:
            return [option, f"{2 * limit:g}" if isinstance(limit, float) else str(2 * limit)]
    raise AssertionError("a study has an end")


def _named(model: "Delivered") -> str:
    return "baseline, made by hand" if model.role == "baseline" else model.name
