"""What is refused before a search begins: names, designs, limits and data with which it could not be done."""

from itertools import islice
from typing import TYPE_CHECKING, Any

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.options import Stage, inputs_of
from formwright.core.rng import derive
from formwright.core.text import without_password
from formwright.cost import COSTS
from formwright.pipeline.limits import Limits, refuse_impossible_bounds
from formwright.pipeline.run import StageRun
from formwright.search.proposals import listable
from formwright.space.space import Space

if TYPE_CHECKING:
    from formwright.pipeline.search import Search
    from formwright.tasks.task import Task

_BUILT = 10_000  # designs that are built before a study begins, where all can be listed


def check_search(search: "Search", run: StageRun) -> None:
    """Refuse a search that could not be done, and warn about problems in its data."""
    limits = Limits.parse(search.limits, search.length)
    task = None if search.task is None else run.task(search.task)
    _check_names(search, task)
    _check_study_name(search, run)
    _tell_data(search, run, task)
    if any(stage is not search.cost_table for stage in inputs_of(search)):
        _check_before_inputs(search, run, limits)
        return  # nothing more is known before these stages are made
    space, card = search.found_space(run), search.some_card(run)
    _check_card(search, space, card)
    search.bound_searcher(run)
    search.bound_evaluator(run)
    if task is not None:
        _check_head(search, card, task)
    if listable(space):
        for design in islice(space.enumerate(), _BUILT):
            space.card(design)  # what cannot be built is reported before workers start
    limits.refuse_impossible(space, search.seed)
    _check_measured(search, space, limits, run)


def _check_before_inputs(search: "Search", run: StageRun, limits: Limits) -> None:
    """Check what is known before stages such as the training of shared weights are made."""
    example = getattr(search.space, "example", None)
    if isinstance(search.space, Stage) and example is None:
        return
    space = search.found_space(run) if example is None else example(run)
    if search.searcher is not None:
        search.searcher.bind(space, search.all_objectives, limits.legal, search.stop.trials, search.training.steps)
    _check_readable(search, space, run)
    limits.refuse_impossible(space, search.seed)
    if search.cost_table is None:  # else a stage measures the parts of designs first
        _check_measured(search, space, limits, run)


def _check_measured(search: "Search", space: Space, limits: Limits, run: StageRun) -> None:
    """Refuse limits that designs are too slow for, and goals that cannot be measured of the designs of this space."""
    meters = search.meters(run)
    limits.check_measured_feasible(space, search.seed, meters)
    for name in meters.keys() - {one.name for one in limits.measured}:
        if getattr(COSTS.get(name), "settings", None):  # not every design can be measured in a way of its own
            meters[name](space.card(space.sample(derive(search.seed, "prepare"))))


def _check_readable(search: "Search", space: Space, run: StageRun) -> None:
    """Refuse a space whose designs cannot read the weights that another stage will train."""
    check = getattr(search.evaluator, "check_space", None)
    if check is not None and isinstance(space.card(space.sample(derive(search.seed, "prepare"))), Card):
        check(run, space)


def _check_names(search: "Search", task: "Task | None") -> None:
    assert search.evaluator is not None
    metrics, objectives = search.evaluator.metrics(task), search.all_objectives
    goals = [one.name for one in objectives if one.bound is None]
    if twice := [name for name in goals if goals.count(name) > 1]:
        raise IllegalInput(f"{twice[0]!r} is named as an objective twice")
    if metrics is None:
        return
    known = [*COSTS.names(), *metrics]
    for objective in objectives:
        if objective.name not in known:
            raise UnknownName("score or cost of this study", objective.name, known)
    if search.evaluator.TRAINS:  # the scores of proxies have no range
        refuse_impossible_bounds(objective for objective in objectives if objective.bound is not None)


def _tell_data(search: "Search", run: StageRun, task: "Task | None") -> None:
    """Warn about problems in the rows, and tell how many of them the length cuts."""
    if task is None:
        return
    for warning in task.warnings:
        run.tell(f"warning: {warning.message}")
    if isinstance(search.space, Stage):
        return
    from formwright.tasks.kind import kind_of
    from formwright.train.prepare import cut_rows, prepare

    card = search.some_card(run)
    cut = cut_rows(prepare(task, card, search.length), card)
    if cut is not None and cut.cut:
        run.tell(f"{'warning: ' if cut.is_many and not cut.windows else ''}{cut.sentence}")
    remark = kind_of(task).remark
    if remark is not None and (lost := remark(task.search_view().train, card.stacks[0].embedding)):
        run.tell(f"warning: {lost}")


def _check_card(search: "Search", space: Space, card: Any) -> None:
    """Refuse to limit, lower or train what is not a transformer of ours."""
    if isinstance(card, Card):
        return
    counted = [one.name for one in search.all_objectives if one.name in COSTS.names()]
    if counted:
        raise IllegalInput(f"{counted[0]} cannot be counted: the designs of {space.name} are not formwright cards")
    if search.evaluator is None or search.evaluator.metrics(None) is not None or search.task is not None:
        raise IllegalInput(f"designs of {space.name} are not formwright cards: give a function as the evaluator")


def _check_head(search: "Search", card: Card, task: "Task") -> None:
    from formwright.arch.heads import check_head
    from formwright.train.fit import head_of
    from formwright.train.prepare import prepare

    if search.evaluator is not None and search.evaluator.TRAINS:
        check_head(card, head_of(task))
    prepare(task, card, search.length)


def _check_study_name(search: "Search", run: StageRun) -> None:
    """Refuse the name of a study that a server holds already, unless this run is that study's."""
    from formwright.pipeline.run_folder import holds_run
    from formwright.study.store import Store

    if run.run.storage is None or run.run.resumes or holds_run(run.run.out):
        return
    place = search.place(run)
    if place.name in Store.names_at(place.storage):
        raise IllegalInput(
            f"{without_password(place.storage)} has a study called {place.name!r} already: resume it, or choose "
            "another output folder"
        )
