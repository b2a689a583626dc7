"""Put the head of a task on an imported model."""

from pathlib import Path

from formwright.core.errors import IllegalInput
from formwright.nn.hf.checkpoint_files import CONFIG, read_json
from formwright.nn.hf.imported import MULTI_LABEL, Imported
from formwright.nn.task_model import TaskModel
from formwright.tasks.task import Task
from formwright.train.fit import Training, fresh_model, head_of, with_weights
from formwright.train.prepare import Prepared


def task_model(imported: Imported, prepared: Prepared, training: Training) -> TaskModel:
    """Build a model for a task from imported weights; its head is kept if it fits the task."""
    model = fresh_model(imported.card, prepared, training)
    if imported.head is None:
        return with_weights(model, imported.weights)
    if head_fits(imported, prepared.task):
        model.load_state_dict(dict(imported.weights))
        return model
    own = {name: tensor for name, tensor in imported.weights.items() if name.startswith("transformer.")}
    return with_weights(model, {name.removeprefix("transformer."): tensor for name, tensor in own.items()})


def head_fits(imported: Imported, task: Task) -> bool:
    """Return whether the head of a model has the kind and the labels of a task."""
    wanted, labels = head_of(task), task.labels
    if imported.head is None or imported.head.task != wanted.task:
        return False
    if wanted.task != "sequence-classification":  # the other heads have no labels to differ in
        return True
    named = imported.labels if labels else ()  # a regression's only label has a name that means nothing
    return imported.head == wanted and named in ((), labels)


def replaced_head(imported: Imported, task: Task, folder: Path) -> str:
    """Explain why the head of a model is replaced; empty if it is kept or was a pretraining head.

    Raise for a multi-label model and a single-label task: its scores do not rank the labels.
    """
    config, wanted = read_json(folder / CONFIG), head_of(task)
    if config.get("problem_type") == MULTI_LABEL and not wanted.multi_label:
        raise IllegalInput(
            f"{folder} is a multi-label model, and a row of {task.name} has one answer: give a multi-label task, or "
            "the model that it was fine-tuned from"
        )
    if head_fits(imported, task) or (imported.head is not None and imported.head.task in _PRETRAINING):
        return ""
    if imported.head is not None and imported.head.task == wanted.task and wanted.multi_label:
        why = f"it is not a multi-label head for {', '.join(task.labels)}"
    elif imported.head is not None and imported.head.task == wanted.task:
        own = ", ".join(imported.labels) or str(imported.head.labels)
        why = f"its labels are {own}, those of the task {', '.join(task.labels) or 'numbers'}"
    else:
        known = config.get("architectures")
        name = str(known[0]) if isinstance(known, list) and known else ""
        if imported.head is None and not _serves_a_task(name):
            return ""
        what = name if imported.head is None else imported.head.task
        why = f"it is one for {what}, and the task is {task.kind}"
    return f"the head of {folder.name} is replaced by a new one: {why}"


_PRETRAINING = ("masked-lm", "causal-lm")
_PRETRAINED = ("ForPreTraining", "ForMaskedLM", "ForMaskedImageModeling")  # the ends of class names


def _serves_a_task(architecture: str) -> bool:
    """Return by the name of a class whether it has a head that was fine-tuned."""
    return "For" in architecture and not architecture.endswith(_PRETRAINED)
