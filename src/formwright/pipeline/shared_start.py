"""Weights of another model that a super-network starts with, where its own tensors have place for them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor as Weight

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.tensors import Tensor
from formwright.core.errors import IllegalInput
from formwright.core.options import Stage
from formwright.nn.task_model import TaskModel
from formwright.pipeline.run import StageRun
from formwright.pipeline.start_model import read_weights
from formwright.supernet.hull import Hull
from formwright.supernet.library import LOOKED_AT, LibraryWeights, count_held, library_of, take_over
from formwright.tasks.kind import kind_of
from formwright.tasks.task import Task
from formwright.tasks.tokeniser import Tokeniser
from formwright.train.checkpoint import weights_digest
from formwright.train.fit import Training, fresh_model, head_fits, head_of
from formwright.train.prepare import Prepared

_BODY = "transformer."  # before the names of all tensors but those of a head


@dataclass(frozen=True, eq=False)
class StartWeights:
    """Weights by the names of a model for a task, the tensors that they are, and the tokeniser that they know."""

    name: str
    weights: Mapping[str, Weight]
    tensors: Mapping[str, Tensor]
    tokeniser: Any

    @classmethod
    def read(cls, source: str, task: Task) -> "StartWeights":
        """Read the folder of a model, or its name on the hub; its head counts where it answers the task."""
        name, imported, tokeniser = read_weights(source, task)
        before = _BODY if imported.head is None else ""
        keep_head = head_fits(imported, task)
        weights = {
            before + name: weight
            for name, weight in imported.weights.items()
            if keep_head or (before + name).startswith(_BODY)
        }
        head = imported.head or HeadSpec("sequence-classification")  # which gives its tensors their names
        return cls(name, weights, tensors_of(imported.card, head), tokeniser)

    @classmethod
    def of(cls, name: str, found: Any, task: Task) -> "StartWeights":
        """Take those of the model that a stage left, or of its library; a head counts where it answers the task."""
        model: TaskModel | LibraryWeights = getattr(found, "library", None) or found.model
        keep_head = model.spec == head_of(task) and found.prepared.task.labels == task.labels
        weights = {
            name: weight.detach() for name, weight in model.named_parameters() if keep_head or name.startswith(_BODY)
        }
        if isinstance(model, LibraryWeights):
            return cls(name, weights, model.library.tensors, found.prepared.tokeniser)
        return cls(name, weights, tensors_of(model.transformer.card, model.spec), found.prepared.tokeniser)

    @property
    def digest(self) -> str:
        return weights_digest(self.weights)

    def check(self, card: Card) -> None:
        """Refuse a design that has no place for all tokens of this model."""
        for table in card.token_tables:
            if isinstance(self.tokeniser, Tokeniser) and self.tokeniser.size > table.vocabulary:
                raise IllegalInput(
                    f"{self.name} has {self.tokeniser.size:,} tokens, and the designs of this space "
                    f"{table.vocabulary:,}: choose a space with a larger vocabulary, or another model to start from"
                )


def start_weights(source: str | Stage | None, task: Task, run: StageRun) -> StartWeights:
    """Read the weights of a folder, or of a stage that is made."""
    if isinstance(source, Stage):
        found = StartWeights.of(f"the stage {source.NAME}", run.artifact(source), task)
    else:
        found = StartWeights.read(str(source), task)
    if isinstance(found.tokeniser, Tokeniser) != kind_of(task).has_tokens:
        raise IllegalInput(f"{found.name} does not read what the task {task.name} has: start from another model")
    return found if kind_of(task).has_tokens else replace(found, tokeniser=None)  # other rows: the task's own reader


def fresh_weights(
    hull: Hull,
    prepared: Prepared,
    training: Training,
    known: StartWeights | None,
    tell: Callable[[str], None],
    *,
    needed: bool,
) -> tuple[TaskModel | LibraryWeights, Hull]:
    """Give weights to begin with, and the hull of the space of all designs that can read theirs from them.

    They are new but for those that are `known`, where tensors fit; `tell` gets their number. At least one is `needed`.
    """
    largest = fresh_model(hull.largest, prepared, training)
    found: TaskModel | LibraryWeights = largest
    declared = tensors_of(hull.largest, largest.spec)
    if not hull.whole:
        found, hull = _fresh_library(hull, largest, training, tell)
        declared = found.library.tensors
    if known is not None:
        _start_from(known, found, declared, hull, tell, needed=needed)
    return found, hull


def _fresh_library(
    hull: Hull, largest: TaskModel, training: Training, tell: Callable[[str], None]
) -> tuple[LibraryWeights, Hull]:
    """Give a library of fresh weights for the designs of a space, and the hull of those that it holds."""
    spec = largest.spec
    library = library_of(hull.space, spec)
    if (many := count_held(library, hull.space, spec)) < LOOKED_AT:
        tell(
            f"the library of weights holds {many} of {LOOKED_AT} sampled designs of space {hull.space.name!r}; the "
            "others have larger or rarer parts than those that were found, and are neither trained nor searched"
        )
    found = LibraryWeights.fresh(library, spec, training.settings, training.recipe.seed, training.spread)
    found.start_from(dict(largest.named_parameters()), tensors_of(hull.largest, spec))
    held = hull.space.restrict(
        "in the library of weights", lambda card: library.holds(tensors_of(card, spec)), lasting=True
    )
    return found, replace(hull, space=held)


def _start_from(
    known: StartWeights,
    found: TaskModel | LibraryWeights,
    declared: Mapping[str, Tensor],
    hull: Hull,
    tell: Callable[[str], None],
    *,
    needed: bool,
) -> None:
    """Overwrite fresh weights with those that are known, where tensors fit, and tell how many."""
    known.check(hull.largest)
    own = dict(found.named_parameters())
    taken = take_over(own, _by_rows(declared), known.weights, _by_rows(known.tensors), without_additions=True)
    if needed and not taken:
        raise IllegalInput(
            f"no tensor of {known.name} fits a design of space {hull.space.name!r}: leave start out, or choose a model "
            "with layers of the same kinds"
        )
    passing = _pass_through(own, known.weights)
    maps = f"; {passing} maps between layers that it lacks pass everything on as it is" if passing else ""
    tell(
        f"{taken} of {len(declared)} tensors of the super-network start with weights of {known.name}, in full or in "
        f"part{maps}; the others are fresh"
    )


def _by_rows(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Let tables of tokens be read row by row: the tokeniser is one, so the first rows mean the same in all of them."""
    found = {}
    for name, tensor in tensors.items():
        axes = tuple(
            tuple(one._replace(cut="leading") if one.group == "vocabulary" else one for one in axis)
            for axis in tensor.axes
        )
        tokens = TokenEmbedding.TYPE
        kind = tensor.kind[: tensor.kind.index(tokens) + 1] if tokens in tensor.kind else tensor.kind
        found[name] = tensor._replace(axes=axes, kind=kind)
    return found


@torch.no_grad()
def _pass_through(own: Mapping[str, Weight], weights: Mapping[str, Weight]) -> int:
    """Make maps between layers the identity where the other model has none, and count them.

    With fresh maps between them, layers that were trained together would read each other's outputs scrambled.
    """
    found = 0
    for stored, weight in own.items():
        name = stored.partition("@")[0]  # a library has kinds behind it
        if ".projections." not in name or name in weights:
            continue
        weight.zero_()
        if weight.dim() > 1:
            weight.fill_diagonal_(1.0)
            found += 1
    return found
