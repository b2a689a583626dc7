"""The front door: search, compress and train from Python, run any pipeline, and look at what came out."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.compose import (
    choose_task,
    chosen_searcher,
    compose_compression,
    compose_search,
    compose_training,
    default_folder,
    paths,
    split_options,
    with_settings,
)
from formwright.core.codec import Json
from formwright.core.errors import IllegalInput, Unsuccessful
from formwright.core.records import Budget, Objective
from formwright.cost import COSTS
from formwright.pipeline.evaluators import EvaluatorPart
from formwright.pipeline.files import read_pipeline_file
from formwright.pipeline.forecast import RunPlan
from formwright.pipeline.function_evaluator import FunctionEvaluator
from formwright.pipeline.observers import choose_observers
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import Display, PipelineRun, Quiet, RunOptions
from formwright.pipeline.run_events import noted
from formwright.pipeline.run_folder import RunRecord, holds_run
from formwright.pipeline.runner import plan_run, run_pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.result import Result
from formwright.study.stop import Stop

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.space.space import Space

Evaluate = Callable[[Any, Budget], "float | Mapping[str, float]"]


def _page(run: PipelineRun) -> None:
    from formwright.report.page import write_run_page

    write_run_page(run)


def run(
    pipeline: Pipeline | str | Path,
    out: str | Path,
    *,
    settings: Mapping[str, Json] | None = None,
    display: Display | None = None,
    observers: Iterable[Any] | None = (),
    storage: str | None = None,
    force: bool = False,
    command: str = "",
    **conduct: Any,
) -> Result:
    """Run a pipeline, or the one in a YAML or JSON file, in the folder `out`; the same call again resumes it.

    `settings` set options by their paths. `conduct` are fields of `RunOptions`: `workers` (default 2, or as in the last
    run of the folder), `hours`, `ray`, ... A folder that holds a run with other options is refused unless `force`
    overwrites it. Raise `Interrupted` where the user stops the run.

        fw.run("run.yaml", "runs/one", settings={"searcher.population": 40}, workers=4, observers=["tensorboard"])
    """
    at_work = _prepared(pipeline, Path(out), settings, storage, force, conduct)
    at_work.display, at_work.observers = display or Quiet(), choose_observers(observers)
    at_work.page, at_work.command = _page, command
    return Result(run_pipeline(at_work))


def plan(
    pipeline: Pipeline | str | Path,
    out: str | Path,
    *,
    settings: Mapping[str, Json] | None = None,
    display: Display | None = None,
    storage: str | None = None,
    force: bool = False,
    **conduct: Any,
) -> RunPlan:
    """Say what `run` would do with the same arguments: stages, time, costs and disk; nothing is written.

    Whatever `run` would refuse before it begins is refused: options, data, the folder and the database.
    """
    at_work = _prepared(pipeline, Path(out), settings, storage, force, conduct)
    at_work.display = display or Quiet()
    return plan_run(at_work)


def _prepared(
    pipeline: Any,
    out: Path,
    settings: Mapping[str, Json] | None,
    storage: str | None,
    force: bool,
    conduct: Mapping[str, Any],
) -> PipelineRun:
    if not isinstance(pipeline, Pipeline | str | Path):
        given = type(pipeline).__name__
        raise IllegalInput(f"give a Pipeline or the path of its file, not {given}; Pipeline.from_json reads a dict")
    found = pipeline if isinstance(pipeline, Pipeline) else read_pipeline_file(Path(pipeline))
    found = with_settings(found, paths(settings or {}))
    options = RunOptions()
    with suppress(IllegalInput):  # no run yet, or one that is refused later
        options = options if force else options.changed(workers=RunRecord.read(out).options.workers)
    return PipelineRun(found, out, options.changed(**conduct), storage=storage, force=force)


def resume(
    source: str | Path,
    *,
    trials: int | None = None,
    seconds: float | None = None,
    steps: int | None = None,
    patience: int | None = None,
    failures: int | None = None,
    device: str = "",
    baseline: bool | None = None,
    folder: Path | None = None,
    display: Display | None = None,
    observers: Iterable[Any] | None = (),
    command: str = "",
    confirm: Callable[[Any], None] | None = None,
    **options: Any,
) -> Result:
    """Resume a run by its folder, or a study by `DATABASE_URL#NAME`; a finished search is extended by a new limit.

    A limit replaces the one that ended the search. `options` are fields of `RunOptions` (workers, ray, ...), which are
    otherwise as in the last run; `device` and `baseline` too.

        fw.resume("studies/flexibert-nano-reviews", trials=60, workers=4)
    """
    from formwright.pipeline.resume import resumed_run

    limits = {"trials": trials, "seconds": seconds, "steps": steps, "patience": patience, "failures": failures}
    chosen = choose_observers(observers)
    at_work = resumed_run(str(source), folder, limits, device, options, confirm)
    if baseline is not None:
        named = at_work.pipeline.named.items()
        stages: dict[str, Any] = {name: one for name, one in named if hasattr(one, "baseline")}
        changes = {name: replace(stage, baseline=baseline) for name, stage in stages.items()}
        at_work.pipeline = at_work.pipeline.changed(changes)
    at_work.display, at_work.observers = display or Quiet(), chosen
    at_work.page, at_work.resumes = _page, True
    at_work.command = command if at_work.notes else ""  # else it only resumes what the first one began
    return Result(run_pipeline(at_work))


def search(
    space: "str | Space" = "",
    task: Any = None,
    *,
    recipe: str = "",
    trials: int | None = None,
    objectives: Sequence[str] = (),
    limits: Sequence[str] = (),
    searcher: Any = None,
    evaluator: Any = None,
    seed: int = 0,
    out: str | Path | None = None,
    settings: Mapping[str, Json] | None = None,
    **options: Any,
) -> Result:
    """Search a space for the design that fits a task, and deliver it as a trained model that loads.

    `task` is the name of a task, a CSV, TSV or JSON file, a pandas DataFrame, a Hugging Face dataset or a list of rows.
    `options` are named like the flags of `formwright search`:

    - the rows of the task: text, label, task_kind, series, frames, official_dev, rows, data;
    - goals: maximise, minimise (instead of objectives such as `accuracy:max`);
    - the end: seconds, spend_steps, patience, tolerance, max_failures;
    - training: steps, batch, learning_rate, length, dropout, device;
    - delivered models: keep, final_steps, final_weights, baseline;
    - those of `run`: workers, hours, ray, storage, display, observers, force.

    `settings` set any other option by its path. The same call again resumes the search.

        result = fw.search("flexibert-nano", "reviews.csv", text="review", label="stars", limits=["params<=1e6"])
        result.best.model.save_pretrained("mine")
    """
    named = recipe if recipe not in ("", "plain") else space
    where = Path(out) if out is not None else default_folder("studies", named, task)
    conduct, source, flags = split_options(options)
    given = {"objectives": objectives, "limits": limits, "trials": trials, "searcher": searcher, "evaluator": evaluator}
    with given_task(task, where, force=bool(options.get("force")), **source) as choice:
        pipeline = compose_search(
            space, choice, recipe=recipe, seed=seed, settings=paths(settings or {}), **given, **flags
        )
        return run(pipeline, where, **conduct)


def compress(
    model: str | Path = "",
    task: Any = None,
    targets: Sequence[str] = (),
    hours: float | None = None,
    *,
    recipe: str = "eftnas",
    seed: int = 0,
    out: str | Path | None = None,
    settings: Mapping[str, Json] | None = None,
    **options: Any,
) -> Result:
    """Compress a pretrained model: deliver, for each target, the best smaller model inside it.

    `model` is a folder or a name of the Hugging Face hub; empty: MiniLM of the extra `demo`. Targets are costs such as
    `macs=50%`, `params=5M` or `latency_ms=8`. `options` are named like the flags of `formwright compress`: trials,
    batch, length, learning_rate, threads, device, accept_weak_teacher; the rows of the task, as in `search`; other
    options of the recipe; and those of `run`. A recipe that needs no task reads `text`:
    `fw.compress(recipe="nas-bert", sizes="5M,10M")`.

        result = fw.compress("bert-base-uncased", "reviews.csv", ["macs=50%", "latency_ms=8"], hours=1)
        {model.name: model.scores for model in result.models}
    """
    named = Path(model).name or "MiniLM"
    where = Path(out) if out is not None else default_folder("compressed", named, "sizes" if task is None else task)
    conduct, source, flags = split_options({"hours": hours, **options})
    flags |= {"targets": targets, "seed": seed, "recipe": recipe, "settings": paths(settings or {})}
    if task is None:
        return run(compose_compression(model, **flags, **source), where, **conduct)
    with given_task(task, where, force=bool(options.get("force")), **source) as choice:
        return run(compose_compression(model, choice, **flags), where, **conduct)


def train(
    source: "str | Path | Card",
    task: Any,
    *,
    out: str | Path | None = None,
    settings: Mapping[str, Json] | None = None,
    **options: Any,
) -> Result:
    """Train a design on a task from scratch, or fine-tune a pretrained model; the same call again resumes.

    `source` is a published card's name, a card, the JSON file of one, or the folder of a model. `options` are named
    like the flags of `formwright train`: steps, epochs, batch, length, learning_rate, dropout, judge_every, patience,
    pretrain, pretrain_steps, distil_from, beams, test, seed, device; the rows of the task, as in `search`; and those of
    `run`, such as observers.

        result = fw.train("bert-tiny", "mini-glue/sst2", steps=200)
        result.best.scores, result.model
    """
    name = Path(source).stem if isinstance(source, str | Path) else f"card-{source.digest[:8]}"
    where = Path(out) if out is not None else default_folder("trained", name, task)
    conduct, rows, flags = split_options(options)
    with given_task(task, where, force=bool(options.get("force")), **rows) as choice:
        return run(compose_training(source, choice, settings=paths(settings or {}), **flags), where, **conduct)


@contextmanager
def given_task(task: Any, out: Path, *, force: bool = False, **source: Any) -> Iterator[TaskChoice]:
    """Choose a task that is a name, a file, a table in memory, or a choice already; the block runs it.

    `source` is as for `choose_task`. A table in memory is written next to the folder of the run, unless the run is
    refused.
    """
    from formwright.tasks.given import rows_file, rows_of

    if isinstance(task, TaskChoice):
        yield task
        return
    if task is None:
        raise IllegalInput("say what the models are for: task= a name, a file, a DataFrame or a dataset")
    named = isinstance(task, str | Path)
    with nullcontext(task) if named else rows_file(rows_of(task), out, force=force) as name:
        yield choose_task(name, **source)


class Study:
    """Search any space with an evaluator of your own: a function of a card and a budget, or an `EvaluatorPart`.

    The function gives a number, the value of the first objective, or a mapping of numbers by name. It is called in the
    worker processes; where it raises, or gives no number, that trial fails with the reason and the study continues. A
    space of your own may build plain data, which the function gets as `card.data`.
    Everything else is as for our own evaluators: exact resume by calling `run` again, limits, fronts, page and export.

        study = fw.Study(fw.load_space("flexibert-nano"), evaluate, ["accuracy:max"], out="runs/mine")
        result = study.run(trials=100, workers=4)
        result.best_trial, result.trials.to_pandas()
    """

    def __init__(
        self,
        space: "str | Space",
        evaluate: "Evaluate | EvaluatorPart",
        objectives: Sequence[str],
        out: str | Path,
        *,
        limits: Sequence[str] = (),
        searcher: Any = None,
        task: TaskChoice | str | None = None,
        seed: int = 0,
        length: int = 64,
        storage: str | None = None,
    ) -> None:
        goals = (objectives,) if isinstance(objectives, str) else tuple(objectives)
        if not goals:
            raise IllegalInput("say what to improve, such as objectives=['accuracy:max']")
        if not callable(evaluate) and not isinstance(evaluate, EvaluatorPart):
            raise IllegalInput(f"evaluate= takes a function of a card and a budget, not {type(evaluate).__name__}")
        names = [Objective.parse(text).name for text in (*goals, *limits)]
        evaluator = (
            evaluate
            if isinstance(evaluate, EvaluatorPart)
            else FunctionEvaluator(evaluate, names[0], tuple(name for name in names if name not in COSTS.names()))
        )
        self.out, self._storage = Path(out), storage
        self._search = Search(
            space,
            TaskChoice(task) if isinstance(task, str) else task,
            goals,
            tuple(limits),
            None if searcher is None else chosen_searcher(searcher),
            evaluator,
            TrainingChoice(length=length),
            seed=seed,
        )

    def run(
        self,
        trials: int | None = None,
        *,
        seconds: float | None = None,
        patience: int | None = None,
        failures: int = 20,
        display: Display | None = None,
        observers: Iterable[Any] | None = (),
        **options: Any,
    ) -> Result:
        """Evaluate designs until a limit is reached; the same call again resumes, a higher limit extends.

        `options` are fields of `RunOptions`: `workers` (default 1), `ray`, ... Raise `Unsuccessful` with the last
        reason where no trial finished.
        """
        given = trials is not None or seconds is not None or patience is not None
        stop = Stop(trials if given else 30, seconds, patience=patience, failures=failures)
        at_work = PipelineRun(
            Pipeline(replace(self._search, stop=stop)),
            self.out,
            RunOptions(workers=1).changed(**options),
            display or Quiet(),
            self._storage,
            page=_page,
            observers=choose_observers(observers),
            notes=noted(stop) if holds_run(self.out) else {},  # an older study ends as this call says
        )
        result = Result(run_pipeline(at_work))
        failed = [trial for trial in result.trials if trial.state == "failed"]
        if failed and len(failed) == len(result.trials):
            raise Unsuccessful(f"all {len(failed)} trials failed, the last because of: {failed[-1].reason}")
        return result

    def result(self) -> Result:
        """Open what there is, without searching on."""
        return Result(PipelineRun(Pipeline(self._search), self.out, storage=self._storage, page=_page))
