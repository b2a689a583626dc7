"""The trainings of a compression: a teacher that scores its parts, and a super-network.

Each makes what is not there yet, and goes on where it was interrupted.
"""

import copy
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from formwright.compress.begin import Begun
from formwright.compress.folders import Folders, write_importance
from formwright.compress.method import Method
from formwright.compress.models import read_model, save
from formwright.compress.pacing import Pacing, Revision
from formwright.compress.plan import Order
from formwright.compress.space import ordering
from formwright.nn.task_model import TaskModel
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.supernet.importance import Importance, Watched, first_order
from formwright.supernet.network import SuperNetwork, sandwich_loss
from formwright.supernet.reorder import reordered
from formwright.supernet.sandwich import Sandwich
from formwright.train import checkpoint
from formwright.train.batch import Batch, Stream
from formwright.train.device import choose_device, threads
from formwright.train.fit import Run, task_stream
from formwright.train.imported import task_model
from formwright.train.loop import begin, go_on
from formwright.train.losses import Loss, loss_of
from formwright.train.recipe import Recipe, replanned
from formwright.train.remembered import remembered
from formwright.train.state import State

Conduct = Callable[[str, Path, int], AbstractContextManager[Run]]  # what is done, where it is saved, in how many steps
Show = Callable[
    [str, int], AbstractContextManager[Callable[[int, float | None], None]]
]  # what is done, in how many steps


@contextmanager
def unshown(_: str, __: int) -> Iterator[Callable[[int, float | None], None]]:
    """Show nothing."""
    yield lambda *_: None


@dataclass(frozen=True)
class Work:
    """What every training of a compression needs: the model and task, how it is done, where, at which pace, shown how.

    `conduct` saves, shows and stops trainings; `show` shows other work that takes long.
    """

    begun: Begun
    method: Method
    folders: Folders
    pacing: Pacing
    conduct: Conduct
    show: Show = unshown


def teacher(work: Work) -> TaskModel:
    """Fine-tune the model, and score its heads and channels: by their movement meanwhile, and to first order after.

    A model that answers the task already is its own teacher. It is fine-tuned only where its movement is asked for.
    """
    folders = work.folders
    if not folders.teacher.is_dir():
        best = _best_teacher(work)
        _score(best, work)
        folders.answers.unlink(missing_ok=True)  # of a teacher that is no longer there
        with work.show("judging the teacher", 1) as tell:
            save(best, work.begun, folders.teacher, {"fine-tuned from": work.begun.name})
            tell(0, None)
    shutil.rmtree(folders.checkpoints("teacher"), ignore_errors=True)  # also what a kill after writing left
    return read_model(folders.teacher)


def is_trained(begun: Begun, order: Order) -> bool:
    """Tell whether the model is fine-tuned: not where it answers the task already, unless its movement is asked for."""
    return not begun.is_finetuned or order == "movement"


def _best_teacher(work: Work) -> TaskModel:
    begun, method = work.begun, work.method
    if is_trained(begun, method.order):
        moved = _finetuned(work)
        if not begun.is_finetuned:
            return moved
    return task_model(begun.imported, begun.prepared, method.training).to(choose_device(method.training.device))


def _score(model: TaskModel, work: Work) -> None:
    begun, method, number = work.begun, work.method, work.pacing.plan.scored
    training = method.training
    with threads(training.threads), work.show("scoring parts of the teacher", number) as tell:
        stream, loss = task_stream(begun.prepared, training.recipe), loss_of(begun.prepared.task.kind)

        def batches() -> Iterator[Batch]:
            for step in range(number):
                yield stream.batch(step).to(choose_device(training.device))
                tell(step, None)

        write_importance(work.folders.importance, first_order(model, batches(), loss, hidden=bool(method.hidden)))


def _finetuned(work: Work) -> TaskModel:
    begun, method = work.begun, work.method
    training = method.training
    model = task_model(begun.imported, begun.prepared, training).to(choose_device(training.device))
    watched = Watched(model, hidden=bool(method.hidden))

    def recipe(steps: int) -> Recipe:
        return replace(training.recipe, steps=steps, learning_rate=method.teacher_rate(steps))

    stream, loss = task_stream(begun.prepared, training.recipe), loss_of(begun.prepared.task.kind)
    _paced("teacher", "fine-tuning", watched, stream, loss, recipe, work)
    write_importance(work.folders.movement, watched.importance())
    return watched.model


def _paced(
    stage: str,
    what: str,
    model: nn.Module,
    stream: Stream,
    loss: Loss,
    recipe: Callable[[int], Recipe],
    work: Work,
) -> None:
    """Train for as many steps as the plan says, which may change on the way: the schedule of the rate follows.

    `recipe` gives the recipe of a training with a given total number of steps.
    """
    pacing, state = work.pacing, None
    folder = work.folders.checkpoints(stage.removeprefix("super-"))
    while state is None or len(state.losses) < pacing.steps(stage)[-1].steps:
        recipes = _recipes(pacing.steps(stage), recipe)
        with work.conduct(what, folder, recipes[-1][1].steps) as run, threads(work.method.training.threads):
            if state is None:
                state = _state(model, recipes, run)
                if len(state.losses) == recipes[-1][1].steps:
                    return  # and its time was noted when it ended
                pacing.resumed(len(state.losses), state.seconds)
            _until_revised(stage, state, recipes, stream, loss, run, pacing)
    pacing.trained()


def _until_revised(
    stage: str,
    state: State,
    recipes: Sequence[tuple[int, Recipe]],
    stream: Stream,
    loss: Loss,
    run: Run,
    pacing: Pacing,
) -> None:
    """Train on to the next step at which the number of steps changes, or to the end."""
    done = len(state.losses)
    state.recipe = [one for since, one in recipes if since <= done][-1]
    later = next((since for since, _ in recipes if since > done), None)
    if later is not None:  # a change that was made before the run was interrupted
        go_on(state, stream, loss, run.saving, run.after_step, until=later)
        return
    while len(state.losses) < state.recipe.steps:
        done, before = len(state.losses), state.seconds
        go_on(state, stream, loss, run.saving, run.after_step, until=pacing.next_look(stage, done))
        step = len(state.losses)
        if step < state.recipe.steps and pacing.look(stage, step, (state.seconds - before) / (step - done)) is not None:
            return


def _recipes(revisions: Sequence[Revision], recipe: Callable[[int], Recipe]) -> list[tuple[int, Recipe]]:
    """Give the recipes of a training, each with the step from which on it holds."""
    found = [(0, recipe(revisions[0].steps))]
    for one in revisions[1:]:
        rate = recipe(one.steps).learning_rate
        found.append((one.since, replanned(found[-1][1], one.since, one.steps, rate)))
    return found


def _state(model: nn.Module, recipes: Sequence[tuple[int, Recipe]], run: Run) -> State:
    """Begin, or restore the newest checkpoint: it was written under the recipe of the step before it."""
    found = None if run.saving is None else checkpoint.newest(run.saving.folder)
    done = 0 if found is None else found.step
    return begin(model, [one for since, one in recipes if since < max(done, 1)][-1], run.saving)


def super_network(work: Work, known: TaskModel, choices: ElasticChoices) -> None:
    """Put the teacher's parts in the order of their importance, and train all sub-networks together."""
    folders = work.folders
    if not folders.network.is_dir():
        network = _trained_network(work, known, choices)
        with work.show("judging the super-network", 1) as tell:
            save(network, work.begun, folders.network, {"super-network of": work.begun.name})
            tell(0, None)
    read_model(folders.network)  # so that damage is told here, with what to do, and not by every worker
    shutil.rmtree(folders.checkpoints("network"), ignore_errors=True)  # also what a kill after writing left
    folders.answers.unlink(missing_ok=True)


def _trained_network(work: Work, known: TaskModel, choices: ElasticChoices) -> TaskModel:
    begun, method, folders = work.begun, work.method, work.folders
    training = method.training

    def recipe(steps: int) -> Recipe:
        return network_recipe(training.recipe, steps, method)

    heard = _heard(work, known, recipe(work.pacing.steps("super-network")[0].steps))
    network = make_network(known, choices, ordering(known, method, folders), method, heard)
    network.to(choose_device(training.device))
    stream, loss = task_stream(begun.prepared, training.recipe), sandwich_loss(begun.prepared.task.kind, method.mix)
    _paced("super-network", "super-network", network, stream, loss, recipe, work)
    return network.model


def _heard(work: Work, known: TaskModel, recipe: Recipe) -> nn.Module:
    """Give the teacher as the super-network hears it: from memory, where rows are shown more than once.

    That is decided by the steps with which the training began, so that a run that is resumed hears the same.
    """
    prepared, training = work.begun.prepared, work.method.training
    if recipe.steps * recipe.batch <= len(prepared.train.examples):
        return known
    with threads(training.threads), work.show("answers of the teacher", len(prepared.train.examples)) as tell:
        known = known.to(choose_device(training.device))
        return remembered(known, prepared, work.folders.answers, lambda rows: tell(rows - 1, None))


def network_recipe(teacher: Recipe, steps: int, method: Method) -> Recipe:
    """Give the recipe of the super-network: the teacher's, with its own steps and rate, and a cosine."""
    return replace(teacher, steps=steps, learning_rate=method.network_rate, decay="cosine")


def make_network(
    known: TaskModel,
    choices: ElasticChoices,
    importance: Importance,
    method: Method,
    heard: nn.Module | None = None,
) -> SuperNetwork:
    """Make the super-network of a teacher, yet to be trained; `heard` says in its place what it would say."""
    card, spec = known.transformer.card, known.spec
    start = copy.deepcopy(known)
    weights = reordered(dict(known.named_parameters()), card, importance, spec)
    start.load_state_dict({name: tensor.detach().clone() for name, tensor in weights.items()}, strict=False)
    if not method.hidden:  # all sub-networks have the teacher's own embedding; training it takes a fifth of a step
        assert start.transformer.encoder is not None
        start.transformer.encoder.embedding.requires_grad_(False)
    sandwich = Sandwich(choices.space, choices.largest, choices.smallest, method.between)
    return SuperNetwork(start, heard or known, sandwich)
