"""A super-network: one set of weights, out of which every sub-network reads its own."""

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, cast

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.build import kept_skeleton
from formwright.nn.deploy.interface import NamedInputsModel, random_inputs
from formwright.nn.inherit import PLAIN, InheritedWeights, Reading, run
from formwright.nn.operations.attention import ExposesAttentionMaps, KeepMaps
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Output, Transformer
from formwright.supernet.importance import Importance, reordered
from formwright.supernet.lessons import Answer, DesignOutput, StepAnswers
from formwright.supernet.library import LibraryWeights, extracted, views_of
from formwright.supernet.rules import Draw, SplitBatch
from formwright.train.loop import inputs_of
from formwright.train.streams import Batch, Stream


class SuperNetwork(nn.Module):
    """Show every batch to the sub-networks that a rule draws, and to the teacher, if any, once.

    The draw depends on the step, on the place of the batch in it, and on torch's generator at its first batch alone,
    which the training loop seeds for every step: so a run that was interrupted draws what it would have drawn. The
    teacher's weights are not changed, but go wherever the network goes.
    """

    frozen: TaskModel | LibraryWeights  # what the network was when a second stage began, if it has one
    anchor: Tensor  # which design is the anchor, where a lesson has one

    def __init__(
        self, model: TaskModel | LibraryWeights, draw: Draw, teacher: nn.Module | None = None, reading: Reading = PLAIN
    ) -> None:
        super().__init__()
        self.model = model
        self.reading = reading  # which layers and channels a smaller design has
        self.step = 0  # that of the batch shown last, and its place in the step: `StepTrackingStream` sets both
        self.part = 0
        self.planned: int | None = None  # the equivalent step of the original plan, where there is a plan
        self.rule_follows_plan = False  # whether the rule is given that step
        self.signals: frozenset[str] = frozenset()  # what lessons read in addition to scores
        self.draw = 0  # what decided the designs of the batch
        self._first_draw = 0  # and those of the first batch of the step
        self._draw = draw
        self.step_cards: list[Card] = []  # the designs of the step
        # in a tuple: its weights are not the network's to learn or to save
        self._teacher = () if teacher is None else (teacher.eval(),)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """Move the teacher along: torch does not see it in its tuple."""
        for teacher in self._teacher:
            teacher._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call, no-any-return]

    @property
    def teacher_card(self) -> Card | None:
        """Give the design of the teacher, where there is one and it is known."""
        found = [one.transformer.card for one in self._teacher if isinstance(one, TaskModel)]
        return found[0] if found else None

    @property
    def planned_step(self) -> int:
        """Give the step of the original plan that the present step is equivalent to."""
        return self.step if self.planned is None else self.planned

    @property
    def rule_step(self) -> int:
        """Give the step by which the rule draws the designs."""
        return self.planned_step if self.rule_follows_plan else self.step

    def add_hidden_map(self, to: int, width: int) -> str:
        """Add a linear map from hidden states to a teacher's, which is trained along, and give its name."""
        others = sum(name.startswith("hidden_map") for name, _ in self.named_parameters(recurse=False))
        name = f"hidden_map_{others}" if others else "hidden_map"
        self.register_parameter(name, nn.Parameter(torch.eye(to, width)))
        return name

    def source_layers(self, card: Card) -> list[list[int]]:
        """Say, for each stack of a design, which layers of the super-network its layers are read from."""
        whole = self.model.transformer.card if isinstance(self.model, TaskModel) else card
        found = []
        for stack, given in zip(card.stacks, whole.stacks, strict=True):
            many = len(stack.layers)
            even = self.reading.depth == "even" and many < len(given.layers)
            found.append([place * len(given.layers) // many if even else place for place in range(many)])
        return found

    def cards(self) -> list[Card]:
        """Draw the designs of a batch; those of later batches of a step do not depend on what the first one did."""
        if self.part == 0:
            self._first_draw = self.draw = int(torch.randint(1 << 62, (1,)))
        else:
            self.draw = int(derive(self._first_draw, "part", self.part).integers(1 << 62))
        return self.drawn(self.draw, self.rule_step)

    def drawn(self, draw: int, step: int) -> list[Card]:
        """Give the designs of a step of the rule again."""
        return self._draw(derive(draw, "sandwich"), step)

    def forward(self, *inputs: Any) -> StepAnswers:
        """Draw the designs of a step; they answer when the lesson asks them, one after another."""
        self.step_cards = self.cards()
        if isinstance(self.step_cards, SplitBatch):
            self.step_cards = SplitBatch(self.step_cards[: len(inputs[0])])  # no more than there are rows
        return StepAnswers(len(self.step_cards), self._shown)

    def taught_by_frozen(self, largest: Card) -> StepAnswers:
        """Let the designs of the step answer again, with the largest one of the first stage for a teacher."""

        def shown(batch: Batch) -> Iterator[DesignOutput]:
            return self._shown(batch, lambda rows: self.answer_now(largest, rows, self.frozen))

        return StepAnswers(len(self.step_cards), shown)

    def _shown(self, batch: Batch, teach: Callable[[Batch], Answer] | None = None) -> Iterator[DesignOutput]:
        for teacher in self._teacher if teach is None else ():
            teach = partial(self._taught, teacher)
        shares = len(self.step_cards) if isinstance(self.step_cards, SplitBatch) else 1
        wanted = None
        for place, card in enumerate(self.step_cards):
            rows = batch.share(place % shares, shares)
            if teach is not None and place in range(shares):
                wanted = teach(rows)
            part = kept_skeleton(card, self.model.settings, self.model.spec).train(self.training)
            yield DesignOutput(
                forward_with_signals(part, self.signals, partial(run, part, self.views(card)), rows), wanted, rows
            )

    @torch.no_grad()
    def _taught(self, teacher: nn.Module, rows: Batch) -> Answer:
        return forward_with_signals(teacher, self.signals, teacher, rows)

    @torch.no_grad()
    def answer_now(self, card: Card, rows: Batch, model: TaskModel | LibraryWeights | None = None) -> Answer:
        """Give the answer of a design with its current weights, without dropout and gradients."""
        model = model or self.model
        part = kept_skeleton(card, model.settings, model.spec).eval()
        return forward_with_signals(part, self.signals, partial(run, part, views_of(model, card, self.reading)), rows)

    def answer(self, card: Card, *inputs: Any) -> Tensor:
        part = kept_skeleton(card, self.model.settings, self.model.spec).train(self.training)
        scores: Tensor = run(part, self.views(card), *inputs)
        return scores

    def views(self, card: Card) -> InheritedWeights:
        """Give the weights of a sub-network, through which gradients flow."""
        return views_of(self.model, card, self.reading)

    def extracted(self, card: Card) -> TaskModel:
        """Give a sub-network as a model of its own, with weights of its own."""
        return extracted(self.model, card, self.reading)


def forward_with_signals(model: nn.Module, signals: frozenset[str], call: Callable[..., Tensor], rows: Batch) -> Answer:
    """Run a model, and keep the signals that are asked for on the way."""
    layers: list[tuple[Tensor, ...]] = []
    maps: list[Tensor] = []
    hooks = []
    if "maps" in signals:  # first: it may refuse the model, and must leave no hook behind then
        hooks.extend(_watch_last_attention(cast(TaskModel, model).transformer, lambda *found: maps.extend(found)))
    if "layers" in signals:
        body = cast(TaskModel, model).transformer
        hooks.append(body.register_forward_hook(lambda _, __, output: layers.extend(_layers_by_stack(output))))
    try:
        scores = call(*inputs_of(rows))
    finally:
        for hook in hooks:
            hook.remove()
    return Answer(scores, tuple(layers), tuple(maps))


def _layers_by_stack(output: Output) -> tuple[tuple[Tensor, ...], ...]:
    return (output.memory, output.layers) if output.memory else (output.layers,)


def _watch_last_attention(body: Transformer, keep: KeepMaps) -> list[RemovableHandle]:
    """Watch the queries, keys and values of a model's last attention; raise `IllegalInput` if none exposes them."""
    for module in reversed(list(body.last_stack.modules())):
        if isinstance(module, ExposesAttentionMaps) and (hooks := module.hook_attention_maps(keep)):
            return hooks
    raise IllegalInput(
        "a design has no attention with queries, keys and values, whose relations are to be learned: leave such "
        "designs out of the space, or choose another lesson"
    )


def check_maps(cards: Iterable[Card]) -> None:
    """Raise `IllegalInput` if one of these designs has no attention that exposes its queries, keys and values."""
    for card in cards:
        for hook in _watch_last_attention(cast(Transformer, kept_skeleton(card, None, None)), lambda *_: None):
            hook.remove()


def map_channels(card: Card) -> int:
    """Count the channels of the queries of a design's last attention; raise `IllegalInput` where it has none."""
    body, found = cast(Transformer, kept_skeleton(card, None, None)), list[int]()
    hooks = _watch_last_attention(body, lambda query, *_: found.append(query.shape[-1]))
    try:
        inputs = random_inputs(card, 1, 2, torch.Generator().manual_seed(0))
        NamedInputsModel(body.eval())(**{name: one.to("meta") for name, one in inputs.items()})
    finally:
        for hook in hooks:
            hook.remove()
    return found[0]


def copy_of_teacher(
    known: TaskModel, importance: Importance | None = None, *, whole_embedding: bool = False
) -> TaskModel:
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
class StepTrackingStream:
    """Batches that tell a network which step they belong to, where a step has `parts` batches."""

    stream: Stream
    network: SuperNetwork
    parts: int = 1

    def batch(self, step: int) -> Batch:
        """Give a batch, and note its step and its place in it."""
        self.network.step, self.network.part = divmod(step, self.parts)
        return self.stream.batch(step)
