"""The trainings of a compression: a teacher that scores its parts, and a super-network.

Each makes what is not there yet, and goes on where it was interrupted.
"""

import copy
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from torch import nn

from formwright.compress.begin import Begun
from formwright.compress.folders import Folders, write_importance
from formwright.compress.method import Method
from formwright.compress.models import read_model, save
from formwright.compress.plan import Order, Plan
from formwright.compress.space import ordering
from formwright.nn.task_model import TaskModel
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.supernet.importance import Importance, Watched, first_order
from formwright.supernet.network import SuperNetwork, sandwich_loss
from formwright.supernet.reorder import reordered
from formwright.supernet.sandwich import Sandwich
from formwright.train.device import choose_device, threads
from formwright.train.fit import Run, Training, task_stream
from formwright.train.imported import task_model
from formwright.train.loop import train
from formwright.train.losses import loss_of
from formwright.train.recipe import Recipe
from formwright.train.remembered import remembered

Conduct = Callable[[str, Path, int], AbstractContextManager[Run]]  # what is done, where it is saved, in how many steps


def teacher(begun: Begun, plan: Plan, method: Method, folders: Folders, conduct: Conduct) -> TaskModel:
    """Fine-tune the model, and score its heads and channels: by their movement meanwhile, and to first order after.

    A model that answers the task already is its own teacher. It is fine-tuned only where its movement is asked for.
    """
    if not folders.teacher.is_dir():
        best = _best_teacher(begun, plan, method, folders, conduct)
        _score(best, begun, plan.scored, method, folders)
        folders.answers.unlink(missing_ok=True)  # of a teacher that is no longer there
        save(best, begun, folders.teacher, {"fine-tuned from": begun.name})
    shutil.rmtree(folders.checkpoints("teacher"), ignore_errors=True)  # also what a kill after writing left
    return read_model(folders.teacher)


def is_trained(begun: Begun, order: Order) -> bool:
    """Tell whether the model is fine-tuned: not where it answers the task already, unless its movement is asked for."""
    return not begun.is_finetuned or order == "movement"


def _best_teacher(begun: Begun, plan: Plan, method: Method, folders: Folders, conduct: Conduct) -> TaskModel:
    if is_trained(begun, method.order):
        steps = plan.teacher_steps
        recipe = replace(method.training.recipe, steps=steps, learning_rate=method.teacher_rate(steps))
        moved = _finetuned(begun, replace(method.training, recipe=recipe), method, folders, conduct)
        if not begun.is_finetuned:
            return moved
    return task_model(begun.imported, begun.prepared, method.training).to(choose_device(method.training.device))


def _score(model: TaskModel, begun: Begun, number: int, method: Method, folders: Folders) -> None:
    training = method.training
    with threads(training.threads):
        stream, loss = task_stream(begun.prepared, training.recipe), loss_of(begun.prepared.task.kind)
        batches = (stream.batch(step).to(choose_device(training.device)) for step in range(number))
        write_importance(folders.importance, first_order(model, batches, loss, hidden=bool(method.hidden)))


def _finetuned(begun: Begun, training: Training, method: Method, folders: Folders, conduct: Conduct) -> TaskModel:
    model = task_model(begun.imported, begun.prepared, training).to(choose_device(training.device))
    watched = Watched(model, hidden=bool(method.hidden))
    steps = training.recipe.steps
    with conduct("fine-tuning", folders.checkpoints("teacher"), steps) as run, threads(training.threads):
        stream, loss = task_stream(begun.prepared, training.recipe), loss_of(begun.prepared.task.kind)
        train(watched, stream, loss, training.recipe, run.saving, run.after_step)
    write_importance(folders.movement, watched.importance())
    return watched.model


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
    if not folders.network.is_dir():
        network = _trained_network(begun, known, choices, plan, method, folders, conduct)
        save(network, begun, folders.network, {"super-network of": begun.name})
    read_model(folders.network)  # so that damage is told here, with what to do, and not by every worker
    shutil.rmtree(folders.checkpoints("network"), ignore_errors=True)  # also what a kill after writing left
    folders.answers.unlink(missing_ok=True)


def _trained_network(
    begun: Begun,
    known: TaskModel,
    choices: ElasticChoices,
    plan: Plan,
    method: Method,
    folders: Folders,
    conduct: Conduct,
) -> TaskModel:
    training = method.training
    recipe = network_recipe(training.recipe, plan.network_steps, method)
    heard = _heard(begun, known, recipe, method, folders)
    network = make_network(known, choices, ordering(known, method, folders), method, heard)
    network.to(choose_device(training.device))
    with conduct("super-network", folders.checkpoints("network"), plan.network_steps) as run, threads(training.threads):
        loss = sandwich_loss(begun.prepared.task.kind, method.mix)
        train(network, task_stream(begun.prepared, recipe), loss, recipe, run.saving, run.after_step)
    return network.model


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
