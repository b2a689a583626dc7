"""Task heads: what stands on the vectors of a design, and the tensors that it adds.

A package adds a head by an entry point in the group `formwright.heads`: a `Head`, which names the module that runs it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.tensors import POOLED, STREAM, Factor, Tensor, linear, norm
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.registry import Registry


@dataclass(frozen=True)
class HeadSpec:
    """The task of a head, which is its name, and its number of labels; one label of a sequence is a regression.

    With `multi_label` a sequence may have several of its labels, or none: those whose sigmoid is above 0.5.
    """

    task: str
    labels: int = 2
    multi_label: bool = False

    @property
    def outputs(self) -> int:
        """Return how many numbers the head gives for a sequence or a token; a span has a start and an end."""
        return self.labels if len(self.output_names) == 1 else len(self.output_names)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Return the names of its outputs in files of other runtimes, as in Hugging Face."""
        return find_head(self.task).output_names

    @property
    def has_names(self) -> bool:
        """Return whether its labels have names."""
        return find_head(self.task).has_names

    @property
    def writes(self) -> bool:
        """Return whether it writes text, one token after another."""
        return find_head(self.task).writes

    @property
    def continues(self) -> bool:
        """Return whether what it writes continues what it reads, which is then padded on the left."""
        return self.writes and "decoder" in find_head(self.task).families

    @property
    def pools(self) -> bool:
        """Return whether it reads the vector of the pooler, where a design has one."""
        return find_head(self.task).pools

    @property
    def plain_text(self) -> bool:
        """Return whether it learns from text without labels, as in pretraining, which is divided and never cut."""
        return find_head(self.task).plain_text

    @property
    def reads_table(self) -> bool:
        """Return whether it scores tokens by the token table of the design."""
        return find_head(self.task).reads_table

    def tensors(self, card: Card) -> Iterator[Tensor]:
        """Declare the tensors of the head on a design; raise if the design cannot have it."""
        check_head(card, self)
        return find_head(self.task).tensors(card, self)


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
class Head:
    """Declare a head: its tensors, the module that runs it, the families that can have it, and what `HeadSpec` tells.

    `module` is `"package.module:Class"`, which is built from (card, spec, settings). It is called with the `Output` of
    a transformer and the mask of real tokens; one that `reads_table` with hidden states (..., width) and token table.
    """

    tensors: Callable[[Card, HeadSpec], Iterator[Tensor]]
    module: str = ""  # those of this package stand in `formwright.nn.task_model`
    reads_table: bool = False
    families: tuple[str, ...] = ("encoder",)
    output_names: tuple[str, ...] = ("logits",)
    pools: bool = False
    has_names: bool = False
    writes: bool = False
    plain_text: bool = False


_OWN = {
    "sequence-classification": Head(tensors=_outputs, families=("encoder", "vision"), pools=True, has_names=True),
    "token-classification": Head(tensors=_outputs, has_names=True),
    "span-extraction": Head(tensors=_outputs, output_names=("start_logits", "end_logits")),
    "masked-lm": Head(tensors=masked_head_tensors, plain_text=True, reads_table=True),
    "causal-lm": Head(tensors=_next_token, families=("decoder",), writes=True, plain_text=True, reads_table=True),
    "seq2seq-lm": Head(tensors=_next_token, families=("encoder-decoder",), writes=True, reads_table=True),
}
HEADS: Registry[Head] = Registry("head", {}, "formwright.heads", Head)  # of other packages
OWN_HEADS = tuple(_OWN)


def find_head(name: str) -> Head:
    """Return the declaration of a head; raise `UnknownName` where there is none."""
    if name in _OWN:
        return _OWN[name]
    if name not in HEADS.names():
        raise UnknownName("head", name, [*_OWN, *(one for one in HEADS.names() if one not in _OWN)])
    found = HEADS.get(name)
    if ":" not in found.module:
        raise IllegalInput(
            f"the head {name!r} of another package names no module that runs it: give its Head the field module, such "
            f"as 'package.module:Class', not {found.module!r}"
        )
    return found


def check_head(card: Card, spec: HeadSpec) -> None:
    """Raise if the design cannot have this head."""
    families = find_head(spec.task).families
    if card.family not in families:
        fits = " or ".join(families)
        raise IllegalInput(f"{spec.task} needs a design of family {fits}; this card is of family {card.family}")
    if spec.labels < 1:
        raise IllegalInput(f"a head needs at least one label, not {spec.labels}")
