"""From the names in a configuration to the parts of a study."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.protocols import Evaluator, Searcher
from formwright.core.records import Objective
from formwright.core.rng import derive
from formwright.cost import COSTS
from formwright.evaluate.bi_branch import BiBranch
from formwright.evaluate.by_proxy import ByProxy
from formwright.evaluate.combine import Combine
from formwright.evaluate.full import Full
from formwright.evaluate.inherited import Inherited
from formwright.evaluate.pretrained import Pretrained, Pretraining
from formwright.evaluate.shared import Shared, SharedWeights
from formwright.evaluate.staged import Staged
from formwright.evaluate.training import Trainer
from formwright.nn.heads import refuse_head
from formwright.nn.hf.load import from_hf
from formwright.nn.settings import Settings
from formwright.search import make_searcher
from formwright.search.first import First
from formwright.search.neighbours import Nearness
from formwright.search.unseen import listable
from formwright.space.space import Space
from formwright.study.config import Config, TaskChoice, TrainingChoice
from formwright.study.latency import latency_of
from formwright.study.limits import ALWAYS, LATENCY, Limits, cost
from formwright.study.log import Log
from formwright.study.possible import refuse_impossible_bounds
from formwright.study.run_record import refuse_changed_data
from formwright.study.spaces import find_space
from formwright.study.stop import Stop
from formwright.study.study import Study
from formwright.supernet.branches import Branches
from formwright.tasks import FROM_DATA, TASKS, load_task
from formwright.tasks.metrics import without_writing
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.row_length import FROM_SCRATCH, LEAST, PIECES, Cut
from formwright.tasks.shorten import shortened
from formwright.tasks.task import Task
from formwright.train.distil import Mix, Teaching
from formwright.train.fit import Training, head_of
from formwright.train.prepare import cut_rows, prepare, usual_length
from formwright.train.recipe import Decay, Recipe

_BUILT = 10_000  # designs that are built before a study begins, where all can be listed
_SAMPLED = 20  # designs of a space that are looked at before it is searched with shared weights
DEFAULT_PROXY = "synflow"


def assemble(config: Config, log: Log, folder: Path) -> Study:
    """Build the study of a configuration, whose log and folder are given; refuse data that changed since it began."""
    refuse_changed_data(log, config.task, find_task(config.task))
    space = find_space(config.space)
    limits = Limits.parse(config.limits, config.training.length)
    objectives = all_objectives(config, limits)
    searcher = _searcher(_as_planned(config, log), space, limits)
    # measured once for each card: by the gate, before anything is trained, and not again for the observation
    latency = latency_of(config)
    evaluator = make_evaluator(config, objectives, latency)
    return Study(log, space, searcher, evaluator, objectives, config.stop, folder, config.seed, limits.gate(latency))


def refuse_faulty(config: Config) -> None:
    """Refuse, before anything is written or trained, a study that no worker could work on."""
    space = find_space(config.space)
    limits = Limits.parse(config.limits, config.training.length)
    _searcher(config, space, limits)
    make_evaluator(config, ())
    task = find_task(config.task)
    known = [*COSTS.names(), LATENCY, *(_proxies(config) if config.evaluator == "proxy" else task.metrics)]
    objectives = all_objectives(config, limits)
    for objective in objectives:
        if objective.name not in known:
            raise UnknownName("score or cost of this study", objective.name, known)
    if config.evaluator != "proxy":  # the scores of proxies have no range
        refuse_impossible_bounds(objective for objective in objectives if objective.bound is not None)
    card = _some_card(config)
    if config.evaluator != "proxy":
        refuse_head(card, head_of(task))
    prepare(task, card, config.training.length)
    _build_all(space)
    limits.refuse_impossible(space, config.seed)
    limits.check_latency_feasible(space, config.seed, latency_of(config))


def with_usual_length(config: Config, task: Task) -> Config:
    """Give the configuration with a length that covers 95 % of the training rows of its task."""
    # text of another source is read in pieces of at least the usual size
    other_text = config.evaluator in ("pretrained", "bi-branch") and config.pretraining.text == "pydoc"
    length = usual_length(task, _some_card(config), FROM_SCRATCH, least=PIECES if other_text else LEAST)
    return replace(config, training=replace(config.training, length=length))


def with_readable_length(config: Config, task: Task) -> Config:
    """Give the configuration with a length that the designs of its space can read: costs are counted at it."""
    read = prepare(task, _some_card(config), config.training.length).length
    shorter = 0 < read < config.training.length  # images have no length
    return replace(config, training=replace(config.training, length=read)) if shorter else config


def rows_cut(config: Config, task: Task) -> Cut | None:
    """Count the training rows that the length of a study cuts; None where none can be cut."""
    card = _some_card(config)
    return cut_rows(prepare(task, card, config.training.length), card)


def _some_card(config: Config) -> Card:
    """Give the design of the space for which the task is prepared before the search."""
    space = find_space(config.space)
    return space.card(space.sample(derive(config.seed, "prepare")))


def _build_all(space: Space) -> None:
    """Build the designs of a space that searchers list: what cannot be built is told before workers start."""
    if listable(space):
        for design in islice(space.enumerate(), _BUILT):
            space.card(design)


def with_whole_paths(config: Config) -> Config:
    """Give the configuration with the paths of the user's own files made absolute: it may be resumed from anywhere."""
    file, colon, name = config.space.rpartition(":")
    space = f"{Path(file).resolve()}:{name}" if colon and file.endswith(".py") else config.space
    space = str(Path(space).resolve()) if space.endswith(".json") else space
    return replace(config, space=space, task=whole_task(config.task))


def whole_task(task: TaskChoice) -> TaskChoice:
    """Give a choice of a task with the paths of the user's own files made absolute."""
    own = task.name not in (*TASKS.names(), *FROM_DATA) and Path(task.name).exists()
    return replace(
        task,
        name=str(Path(task.name).resolve()) if own else task.name,
        data=None if task.data is None else str(Path(task.data).resolve()),
    )


def all_objectives(config: Config, limits: Limits) -> tuple[Objective, ...]:
    """Give what is improved, and then what is limited."""
    goals = [Objective.parse(text) for text in config.objectives]
    return (*goals, *limits.cheap, *limits.measured, *limits.scores)


def _as_planned(config: Config, log: Log) -> Config:
    """Give the configuration with the end that was planned first: a searcher whose study is extended stays as it is."""
    planned = log.config.get("stop")
    return config if planned is None else replace(config, stop=Stop(**planned))


def _searcher(config: Config, space: Space, limits: Limits) -> Searcher:
    planned = {"trials": config.stop.trials, "steps": config.training.steps}
    clash = sorted(planned.keys() & config.options.keys())
    if clash:
        raise IllegalInput(f"{clash[0]} is no option of a searcher, but one of the study: --{clash[0]}")
    objectives = all_objectives(config, limits)
    made = make_searcher(config.searcher, space, objectives, limits.legal, **planned, **config.options)
    designs = tuple(space.from_json(design) for design in config.first)
    return First(space, designs, made, limits.legal) if designs else made


def find_task(choice: TaskChoice) -> Task:
    """Find the task of a study."""
    data = None if choice.data is None else Path(choice.data)
    task = load_task(choice.name, data, choice.official_dev, choice.text, choice.label, choice.kind)
    return task if choice.rows is None else shortened(task, choice.rows)


def make_trainer(config: Config, steps: int | None = None) -> Trainer:
    """Make what trains designs, for as many steps as a search does or for another number."""
    task = find_task(config.task)
    if steps is None:
        task = _judged_quickly(task, config)
    tokeniser = None
    if config.weights is not None and task.kind != "image-classification":
        tokeniser = read_tokeniser(Path(config.weights))
    return Trainer(task, make_training(config.training, steps), tokeniser)


def make_final_trainer(config: Config) -> Trainer:
    """Make what trains the designs that are kept: longer, judged in between, and the best weights are kept."""
    trainer = make_trainer(config, config.final_steps)
    rows = len(trainer.task.search_view().validation)
    return replace(trainer, training=trainer.training.stopping_early(rows))


def _judged_quickly(task: Task, config: Config) -> Task:
    """Give the task with the metrics that a search is for, and those that cost next to nothing beside."""
    wanted = [Objective.parse(text).name for text in (*config.objectives, *config.limits)]
    return replace(task, metrics=without_writing(task.metrics, (task.metric, *wanted)))


def make_training(choice: TrainingChoice, steps: int | None = None) -> Training:
    """Make a training of plain values."""
    decay = cast(Decay, choice.decay)  # which the recipe refuses where it is none
    recipe = Recipe(
        steps or choice.steps, choice.batch, choice.learning_rate, choice.warmup, decay, choice.weight_decay
    )
    return Training(recipe, choice.length, Settings(dropout=choice.dropout), device=choice.device, threads=1)


def make_evaluator(
    config: Config, objectives: tuple[Objective, ...], latency: Callable[[Card], float] | None = None
) -> Evaluator:
    """Make the evaluator of a study: scores, and the costs that its objectives and limits name.

    `latency` gives the milliseconds of a card; by default they are measured each time.
    """
    wanted = dict.fromkeys((*ALWAYS, *(objective.name for objective in objectives)))
    length = config.training.length
    scored = _proxies(config) if config.evaluator == "proxy" else ()  # a proxy may be a cost as well
    costs: dict[str, Callable[[Card], float]] = {
        name: partial(cost, name=name, length=length) for name in wanted if name in COSTS.names() and name not in scored
    }
    if LATENCY in wanted:
        costs[LATENCY] = latency or latency_of(config)
    return Combine((_scores(config),), costs)


def _scores(config: Config) -> Evaluator:
    if config.evaluator == "proxy":
        return ByProxy(_proxies(config))
    if config.evaluator == "shared":
        first, *others = _raced_costs(config)
        rows, device = config.judged_rows, config.training.device
        shared = Shared(shared_weights(config), first, others=tuple(others), most=rows, device=device)
        return cast(Evaluator, shared)
    trainer = make_trainer(config)
    if config.evaluator == "pretrained":
        # every trained design is a neighbour: the nearest hundred hardly ever share enough layers, counted whole
        distance = Nearness(find_space(config.space), most=None)
        inherited = Inherited(trainer, config.pretraining.least_overlap, distance=distance)
        return cast(Evaluator, Pretrained(inherited, make_pretraining(config, config.training.steps)))
    if config.evaluator == "bi-branch":
        return cast(Evaluator, make_bi_branch(config))
    kinds: dict[str, Any] = {"full": Full, "staged": Staged, "inherited": Inherited}
    return cast(Evaluator, kinds[config.evaluator](trainer))


def make_bi_branch(config: Config) -> BiBranch:
    """Make the evaluator of designs that share weights in two branches; it knows the weights they share."""
    pretraining = make_pretraining(config, config.training.steps)
    return BiBranch(make_trainer(config), pretraining, _branches(config), config.pretraining.from_scratch)


def _branches(config: Config) -> Branches:
    """Give the two branches of the study's space; what cannot share weights is refused, not tried trial by trial."""
    space = find_space(config.space)
    designs = [space.sample(derive(config.seed, "branches", turn), "gene") for turn in range(_SAMPLED)]
    if config.pretraining.from_scratch:  # nothing is shared, and any design may be beside any other
        return Branches.of(space.card(designs[0]))
    return Branches.common_to([space.card(design) for design in designs])


def shared_weights(config: Config) -> SharedWeights:
    """Read the super-network of a study whose designs are sub-networks."""
    assert config.weights is not None
    return SharedWeights.read(Path(config.weights), find_task(config.task), config.training.length)


def _raced_costs(config: Config) -> list[Callable[[Card], float]]:
    """Give the costs by which a sub-network has rivals: all that are lowered, or else the parameters."""
    names = [Objective.parse(text).name for text in config.objectives]
    lowered = [name for name in names if name == LATENCY or name in COSTS.names()] or ["params"]
    counted = partial(cost, length=config.training.length)
    return [latency_of(config) if name == LATENCY else partial(counted, name=name) for name in lowered]


def make_pretraining(config: Config, steps: int) -> Pretraining:
    """Make what pretrains designs before they are trained for so many steps, longer where these are more."""
    share = steps / config.training.steps
    training = make_training(config.training, max(1, round(share * config.pretraining.steps)))
    pydoc = config.pretraining.text == "pydoc"
    return Pretraining(training, load_task("pydoc/masked").search_view().train if pydoc else None)


def make_teaching(config: Config) -> Teaching | None:
    """Give the teacher that the designs that are kept learn from in the end, if there is one."""
    chosen = config.distillation
    if chosen is None:
        return None
    mix = Mix(labels=chosen.labels, scores=1 - chosen.labels, temperature=chosen.temperature)
    return Teaching(from_hf(Path(chosen.teacher)).model(), mix)


def _proxies(config: Config) -> tuple[str, ...]:
    return config.proxies or (DEFAULT_PROXY,)
