"""Models of a compression as folders that load: with their scores, their tokeniser and their labels."""

from collections.abc import Mapping
from pathlib import Path

from formwright.arch.layers import TokenEmbedding
from formwright.compress.begin import Begun
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.evaluate.evaluation_file import evaluation_of
from formwright.evaluate.row_tables import evidence_of
from formwright.nn.hf.load import from_hf
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.task_model import TaskModel
from formwright.study.conclusion import score_facts
from formwright.study.finish import without_folder
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.train.judge import judged


def save(model: TaskModel, begun: Begun, folder: Path, lineage: Mapping[str, str]) -> None:
    """Judge a model on validation, and write it as a folder that is whole or not there at all."""
    task, tokeniser = begun.prepared.task, begun.prepared.tokeniser
    name, part = without_folder(task.name), begun.prepared.validation
    found = judged(model, begun.prepared, part)
    evidence = evidence_of(found.metrics, found.tables, begun.prepared, part)
    save_pretrained_folder(
        model.cpu().eval(),
        folder,
        tokenizer=None if tokeniser is None else tokeniser.tokenizer,
        labels=task.labels if model.spec.task == "sequence-classification" and model.spec.labels > 1 else (),
        scores=score_facts(name, "validation", found.metrics, evidence),
        lineage={**lineage, "task": name},
        evaluation=evaluation_of(begun.prepared, found.metrics, evidence={"validation": evidence}),
        force=True,
    )


def read_model(folder: Path) -> TaskModel:
    """Read a model that `save` wrote; say what to do where it is damaged."""
    try:
        model = from_hf(folder).model()
        if not isinstance(model, TaskModel):
            raise IllegalInput("it has lost its head")
        if isinstance(model.transformer.card.stacks[0].embedding, TokenEmbedding):
            read_tokeniser(folder)  # which the search will need
    except FormwrightError as error:
        told = str(error).rstrip(".")
        raise IllegalInput(f"cannot read {folder}: {told}; remove the folder, and its stage is done anew") from None
    return model
