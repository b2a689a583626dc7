"""Task heads: what stands on the vectors of a design, and the tensors that it adds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.tensors import POOLED, STREAM, Factor, Tensor, linear, norm
from formwright.core.errors import IllegalInput

Task = Literal[
    "sequence-classification", "token-classification", "span-extraction", "masked-lm", "causal-lm", "seq2seq-lm"
]


@dataclass(frozen=True)
class HeadSpec:
    """The task of a head and its number of labels; one label of a sequence is a regression.

    With `multi_label` a sequence may have several of its labels, or none: those whose sigmoid is above 0.5.
    """

    task: Task
    labels: int = 2
    multi_label: bool = False

    @property
    def outputs(self) -> int:
        """Return how many numbers the head gives for a sequence or a token; a span has a start and an end."""
        return self.labels if len(self.output_names) == 1 else len(self.output_names)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Return the names of its outputs in files of other runtimes, as in Hugging Face."""
        return _HEADS[self.task].output_names

    @property
    def has_names(self) -> bool:
        """Return whether its labels have names."""
        return _HEADS[self.task].has_names

    @property
    def writes(self) -> bool:
        """Return whether it writes text, one token after another."""
        return _HEADS[self.task].writes

    @property
    def continues(self) -> bool:
        """Return whether what it writes continues what it reads, which is then padded on the left."""
        return self.writes and "decoder" in _HEADS[self.task].families

    @property
    def pools(self) -> bool:
        """Return whether it reads the vector of the pooler, where a design has one."""
        return _HEADS[self.task].pools

    @property
    def plain_text(self) -> bool:
        """Return whether it learns from text without labels, as in pretraining, which is divided and never cut."""
        return _HEADS[self.task].plain_text

    def tensors(self, card: Card) -> Iterator[Tensor]:
        """Declare the tensors of the head on a design; raise if the design cannot have it."""
        check_head(card, self)
        return _HEADS[self.task].tensors(card, self)


def token_table(card: Card) -> TokenEmbedding:
    """Return the token embedding that a language-model head shares; raise if there is none."""
    table = card.stacks[-1].embedding
    if not isinstance(table, TokenEmbedding):
        raise IllegalInput(f"a language-model head needs token tables; this {card.family} design embeds {table.TYPE}")
    return table


def _outputs(card: Card, spec: HeadSpec) -> Iterator[Tensor]:
    pooled = card.pooler and spec.pools
    read = Factor(card.output_width, POOLED if pooled else STREAM)
    return linear("output", (read,), (Factor(spec.outputs, "labels", "whole"),))


def masked_head_tensors(card: Card, _: HeadSpec | None = None) -> Iterator[Tensor]:
    """Declare BERT's masked-language-model head; raise if the design has no token table."""
    embedding = token_table(card)  # what leaves the dense layer meets the columns of the token table
    vocabulary = Factor(embedding.vocabulary, "vocabulary", "whole")
    yield Tensor("bias", ((vocabulary,),), kind=(embedding.TYPE, embedding.vocabulary))
    yield from linear("dense", (Factor(card.output_width, STREAM),), (embedding.table,))
    yield from norm("norm", embedding.table)


def _next_token(card: Card, _: HeadSpec) -> Iterator[Tensor]:
    table = token_table(card).table
    if card.output_width != table.size:
        yield from linear("narrow", (Factor(card.output_width, STREAM),), (table,), bias=False)


@dataclass(frozen=True, kw_only=True)
class _Head:
    """What is known of a head: its tensors, the families that can have it, and the properties of `HeadSpec`."""

    tensors: Callable[[Card, HeadSpec], Iterator[Tensor]]
    families: tuple[str, ...] = ("encoder",)
    output_names: tuple[str, ...] = ("logits",)
    pools: bool = False
    has_names: bool = False
    writes: bool = False
    plain_text: bool = False


_HEADS = {
    "sequence-classification": _Head(tensors=_outputs, families=("encoder", "vision"), pools=True, has_names=True),
    "token-classification": _Head(tensors=_outputs, has_names=True),
    "span-extraction": _Head(tensors=_outputs, output_names=("start_logits", "end_logits")),
    "masked-lm": _Head(tensors=masked_head_tensors, plain_text=True),
    "causal-lm": _Head(tensors=_next_token, families=("decoder",), writes=True, plain_text=True),
    "seq2seq-lm": _Head(tensors=_next_token, families=("encoder-decoder",), writes=True),
}


def check_head(card: Card, spec: HeadSpec) -> None:
    """Raise if the design cannot have this head."""
    families = _HEADS[spec.task].families
    if card.family not in families:
        fits = " or ".join(families)
        raise IllegalInput(f"{spec.task} needs a design of family {fits}; this card is of family {card.family}")
    if spec.labels < 1:
        raise IllegalInput(f"a head needs at least one label, not {spec.labels}")
