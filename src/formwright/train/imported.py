"""Put the head of a task on a model that comes from elsewhere."""

from formwright.nn.hf.imported import Imported
from formwright.nn.task_model import TaskModel
from formwright.tasks.task import Task
from formwright.train.fit import Training, fresh_model, head_of, with_weights
from formwright.train.prepare import Prepared


def task_model(imported: Imported, prepared: Prepared, training: Training) -> TaskModel:
    """Build a model for a task from imported weights; its own head is kept where it answers the very question."""
    model = fresh_model(imported.card, prepared, training)
    if imported.head is None:
        return with_weights(model, imported.weights)
    if head_fits(imported, prepared.task):
        model.load_state_dict(dict(imported.weights))
        return model
    own = {name: tensor for name, tensor in imported.weights.items() if name.startswith("transformer.")}
    return with_weights(model, {name.removeprefix("transformer."): tensor for name, tensor in own.items()})


def head_fits(imported: Imported, task: Task) -> bool:
    """Tell whether the head of a model answers the very question of a task."""
    wanted, labels = head_of(task), task.labels
    if imported.head is None or imported.head.task != wanted.task:
        return False
    if wanted.task != "sequence-classification":  # the other heads have no labels to differ in
        return True
    named = imported.labels if labels else ()  # a regression's only label has a name that means nothing
    return imported.head.labels == wanted.labels and named in ((), labels)
