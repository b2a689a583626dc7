"""The trainings of a compression: a teacher that scores its parts, a search space, and a super-network.

Each makes what is not there yet, and goes on where it was interrupted.
"""

import copy
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from formwright.arch.card import Card
from formwright.compress.begin import Begun
from formwright.compress.folders import Folders, read_importance, write_importance, write_json
from formwright.compress.models import read_model, save
from formwright.compress.plan import Order, Plan
from formwright.nn.task_model import TaskModel
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.study.spaces import read_choices
from formwright.supernet.automatic import Met, Thresholds, automatic, targets_between
from formwright.supernet.importance import Importance, Watched, balanced, first_order, magnitude, uniform
from formwright.supernet.network import SuperNetwork, sandwich_loss
from formwright.supernet.reorder import reordered
from formwright.supernet.sandwich import Sandwich
from formwright.train.device import choose_device, threads
from formwright.train.distil import Mix
from formwright.train.fit import Run, Training, task_stream
from formwright.train.imported import task_model
from formwright.train.loop import train
from formwright.train.losses import loss_of
from formwright.train.recipe import Recipe
from formwright.train.remembered import remembered

Conduct = Callable[[str, Path, int], AbstractContextManager[Run]]  # what is done, where it is saved, in how many steps
SCORED = 64  # batches that the fine-tuned model is scored on
BALANCE = 0.75  # how far layers are compared by themselves; of 0, 0.5, 0.75 and 1 the best on SST-2
MARGIN = 0.8  # of the lowest target: the cheapest sub-networks lie below it, so that there is a choice at it


@dataclass(frozen=True)
class Method:
    """Say how the stages are done: everything that decides them beside the data and the numbers of steps."""

    training: Training  # of the teacher; its recipe's steps are those of the plan
    network_rate: float
    mix: Mix
    between: int
    configurations: int
    whole: bool
    order: Order
    hidden: tuple[int, ...] = ()


def teacher(begun: Begun, plan: Plan, method: Method, folders: Folders, conduct: Conduct) -> TaskModel:
    """Fine-tune the model, and score its heads and channels: by their movement meanwhile, and to first order after.

    A model that answers the task already is its own teacher. It is fine-tuned only where its movement is asked for.
    """
    if not folders.teacher.is_dir():
        training = replace(method.training, recipe=replace(method.training.recipe, steps=plan.teacher_steps))
        best = task_model(begun.imported, begun.prepared, training).to(choose_device(training.device))
        if not begun.is_finetuned or method.order == "movement":
            moved = _finetuned(begun, training, method, folders, conduct)
            best = best if begun.is_finetuned else moved
        with threads(training.threads):
            stream, loss = task_stream(begun.prepared, training.recipe), loss_of(begun.prepared.task.kind)
            batches = (stream.batch(step).to(choose_device(training.device)) for step in range(SCORED))
            write_importance(folders.importance, first_order(best, batches, loss, hidden=bool(method.hidden)))
        folders.answers.unlink(missing_ok=True)  # of a teacher that is no longer there
        save(best, begun, folders.teacher, {"fine-tuned from": begun.name})
        shutil.rmtree(folders.checkpoints("teacher"), ignore_errors=True)
    return read_model(folders.teacher)


def _finetuned(begun: Begun, training: Training, method: Method, folders: Folders, conduct: Conduct) -> TaskModel:
    model = task_model(begun.imported, begun.prepared, training).to(choose_device(training.device))
    watched = Watched(model, hidden=bool(method.hidden))
    steps = training.recipe.steps
    with conduct("fine-tuning", folders.checkpoints("teacher"), steps) as run, threads(training.threads):
        stream, loss = task_stream(begun.prepared, training.recipe), loss_of(begun.prepared.task.kind)
        train(watched, stream, loss, training.recipe, run.saving, run.after_step)
    write_importance(folders.movement, watched.importance())
    return watched.model


def search_space(
    card: Card, ends: tuple[float, float], cost: Callable[[Card], float], method: Method, folders: Folders
) -> tuple[ElasticChoices, list[Met]]:
    """Let the model draw up its space (Algorithm 1), from below the lower end to the higher one."""
    thresholds = Thresholds(card, space_scores(method, folders), cost)
    goals = targets_between(MARGIN * ends[0], ends[1], method.configurations)
    choices, met = automatic(thresholds, goals, whole=method.whole, hidden=method.hidden)
    if not folders.space.is_file():
        write_json(folders.space, choices.to_json())
    return read_choices(folders.space), met


def super_network(
    begun: Begun,
    known: TaskModel,
    choices: ElasticChoices,
    plan: Plan,
    method: Method,
    folders: Folders,
    conduct: Conduct,
) -> None:
    """Put the teacher's parts in the order of their importance, and train all sub-networks together."""
    if folders.network.is_dir():
        return
    training = method.training
    recipe = network_recipe(training.recipe, plan.network_steps, method)
    heard = _heard(begun, known, recipe, method, folders)
    network = make_network(known, choices, ordering(known, method, folders), method, heard)
    network.to(choose_device(training.device))
    with conduct("super-network", folders.checkpoints("network"), plan.network_steps) as run, threads(training.threads):
        loss = sandwich_loss(begun.prepared.task.kind, method.mix)
        train(network, task_stream(begun.prepared, recipe), loss, recipe, run.saving, run.after_step)
    save(network.model, begun, folders.network, {"super-network of": begun.name})
    shutil.rmtree(folders.checkpoints("network"), ignore_errors=True)
    folders.answers.unlink(missing_ok=True)


def _heard(begun: Begun, known: TaskModel, recipe: Recipe, method: Method, folders: Folders) -> nn.Module:
    """Give the teacher as the super-network hears it: from memory, where rows are shown more than once."""
    if recipe.steps * recipe.batch <= len(begun.prepared.train.examples):
        return known
    with threads(method.training.threads):
        return remembered(known.to(choose_device(method.training.device)), begun.prepared, folders.answers)


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


def space_scores(method: Method, folders: Folders) -> Importance:
    """Give the scores that the space is drawn up by: movement where that is the order, or else those of first order."""
    if method.order == "movement":
        return read_importance(folders.movement)
    return balanced(read_importance(folders.importance), BALANCE)


def ordering(known: TaskModel, method: Method, folders: Folders) -> Importance:
    """Give the scores by which heads and channels are put in order."""
    card = known.transformer.card
    if method.order == "l1":
        return magnitude(dict(known.named_parameters()), card, known.spec if method.hidden else None)
    return uniform(card) if method.order == "none" else space_scores(method, folders)
