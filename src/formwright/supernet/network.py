"""A super-network: one set of weights, out of which every sub-network reads its own and teaches it to the others."""

from functools import lru_cache
from typing import Any, Self

import torch
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.nn.build import skeleton
from formwright.nn.heads import HeadSpec
from formwright.nn.inherit import Inherited, extract, inherit, run
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel
from formwright.supernet.sandwich import Sandwich
from formwright.train.batch import Batch
from formwright.train.distil import Answers, Mix, distilled
from formwright.train.losses import Loss


class SuperNetwork(nn.Module):
    """Show every batch to the sub-networks that a sandwich draws, and to the teacher once.

    The draw depends on torch's generator alone, which the training loop seeds for every step: so a run that was
    interrupted draws what it would have drawn. The teacher's weights are not changed, but go wherever the network goes.
    """

    def __init__(self, model: TaskModel, teacher: nn.Module, sandwich: Sandwich) -> None:
        super().__init__()
        self.model = model
        self.sandwich = sandwich
        self._teacher = (teacher.eval(),)  # in a tuple: its weights are not the network's to learn or to save

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """Move the teacher along: torch does not see it in its tuple."""
        self._teacher[0]._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call, no-any-return]

    def forward(self, *inputs: Any) -> list[Answers]:
        """Return what each sub-network says to a batch, the largest first, beside what the teacher says."""
        with torch.no_grad():
            wanted = self._teacher[0](*inputs)
        draw = int(torch.randint(1 << 62, (1,)))
        cards = self.sandwich.cards(derive(draw, "sandwich"))
        return [Answers(self.answer(card, *inputs), wanted) for card in cards]

    def answer(self, card: Card, *inputs: Any) -> Tensor:
        """Return what one sub-network says."""
        part = _skeleton(card, self.model.transformer.settings, self.model.spec).train(self.training)
        scores: Tensor = run(part, self.views(card), *inputs)
        return scores

    def views(self, card: Card) -> Inherited:
        """Give the weights of a sub-network: views, through which gradients flow."""
        whole = dict(self.model.named_parameters())
        return inherit(whole, self.model.transformer.card, card, head=self.model.spec)

    def extracted(self, card: Card) -> TaskModel:
        """Give a sub-network as a model of its own, with weights of its own."""
        model = extract(self.views(card), card, self.model.transformer.settings, self.model.spec)
        assert isinstance(model, TaskModel)
        return model.eval()


def sandwich_loss(kind: str, mix: Mix) -> Loss:
    """Give the mean, over the sub-networks of a step, of what a task and a teacher's scores say of each.

    Hidden states are not compared: a mix that weighs them is refused at the first step.
    """
    loss = distilled(kind, mix)

    def mean(answers: list[Answers], batch: Batch) -> Tensor:
        return torch.stack([loss(one, batch) for one in answers]).mean()

    return mean


@lru_cache(maxsize=256)
def _skeleton(card: Card, settings: Settings, spec: HeadSpec) -> nn.Module:
    return skeleton(card, settings, spec)
