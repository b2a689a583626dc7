"""The front door: search, compress and train from Python, run any pipeline, and look at what came out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.core.errors import IllegalInput, Unsuccessful
from formwright.core.options import Json
from formwright.core.records import Budget, Objective
from formwright.cost import COSTS
from formwright.pipeline.evaluators import EvaluatorPart, FunctionEvaluator
from formwright.pipeline.observers import choose_observers
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import Display, PipelineRun, Quiet, RunOptions
from formwright.pipeline.run_events import extended, last_options, noted
from formwright.pipeline.run_folder import RUN, Record, find, holds_run, holds_study
from formwright.pipeline.runner import run_pipeline
from formwright.pipeline.search import Search, SearcherChoice, with_settings
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.result import Result, result_of
from formwright.study.stop import Stop

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.space.space import Space

Texts = str | Sequence[str]
Evaluate = Callable[[Any, Budget], "float | Mapping[str, float]"]


def _page(run: PipelineRun) -> None:
    from formwright.report.run_page import write_run_page  # plotly and scikit-learn take a second to import

    write_run_page(run)


def run(
    pipeline: Pipeline | str | Path,
    out: str | Path,
    *,
    settings: Mapping[str, Json] | None = None,
    options: RunOptions | None = None,
    display: Display | None = None,
    observers: Iterable[Any] = (),
    storage: str | None = None,
    force: bool = False,
    command: str = "",
    **conduct: Any,
) -> Result:
    """Run a pipeline, or the one in a YAML or JSON file, in the folder `out`; the same call again resumes it.

    `settings` set options by their paths. `conduct` are fields of `RunOptions`: `workers`, `hours`, `ray`, ... A folder
    that holds a run with other options is refused unless `force` overwrites it. Raise `Interrupted` where the user
    stops the run.

        fw.run("run.yaml", "runs/one", settings={"searcher.population": 40}, workers=4, observers=["tensorboard"])
    """
    from formwright.pipeline.files import read_pipeline_file

    found = pipeline if isinstance(pipeline, Pipeline) else read_pipeline_file(Path(pipeline))
    given = [(path.replace("-", "_").split("."), value) for path, value in (settings or {}).items()]
    found = with_settings(found, given)
    at_work = PipelineRun(
        found,
        Path(out),
        conducted(options or RunOptions(), conduct),
        display or Quiet(),
        storage,
        command=command,
        page=_page,
        observers=choose_observers(observers),
        force=force,
    )
    return result_of(run_pipeline(at_work))


def conducted(options: RunOptions, given: Mapping[str, Any]) -> RunOptions:
    """Give how a run is conducted; refuse an option that there is not."""
    try:
        return options.changed(**given)
    except TypeError:
        known = ", ".join(vars(RunOptions()))
        wrong = ", ".join(name for name in given if name not in vars(RunOptions()))
        raise IllegalInput(f"there is no option {wrong} of a run; there are: {known}") from None


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
    observers: Iterable[Any] = (),
    command: str = "",
    confirm: Callable[[Any], None] | None = None,
    **options: Any,
) -> Result:
    """Resume a run by its folder, or a study by `DATABASE_URL#NAME`; a finished search is extended by a new limit.

    A limit replaces the one that ended the search. `options` are fields of `RunOptions` (workers, ray, ...), which are
    otherwise as in the last run; `device` and `baseline` too.

        fw.resume("studies/flexibert-nano-reviews", trials=60, workers=4)
    """
    limits = {"trials": trials, "seconds": seconds, "steps": steps, "patience": patience, "failures": failures}
    chosen = choose_observers(observers)
    at_work = _resumed(str(source), folder, limits, device, options, confirm)
    if baseline is not None:
        named = at_work.pipeline.named.items()
        stages: dict[str, Any] = {name: one for name, one in named if hasattr(one, "baseline")}
        changes = {name: replace(stage, baseline=baseline) for name, stage in stages.items()}
        at_work.pipeline = at_work.pipeline.changed(changes)
    at_work.display, at_work.observers = display or Quiet(), chosen
    at_work.page, at_work.resumes = _page, True
    at_work.command = command if at_work.notes else ""  # else it only resumes what the first one said
    return result_of(run_pipeline(at_work))


def _resumed(
    source: str,
    folder: Path | None,
    limits: Mapping[str, Any],
    device: str,
    options: Mapping[str, Any],
    confirm: Callable[[Any], None] | None,
) -> PipelineRun:
    """Read a run from its folder or its database, with what its searches note when they begin again."""
    from formwright.train.device import choose_device, device_name

    by_url = "://" in source
    record = None if by_url or not (Path(source) / RUN).is_file() else Record.read(Path(source))
    pipeline = None if record is None else Pipeline.from_json(record.pipeline)
    chosen = conducted(record.options if record is not None else RunOptions(), options)
    notes: dict[str, Any] = {}
    if record is not None and not record.storage and not holds_study(Path(source)):
        assert pipeline is not None
        pipeline = _limited(pipeline, Path(source), {name: one for name, one in limits.items() if one is not None})
        return PipelineRun(pipeline, Path(source), replace(chosen, ray=None if chosen.ray == "none" else chosen.ray))
    place = find(source, folder, update=True)
    with place.open(update=True) as opened:
        if confirm is not None:
            confirm(opened)
        if by_url:
            opened.make_folder()
        stop = extended(opened, limits)
        if stop != opened.search.stop:
            notes |= noted(stop)
        chosen = last_options(opened.log).changed(**options)
        chosen = replace(chosen, ray=None) if chosen.ray == "none" else chosen
        kept = opened.search.training.device
        if not chosen.ray:  # of a cluster, each worker has a device of its own
            device = choose_device(device or kept).type if device or kept != "auto" else ""
        if device and device_name(device) != kept:
            notes["device"] = device
        pipeline, name = pipeline or opened.pipeline, opened.stage_name
        own: Any = pipeline.named[name]
        search = replace(own, stop=stop, training=replace(own.training, device=device or kept))
        pipeline = pipeline.changed({name: search})
    storage = place.storage if by_url or (record is not None and record.storage) else None
    known = place.name if record is None else record.name
    out = place.folder if record is None else Path(source)
    return PipelineRun(pipeline, out, chosen, storage=storage, study_name=known, notes=notes)


def _limited(pipeline: Pipeline, out: Path, limits: Mapping[str, Any]) -> Pipeline:
    """Give the pipeline of a run whose search has not begun with another end of it."""
    if not limits:
        return pipeline
    searches = pipeline.of_kind(Search)
    if not searches:
        raise IllegalInput(f"the run in {out} has no search that {', '.join(limits)} could end: resume it without")
    stop = replace(searches[0].stop, **limits)
    return pipeline.changed({pipeline.name_of(searches[0]): replace(searches[0], stop=stop)})


def search(
    space: "str | Space" = "",
    task: Any = None,
    *,
    text: Texts = (),
    label: str = "",
    data: str | Path | None = None,
    rows: int | None = None,
    recipe: str = "plain",
    trials: int | None = None,
    seconds: float | None = None,
    patience: int | None = None,
    objectives: Sequence[str] = (),
    limits: Sequence[str] = (),
    searcher: Any = None,
    seed: int = 0,
    out: str | Path | None = None,
    settings: Mapping[str, Json] | None = None,
    **options: Any,
) -> Result:
    """Search a space for the design that fits a task, and deliver it as a trained model that loads.

    `task` is the name of a task, a CSV, TSV or JSON file, a pandas DataFrame, a Hugging Face dataset or a list of rows;
    `text` and `label` name its columns, `rows` limits the training rows. `settings` set any other option by its path.
    `options` are those of `run`: workers, ray, display, observers, storage, force. The same call again resumes the
    search.

        result = fw.search("flexibert-nano", "reviews.csv", text="review", label="stars", limits=["params<=1e6"])
        result.best.model.save_pretrained("mine")
    """
    from formwright.recipes import RECIPES

    if not space and recipe == "plain":
        raise IllegalInput("name a space, such as 'flexibert-nano' (`formwright list spaces`), or a recipe")
    method = RECIPES.get(recipe)
    if method.command != "search":
        raise IllegalInput(f"the recipe {recipe} is for fw.{method.command}(recipe={recipe!r})")
    where = Path(out) if out is not None else Path("studies") / default_name(space or recipe, task)
    choice = given_task(task, where, text, label, data, rows, force=bool(options.get("force")))
    pipeline = method(choice, seed=seed, **({"space": space} if space else {}))
    stage = pipeline.of_kind(Search)[0]
    changes: dict[str, Any] = {"searcher": _searcher(searcher)} if searcher is not None else {}
    changes |= {"objectives": tuple(objectives)} if objectives else {}
    changes |= {"limits": tuple(limits)} if limits else {}
    if any(value is not None for value in (trials, seconds, patience)):
        changes["stop"] = replace(stage.stop, trials=trials, seconds=seconds, patience=patience)
    pipeline = pipeline.changed({pipeline.name_of(stage): replace(stage, **changes)})
    return run(pipeline, where, settings=settings, **options)


def compress(
    model: str | Path = "",
    task: Any = None,
    targets: Sequence[str] = (),
    hours: float | None = None,
    *,
    text: Texts = (),
    label: str = "",
    data: str | Path | None = None,
    rows: int | None = None,
    recipe: str = "eftnas",
    method: Mapping[str, Any] | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    settings: Mapping[str, Json] | None = None,
    **options: Any,
) -> Result:
    """Compress a pretrained encoder: deliver, for each target, the best smaller model inside it.

    `model` is a folder or a name of the Hugging Face hub; empty: MiniLM of the extra `demo`. Targets are costs such as
    `macs=50%`, `params=5M` or `latency_ms=8`. `method` holds further options of the recipe, `options` are those of
    `run`. A recipe that needs no task reads `text`: `fw.compress(recipe="nas-bert", method={"sizes": "5M,10M"})`.

        result = fw.compress("bert-base-uncased", "reviews.csv", ["macs=50%", "latency_ms=8"], hours=1)
        {model.name: model.scores for model in result.models}
    """
    from formwright.recipes import RECIPES

    found = RECIPES.get(recipe)
    if found.command != "compress":
        raise IllegalInput(f"the recipe {recipe} is for fw.{found.command}(recipe={recipe!r})")
    name = Path(model).name or "MiniLM"
    where = Path(out) if out is not None else Path("compressed") / default_name(name, "sizes" if task is None else task)
    given: dict[str, Any] = {"model": str(model), "seed": seed, **(method or {})}
    if "task" in found.options:
        given["task"] = given_task(task, where, text, label, data, rows, force=bool(options.get("force")))
    elif task is not None:
        raise IllegalInput(f"the recipe {recipe} compresses for any task: leave out task=")
    else:
        given |= {
            "text": text if isinstance(text, str) else ",".join(text),
            "data": None if data is None else str(data),
        }
    if targets:
        given["targets"] = (targets,) if isinstance(targets, str) else tuple(targets)
    return run(found(**given), where, settings=settings, **{"hours": hours, **options})


def train(
    source: "str | Path | Card",
    task: Any,
    *,
    text: Texts = (),
    label: str = "",
    data: str | Path | None = None,
    rows: int | None = None,
    out: str | Path | None = None,
    settings: Mapping[str, Json] | None = None,
    run_options: Mapping[str, Any] | None = None,
    **training: Any,
) -> Result:
    """Train a design on a task from scratch, or fine-tune a pretrained model; the same call again resumes.

    `source` is a published card's name, a card, the JSON file of one, or the folder of a model. `training` are options
    such as `steps`, `batch`, `learning_rate`, `dropout`, `patience`, `test` (`formwright train --help`); `run_options`
    those of `run`, such as observers.

        result = fw.train("bert-tiny", "mini-glue/sst2", steps=200)
        result.best.scores, result.model
    """
    from formwright.pipeline.train_model import train_pipeline

    given = str(source) if isinstance(source, str | Path) else source
    name = Path(given).stem if isinstance(given, str) else f"card-{given.digest[:8]}"
    where = Path(out) if out is not None else Path("trained") / default_name(name, task)
    choice = given_task(task, where, text, label, data, rows, force=bool((run_options or {}).get("force")))
    return run(train_pipeline(given, choice, **training), where, settings=settings, **(run_options or {}))


def given_task(
    task: Any,
    out: Path,
    text: Texts = (),
    label: str = "",
    data: str | Path | None = None,
    rows: int | None = None,
    *,
    force: bool = False,
) -> TaskChoice:
    """Give the choice of a task that is a name, a file, a table in memory, or a choice already."""
    from formwright.tasks.given import rows_of, write_rows

    if isinstance(task, TaskChoice):
        return task
    if task is None:
        raise IllegalInput("say what the models are for: task= a name, a file, a DataFrame or a dataset")
    name = str(task) if isinstance(task, str | Path) else str(write_rows(rows_of(task), out, force=force))
    columns = tuple(part.strip() for part in text.split(",")) if isinstance(text, str) and text else tuple(text)
    return TaskChoice(name, None if data is None else str(data), text=columns, label=label, rows=rows)


def default_name(space: Any, task: Any) -> str:
    """Name the folder of a run after its space or recipe and its task, of which a file is known by its stem."""
    name = str(task) if isinstance(task, str | Path) else getattr(task, "name", "data")
    name = Path(name).stem if Path(name).is_absolute() or Path(name).suffix else name
    of_space = space if isinstance(space, str) else getattr(space, "name", "space")
    words = [Path(of_space.partition(":")[0]).stem, *Path(name).parts]
    return "-".join(word for word in words if word.strip("./\\"))


def _searcher(given: Any) -> SearcherChoice:
    """Choose a searcher by name or class, or take a choice with options."""
    return given if isinstance(given, SearcherChoice) else SearcherChoice(given)


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
            None if searcher is None else _searcher(searcher),
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
        observers: Iterable[Any] = (),
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
            conducted(RunOptions(workers=1), options),
            display or Quiet(),
            self._storage,
            page=_page,
            observers=choose_observers(observers),
            notes=noted(stop) if holds_run(self.out) else {},  # an older study ends as this call says
        )
        result = result_of(run_pipeline(at_work))
        failed = [trial for trial in result.trials if trial.state == "failed"]
        if failed and len(failed) == len(result.trials):
            raise Unsuccessful(f"all {len(failed)} trials failed, the last because of: {failed[-1].reason}")
        return result

    def result(self) -> Result:
        """Open what there is, without searching on."""
        return result_of(PipelineRun(Pipeline(self._search), self.out, storage=self._storage, page=_page))
