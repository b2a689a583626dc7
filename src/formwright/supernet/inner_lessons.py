"""Lessons from within: hidden states of mapped layers, relations of attention, and an anchor among the designs."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from formwright.core.errors import IllegalInput
from formwright.core.options import option
from formwright.supernet.hull import sampled_cards
from formwright.supernet.lessons import Answer, DesignOutput, Labels, Lesson, LessonContext, StepAnswers

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from formwright.arch.card import Card
    from formwright.train.losses import StepLoss
    from formwright.train.streams import Batch

_SAMPLED = 250  # designs of a space without order, for the widths that they have


def evenly(student: int, teacher: int) -> list[tuple[int, int]]:
    """Pair the layers of a student with those of a teacher, evenly, the last with the last."""
    pairs = min(student, teacher)
    return [((one + 1) * student // pairs - 1, (one + 1) * teacher // pairs - 1) for one in range(pairs)]


@dataclass(frozen=True)
class _Taught(Lesson):
    """A lesson from a teacher, or from the largest design of a step, which learns from the labels then."""

    NEEDS_TEACHER: ClassVar[bool] = True
    NEEDS_LARGEST: ClassVar[bool] = True
    labels: float = option(0.0, "weight of the labels", least=0)
    scores: float = option(1.0, "weight of the teacher's scores", least=0)
    temperature: float = option(1.0, "what scores are divided by before they are compared", least=0.01)

    def _bound(self, kind: str, compare: "Callable[[Answer, Answer, Batch], Tensor]") -> "StepLoss":
        from formwright.train.distil import Answers, Mix, distilled  # noqa: PLC0415  lists and help need no torch
        from formwright.train.losses import loss_of  # noqa: PLC0415

        own, mixed = loss_of(kind), None
        if self.labels or self.scores:
            mixed = distilled(kind, Mix(self.labels, self.scores, temperature=self.temperature))

        def losses(said: StepAnswers, batch: "Batch") -> "Iterator[Tensor]":
            largest = None
            for design, given, rows in said.each(batch):
                teacher = given or largest
                if teacher is None:
                    yield own(design.scores, rows) / said.number
                    largest = design.detached()
                    continue
                loss = compare(design, teacher, rows)
                if mixed is not None:
                    loss = loss + mixed(Answers(design.scores, teacher.scores), rows)
                yield loss / said.number

        return losses


@dataclass(frozen=True)
class HiddenStates(_Taught):
    """Learn the teacher's hidden states at mapped layers, and its scores (AutoTinyBERT, DynaBERT).

    Layers are mapped evenly: of a student's m and a teacher's n layers, each m / n-th learns from each n-th. Where
    widths differ, a linear map to the teacher's width is trained along, of which narrower designs use the leading
    columns; it is not a part of what is delivered. The loss is the sum of the squared distances, in the mean over
    layers, and the weighted losses of scores and labels.
    """

    NAME: ClassVar[str] = "hidden-states"
    SIGNALS: ClassVar[frozenset[str]] = frozenset({"layers"})
    hidden: float = option(1.0, "weight of the hidden states", least=0)

    def bind(self, kind: str, context: LessonContext | None = None) -> "StepLoss":
        import torch  # noqa: PLC0415  lists and help texts need no torch
        from torch.nn import functional as F  # noqa: PLC0415

        from formwright.train.losses import hidden_distance  # noqa: PLC0415

        assert context is not None, "hidden states are those of a super-network"
        network = context.network
        network.signals |= self.SIGNALS
        designs = [context.hull.largest, context.hull.smallest]
        if not context.hull.whole:  # where choices have no order, other designs may be wider or narrower
            designs.extend(sampled_cards(context.hull.space, _SAMPLED))
        wanted, given = (
            {layer.output_width for card in cards for layer in card.stacks[-1].layers}
            for cards in ([network.teacher_card or context.hull.largest], designs)
        )
        network.hidden_map = None if wanted == given else torch.nn.Parameter(torch.eye(max(wanted), max(given)))

        def compare(design: Answer, teacher: Answer, batch: "Batch") -> "Tensor":
            pairs, found = evenly(len(design.layers), len(teacher.layers)), []
            for mine, its in pairs:
                state, aim = design.layers[mine], teacher.layers[its]
                if network.hidden_map is not None:
                    state = F.linear(state, network.hidden_map[: aim.shape[-1], : state.shape[-1]])
                found.append(hidden_distance(state, aim, _mask(batch)))
            return self.hidden * torch.stack(found).mean()

        return self._bound(kind, compare)


@dataclass(frozen=True)
class AttentionRelations(_Taught):
    """Learn how the teacher's last attention relates tokens: by queries, by keys and by values (MiniLMv2).

    A relation is softmax(X X^T / sqrt(d)) in each of `heads` equal parts of the channels, whatever the attention's own
    heads are; the loss is the divergence of the teacher's from the student's, in the mean over real tokens, and the
    weighted losses of scores and labels. Widths may differ. A design without attention learns from the rest alone.
    """

    NAME: ClassVar[str] = "attention-relations"
    SIGNALS: ClassVar[frozenset[str]] = frozenset({"maps"})
    relations: float = option(1.0, "weight of the relations", least=0)
    heads: int = option(4, "parts that channels are divided into to compare relations", least=1)

    def bind(self, kind: str, context: LessonContext | None = None) -> "StepLoss":
        assert context is not None, "relations are those of a super-network"
        context.network.signals |= self.SIGNALS
        return self._bound(kind, self._compare)

    def _compare(self, design: Answer, teacher: Answer, batch: "Batch") -> "Tensor":
        if not teacher.maps:
            raise IllegalInput(f"the teacher has no attention, from which the lesson {self.NAME} learns")
        mask = _mask(batch)
        total = design.scores.new_zeros(())
        for mine, its in zip(design.maps, teacher.maps, strict=False):
            student, aim = (self._relation(x, mask) for x in (mine, its))
            distance = (aim.exp() * (aim - student)).sum(-1).mean(1)  # (batch, tokens)
            total = total + (distance.mean() if mask is None else distance[mask].mean())
        return self.relations * total

    def _relation(self, x: "Tensor", mask: "Tensor | None") -> "Tensor":
        """Give log shares (batch, heads, tokens, tokens); padding has none, and counts as 0."""
        width = x.shape[-1] // self.heads
        if not width:
            raise IllegalInput(f"{x.shape[-1]} channels cannot be divided into {self.heads} parts: choose fewer heads")
        parts = x[..., : width * self.heads].reshape(*x.shape[:-1], self.heads, width).transpose(1, 2)
        scores: Tensor = parts @ parts.transpose(-1, -2) / width**0.5
        if mask is None:
            return scores.log_softmax(-1)
        hidden = ~mask[:, None, None]
        return scores.masked_fill(hidden, float("-inf")).log_softmax(-1).masked_fill(hidden, 0.0)


@dataclass(frozen=True)
class Anchor(Lesson):
    """Align the layers of a design with those of an anchor: the best design so far (MAGIC-A, Xu et al. 2022).

    Every `every` steps the design of the step takes the place of the anchor, if its loss on held-out rows is lower with
    the present weights. The paper gives the alignment no weight; here it is the mean squared distance of the outputs of
    all layers that both have, in the leading numbers that both have, times `weight`. Which design is the anchor is kept
    in the checkpoints.
    """

    NAME: ClassVar[str] = "anchor"
    SIGNALS: ClassVar[frozenset[str]] = frozenset({"layers"})
    NEEDS_HELD_OUT: ClassVar[bool] = True
    lesson: Lesson = option(Labels(), "the lesson to which the alignment is added")
    weight: float = option(0.1, "weight of the alignment", least=0)
    every: int = option(50, "steps between two trials of the anchor", least=1)

    @property
    def NEEDS_TEACHER(self) -> bool:  # type: ignore[override]  # noqa: N802  as the other lessons have it
        return self.lesson.NEEDS_TEACHER

    @property
    def NEEDS_LARGEST(self) -> bool:  # type: ignore[override]  # noqa: N802
        return self.lesson.NEEDS_LARGEST

    def __post_init__(self) -> None:
        if self.lesson.SIGNALS or not isinstance(self.lesson, Lesson):
            raise IllegalInput(f"the lesson {self.lesson.NAME} cannot be combined with an anchor: use labels or distil")

    def bind(self, kind: str, context: LessonContext | None = None) -> "StepLoss":
        import torch  # noqa: PLC0415  lists and help texts need no torch

        from formwright.train.losses import loss_of  # noqa: PLC0415

        assert context is not None, "an anchor is a design of a super-network"
        network, own, inner = context.network, loss_of(kind), self.lesson.bind(kind, context)
        network.signals |= self.SIGNALS
        # the step and the draw of the anchor, from which the rule gives its card again; -1 before there is one
        network.register_buffer("anchor", torch.tensor([-1, 0]))

        def judged(card: "Card", batch: "Batch") -> float:
            rows = batch if context.held_out is None else context.held_out.to(batch.inputs.device)
            return float(own(network.answer_now(card, rows).scores, rows))

        @lru_cache(maxsize=1)
        def card_of(step: int, draw: int) -> "Card | None":
            return None if step < 0 else network.drawn(draw, step)[0]

        def best(batch: "Batch") -> "Card | None":
            anchor = card_of(*map(int, network.anchor))
            if network.step % self.every:
                return anchor
            rival = network.drawn(network.draw, network.step)[0]
            if anchor is None or judged(rival, batch) < judged(anchor, batch):
                network.anchor.copy_(torch.tensor([network.step, network.draw]))
                return rival
            return anchor

        def losses(said: StepAnswers, batch: "Batch") -> "Iterator[Tensor]":
            anchor, seen = best(batch), list[DesignOutput]()

            def noted(rows: "Batch") -> "Iterator[DesignOutput]":
                for shown in said.each(rows):
                    seen[:] = [shown]
                    yield shown

            for loss in inner(StepAnswers(said.number, noted), batch):
                if anchor is None:
                    yield loss
                    continue
                aligned = network.answer_now(anchor, seen[0].batch)
                yield loss + self.weight / said.number * _distance(seen[0].design, aligned, _mask(seen[0].batch))

        return losses


def _distance(design: Answer, anchor: Answer, mask: "Tensor | None") -> "Tensor":
    from formwright.train.losses import hidden_distance  # noqa: PLC0415  lists and help texts need no torch

    total, pairs = design.scores.new_zeros(()), list(zip(design.layers, anchor.layers, strict=False))
    for mine, its in pairs:
        width = min(mine.shape[-1], its.shape[-1])
        total = total + hidden_distance(mine[..., :width], its[..., :width], mask)
    return total / len(pairs)


def _mask(batch: "Batch") -> "Tensor | None":
    """Give which tokens of the last stack are real; None for all of them."""
    mask = batch.mask if batch.targets is None else batch.targets_mask
    return None if mask is None else mask.bool()
