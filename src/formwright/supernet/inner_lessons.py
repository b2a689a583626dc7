"""Lessons from within: hidden states of mapped layers, relations of attention, and an anchor among the designs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from formwright.core.errors import IllegalInput
from formwright.core.options import option
from formwright.supernet.hull import sampled_cards
from formwright.supernet.lessons import Answer, DesignOutput, Labels, Lesson, LessonContext, StepAnswers, divisor

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from formwright.arch.card import Card
    from formwright.arch.layers import Stack
    from formwright.supernet.hull import Hull
    from formwright.supernet.network import SuperNetwork
    from formwright.supernet.rules import Rule
    from formwright.train.losses import StepLoss
    from formwright.train.streams import Batch

_SAMPLED = 250  # designs of a space without order, for the widths that they have


def evenly(student: int, teacher: int) -> list[tuple[int, int]]:
    """Pair the layers of a student with those of a teacher, evenly, the last with the last."""
    pairs = min(student, teacher)
    return [((one + 1) * student // pairs - 1, (one + 1) * teacher // pairs - 1) for one in range(pairs)]


def _ends_and_samples(hull: "Hull") -> "list[Card]":
    """Give the largest and the smallest design; where choices have no order, others may lie outside of them."""
    return [hull.largest, hull.smallest, *(() if hull.whole else sampled_cards(hull.space, _SAMPLED))]


@dataclass(frozen=True)
class _Taught(Lesson):
    """A lesson from a teacher, or from the largest design of a step, which learns from the labels then."""

    NEEDS_TEACHER: ClassVar[bool] = True
    NEEDS_LARGEST: ClassVar[bool] = True
    labels: float = option(0.0, "weight of the labels", least=0)
    scores: float = option(1.0, "weight of the teacher's scores", least=0)
    temperature: float = option(1.0, "temperature that divides scores before the softmax", least=0.01)

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
                    largest = design.detached()
                    loss = own(design.scores, rows)
                else:
                    loss = compare(design, teacher, rows)
                    if mixed is not None:
                        loss = loss + mixed(Answers(design.scores, teacher.scores), rows)
                del design  # otherwise it would live on while the next design is run
                yield loss / divisor(said, rows, batch)
                del loss

        return losses


@dataclass(frozen=True)
class HiddenStates(_Taught):
    """Learn the teacher's hidden states at mapped layers, and its scores (AutoTinyBERT, DynaBERT).

    Layers are mapped evenly: of a student's m and a teacher's n layers, each m / n-th learns from each n-th, in the
    encoder and in the decoder. Where widths differ, a linear map to the teacher's width is trained along for each
    stack, of which narrower designs use the leading columns; it is not a part of what is delivered. The loss is the
    squared distance in the mean over layers, real tokens and numbers, and the weighted losses of scores and labels.
    """

    NAME: ClassVar[str] = "hidden-states"
    SIGNALS: ClassVar[frozenset[str]] = frozenset({"layers"})
    hidden: float = option(1.0, "weight of the hidden states", least=0)

    def bind(self, kind: str, context: LessonContext | None = None) -> "StepLoss":
        import torch  # noqa: PLC0415  lists and help texts need no torch
        from torch.nn import functional as F  # noqa: PLC0415

        from formwright.train.losses import hidden_distance  # noqa: PLC0415

        assert context is not None, "hidden states are those of a super-network"
        network, teacher = context.network, context.teaching_card
        network.signals |= self.SIGNALS
        designs, maps = _ends_and_samples(context.hull), list[str | None]()
        for place, stack in enumerate(teacher.stacks):
            wanted, given = (
                {width for one in stacks for width in one.output_widths}
                for stacks in ([stack], [card.stacks[place] for card in designs])
            )
            maps.append(network.add_hidden_map(max(wanted), max(given)) if len(wanted | given) > 1 else None)

        def compare(design: Answer, teacher: Answer, batch: "Batch") -> "Tensor":
            found = []
            for mine, its, name, mask in zip(design.layers, teacher.layers, maps, _masks(batch), strict=True):
                for student, source in evenly(len(mine), len(its)):
                    state, aim = mine[student], its[source]
                    if name is not None:
                        state = F.linear(state, getattr(network, name)[: aim.shape[-1], : state.shape[-1]])
                    found.append(hidden_distance(state, aim, mask))
            return self.hidden * torch.stack(found).mean()

        return self._bound(kind, compare)


@dataclass(frozen=True)
class AttentionRelations(_Taught):
    """Learn how the teacher's last attention relates tokens: by queries, by keys and by values (MiniLMv2).

    A relation is softmax(X X^T / sqrt(d)) in each of `heads` equal parts of the channels, whatever the attention's own
    heads are; the loss is the divergence of the teacher's from the student's, in the mean over real tokens, and the
    weighted losses of scores and labels. Widths may differ. Every design needs an attention that exposes its
    queries, keys and values; a space with others is refused.
    """

    NAME: ClassVar[str] = "attention-relations"
    SIGNALS: ClassVar[frozenset[str]] = frozenset({"maps"})
    relations: float = option(1.0, "weight of the relations", least=0)
    heads: int = option(4, "parts that channels are divided into to compare relations", least=1)

    def bind(self, kind: str, context: LessonContext | None = None) -> "StepLoss":
        assert context is not None, "relations are those of a super-network"
        context.network.signals |= self.SIGNALS
        self.check_designs(context.hull, context.teaching_card)
        return self._bound(kind, self._compare)

    def check_designs(self, hull: "Hull", teacher: "Card | None" = None) -> None:
        from formwright.supernet.network import check_maps, map_channels  # noqa: PLC0415  torch, which lists do not need

        for card, what in ((teacher or hull.largest, "the teacher"), (hull.smallest, "the smallest design")):
            if (channels := map_channels(card)) < self.heads:
                raise IllegalInput(
                    f"the last attention of {what} has {channels} channels, which cannot be divided into {self.heads} "
                    f"parts: choose at most {channels} heads of the lesson {self.NAME}"
                )
        check_maps(_ends_and_samples(hull))

    def _compare(self, design: Answer, teacher: Answer, batch: "Batch") -> "Tensor":
        if not teacher.maps:
            raise IllegalInput(f"the teacher has no attention, from which the lesson {self.NAME} learns")
        mask = _masks(batch)[-1]
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

    Every `every` steps the best design of the step takes the place of the anchor, if its loss on held-out rows is lower
    with the present weights. The paper gives the alignment no weight; here it is the mean squared distance of the
    outputs of all layers that both have, in the leading numbers that both have, times `weight`. Where designs of fewer
    layers read evenly spaced ones, both have those that they read from the same place. A last layer whose output is
    normalised or projected is compared with another such one alone. Which design is the anchor is kept in the
    checkpoints.
    """

    NAME: ClassVar[str] = "anchor"
    SIGNALS: ClassVar[frozenset[str]] = frozenset({"layers"})
    NEEDS_HELD_OUT: ClassVar[bool] = True
    IN_STAGES: ClassVar[bool] = False
    lesson: Lesson = option(Labels(), "the lesson to which the alignment is added")
    weight: float = option(0.1, "weight of the alignment", least=0)
    every: int = option(30, "steps between two comparisons of the anchor with the current designs", least=1)

    @property
    def NEEDS_TEACHER(self) -> bool:  # type: ignore[override]  # noqa: N802  as the other lessons have it
        return self.lesson.NEEDS_TEACHER

    def __post_init__(self) -> None:
        if self.lesson.SIGNALS or self.lesson.switch_share is not None:
            raise IllegalInput(
                f"the lesson {self.lesson.NAME} cannot be combined with an anchor: use labels, distil or in-place"
            )

    def check(self, rule: "Rule", has_teacher: bool) -> None:
        self.lesson.check(rule, has_teacher)

    def check_designs(self, hull: "Hull", teacher: "Card | None" = None) -> None:
        self.lesson.check_designs(hull, teacher)

    def bind(self, kind: str, context: LessonContext | None = None) -> "StepLoss":
        assert context is not None, "an anchor is a design of a super-network"
        network, inner = context.network, self.lesson.bind(kind, context)
        network.signals |= self.SIGNALS
        best = _BestDesign(kind, context, self.every)

        def losses(said: StepAnswers, batch: "Batch") -> "Iterator[Tensor]":
            anchor, seen, cards = best.card(batch), list[DesignOutput](), iter(network.step_cards)

            def noted(rows: "Batch") -> "Iterator[DesignOutput]":
                for shown in said.each(rows):
                    seen[:] = [shown]
                    yield shown

            for loss, card in zip(inner(StepAnswers(said.number, noted), batch), cards, strict=True):
                if anchor is None:
                    yield loss
                    continue
                (shown,), pairs = seen, _pairs(network, card, anchor)
                aligned = network.answer_now(anchor, shown.batch)
                weight = self.weight / divisor(said, shown.batch, batch)
                yield loss + weight * _distance(shown.design, aligned, pairs, _masks(shown.batch))
                seen.clear()  # otherwise it would live on while the next design is run
                del shown

        return losses


class _BestDesign:
    """The anchor of a super-network, which is replaced by the best design of a step every `every` steps."""

    def __init__(self, kind: str, context: LessonContext, every: int) -> None:
        import torch  # noqa: PLC0415  lists and help texts need no torch

        from formwright.train.losses import loss_of  # noqa: PLC0415

        self._network, self._held_out, self._every = context.network, context.held_out, every
        self._loss = loss_of(kind)
        self._known: tuple[tuple[int, ...], Card | None] = (), None  # the card that was drawn again last
        # step, draw and place of the anchor, from which the rule gives its card again; -1 before there is one
        self._network.register_buffer("anchor", torch.tensor([-1, 0, 0]))

    def card(self, batch: "Batch") -> "Card | None":
        """Give the anchor of the present step, after its rivals had their turn if this is a step for that."""
        network, anchor = self._network, self._drawn_again()
        if network.step % self._every:
            return anchor
        rivals = [self._judged(card, batch) for card in network.step_cards]
        place = rivals.index(min(rivals))
        if anchor is None or rivals[place] < self._judged(anchor, batch):
            network.anchor.copy_(network.anchor.new_tensor([network.rule_step, network.draw, place]))
            return network.step_cards[place]
        return anchor

    def _drawn_again(self) -> "Card | None":
        step, draw, place = found = tuple(map(int, self._network.anchor))
        if found != self._known[0]:
            self._known = found, None if step < 0 else self._network.drawn(draw, step)[place]
        return self._known[1]

    def _judged(self, card: "Card", batch: "Batch") -> float:
        """Give the loss of a design with the present weights, on held-out rows where there are any."""
        rows = batch if self._held_out is None else self._held_out.to(batch.inputs.device)
        return float(self._loss(self._network.answer_now(card, rows).scores, rows))


def _pairs(network: "SuperNetwork", card: "Card", anchor: "Card") -> list[list[tuple[int, int]]]:
    """Pair, for each stack, the layers of two designs that are read from the same layer of the super-network.

    The output of the last layer is that of its stack, which may be normalised or projected: it is then compared with
    that of another stack alone, and not with the bare output of an inner layer.
    """
    found = []
    for stack, other, mine, its in zip(
        card.stacks, anchor.stacks, network.source_layers(card), network.source_layers(anchor), strict=True
    ):
        places = {source: place for place, source in enumerate(its)}
        both = [(place, places[source]) for place, source in enumerate(mine) if source in places]
        found.append([pair for pair in both if _is_changed(stack, pair[0]) == _is_changed(other, pair[1])])
    return found


def _is_changed(stack: "Stack", place: int) -> bool:
    """Tell whether a layer's output is normalised or projected before it leaves the stack."""
    number = len(stack.layers)
    projected = any(above == number for above, _, _ in stack.projections)
    return place == number - 1 and (stack.final_norm or projected)


def _distance(
    design: Answer, anchor: Answer, pairs: list[list[tuple[int, int]]], masks: "list[Tensor | None]"
) -> "Tensor":
    """Give the mean squared distance of paired layers; 0 where no two layers can be compared."""
    from formwright.train.losses import hidden_distance  # noqa: PLC0415  lists and help texts need no torch

    total = design.scores.new_zeros(())
    for mine, its, both, mask in zip(design.layers, anchor.layers, pairs, masks, strict=True):
        for place, other in both:
            width = min(mine[place].shape[-1], its[other].shape[-1])
            total = total + hidden_distance(mine[place][..., :width], its[other][..., :width], mask)
    return total / max(1, sum(map(len, pairs)))


def _masks(batch: "Batch") -> "list[Tensor | None]":
    """Give which tokens of each stack are real; None for all of them."""
    masks = [batch.mask] if batch.targets is None else [batch.mask, batch.targets_mask]
    return [None if mask is None else mask.bool() for mask in masks]
