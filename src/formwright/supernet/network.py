"""A super-network: one set of weights, out of which every sub-network reads its own."""

import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import torch
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.nn.build import skeleton
from formwright.nn.inherit import InheritedWeights, extract, inherit, run
from formwright.nn.task_model import TaskModel
from formwright.supernet.importance import Importance, reordered
from formwright.supernet.lessons import StepAnswers
from formwright.supernet.rules import Draw
from formwright.train.streams import Batch, Stream


class SuperNetwork(nn.Module):
    """Show every batch to the sub-networks that a rule draws, and to the teacher, if any, once.

    The draw depends on the step and on torch's generator alone, which the training loop seeds for every step: so a run
    that was interrupted draws what it would have drawn. The teacher's weights are not changed, but go wherever the
    network goes.
    """

    def __init__(self, model: TaskModel, draw: Draw, teacher: nn.Module | None = None) -> None:
        super().__init__()
        self.model = model
        self.step = 0  # that of the batch shown last, which `Following` sets
        self._draw = draw
        # in a tuple: its weights are not the network's to learn or to save
        self._teacher = () if teacher is None else (teacher.eval(),)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """Move the teacher along: torch does not see it in its tuple."""
        for teacher in self._teacher:
            teacher._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call, no-any-return]

    def cards(self) -> list[Card]:
        draw = int(torch.randint(1 << 62, (1,)))
        return self._draw(derive(draw, "sandwich"), self.step)

    def forward(self, *inputs: Any) -> StepAnswers:
        wanted = None
        for teacher in self._teacher:
            with torch.no_grad():
                wanted = teacher(*inputs)
        return StepAnswers(tuple(self.answer(card, *inputs) for card in self.cards()), wanted)

    def answer(self, card: Card, *inputs: Any) -> Tensor:
        part = _skeleton(card, self.model.transformer.settings, self.model.spec).train(self.training)
        scores: Tensor = run(part, self.views(card), *inputs)
        return scores

    def views(self, card: Card) -> InheritedWeights:
        """Give the weights of a sub-network: views, through which gradients flow."""
        whole = dict(self.model.named_parameters())
        return inherit(whole, self.model.transformer.card, card, head=self.model.spec)

    def extracted(self, card: Card) -> TaskModel:
        """Give a sub-network as a model of its own, with weights of its own."""
        model = extract(self.views(card), card, self.model.transformer.settings, self.model.spec)
        assert isinstance(model, TaskModel)
        return model.eval()


def begun_with(known: TaskModel, importance: Importance | None = None, *, whole_embedding: bool = False) -> TaskModel:
    """Give the weights that a super-network of a teacher begins with: a copy, its most important parts first.

    Where all sub-networks have the whole embedding, it is not trained.
    """
    start = copy.deepcopy(known)
    if importance is not None:
        weights = reordered(dict(known.named_parameters()), known.transformer.card, importance, known.spec)
        start.load_state_dict({name: tensor.detach().clone() for name, tensor in weights.items()}, strict=False)
    if whole_embedding and start.transformer.encoder is not None:
        start.transformer.encoder.embedding.requires_grad_(False)
    return start


@dataclass(frozen=True)
class Following:
    """Batches that tell a network which step they belong to, where a step has `parts` batches."""

    stream: Stream
    network: SuperNetwork
    parts: int = 1

    def batch(self, step: int) -> Batch:
        """Give a batch, and note its step."""
        self.network.step = step // self.parts
        return self.stream.batch(step)


_skeleton = lru_cache(maxsize=256)(skeleton)
