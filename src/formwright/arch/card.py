"""A card: the immutable, canonical description of one design, from which everything else follows."""

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from formwright.arch.check import stack_faults
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Stack
from formwright.core.codec import Natural, loads, read, text, write
from formwright.core.errors import Fault, IllegalDesign
from formwright.core.json_schema import json_schema
from formwright.core.remember import remember, remembers

Family = Literal["encoder", "decoder", "encoder-decoder", "vision"]


@remembers
@dataclass(frozen=True)
class Card:
    """One transformer design: an encoder, a decoder, or both.

    `pooler` is BERT's dense layer over the first token. `classes` is the size of a classification head that belongs to
    the design, 0 for none. `share_embedding` gives the decoder the encoder's token table. `idle` counts parameters
    that a published model allocates and never uses; they are counted, so that published sizes can be reproduced, and
    never built.
    """

    VERSION: ClassVar[int] = 1
    encoder: Stack | None = None
    decoder: Stack | None = None
    pooler: bool = False
    classes: Natural = 0
    share_embedding: bool = False
    idle: Natural = 0

    def __post_init__(self) -> None:
        faults = _faults(self)
        if faults:
            raise IllegalDesign(faults)

    @classmethod
    def from_json(cls, data: Any) -> "Card":
        """Read a card from JSON data; raise `IllegalDesign` with every fault and where it is."""
        if not isinstance(data, dict):
            what = "must be a JSON object with a schema version and an encoder or a decoder"
            raise IllegalDesign([Fault("the whole", what)])
        version = data.get("schema")
        if type(version) is not int or version < 1:
            raise IllegalDesign([Fault("schema", f"must be the version of the card schema, {cls.VERSION} today")])
        if version > cls.VERSION:
            update = f"is {version}; this formwright reads up to {cls.VERSION}. Update formwright to read this card"
            raise IllegalDesign([Fault("schema", update)])
        return read(cls, data, "card")

    @classmethod
    def loads(cls, content: str | bytes) -> "Card":
        return cls.from_json(cls.parse(content))

    @staticmethod
    def parse(content: str | bytes) -> Any:
        """Parse JSON text; raise `IllegalDesign` if it is malformed."""
        try:
            return loads(content)
        except ValueError as error:
            raise IllegalDesign([Fault("the whole", f"is not JSON that can be read: {error}")]) from None

    def to_json(self) -> dict[str, Any]:
        return write(self)  # type: ignore[no-any-return]

    @property
    @remember
    def canonical(self) -> bytes:
        """Return the unique byte string of this design: its JSON with sorted keys and no whitespace."""
        return text(self).encode()

    @property
    @remember
    def digest(self) -> str:
        return hashlib.sha256(self.canonical).hexdigest()

    @property
    def family(self) -> Family:
        if self.encoder is None:
            return "decoder"
        if self.decoder is not None:
            return "encoder-decoder"
        return "vision" if isinstance(self.encoder.embedding, PatchEmbedding) else "encoder"

    @property
    @remember
    def stacks(self) -> tuple[Stack, ...]:
        return tuple(stack for stack in (self.encoder, self.decoder) if stack is not None)

    @property
    def token_tables(self) -> tuple[TokenEmbedding, ...]:
        """Return the embeddings of tokens, of which the encoder and the decoder may have one each."""
        return tuple(stack.embedding for stack in self.stacks if isinstance(stack.embedding, TokenEmbedding))

    @property
    def output_width(self) -> int:
        """Return the width of the vectors that a task head reads."""
        return self.stacks[-1].output_width


def card_schema() -> dict[str, Any]:
    return json_schema(Card, "Formwright card")


def _faults(card: Card) -> list[Fault]:
    if card.encoder is None and card.decoder is None:
        return [Fault("the whole", "needs an encoder, a decoder, or both")]
    faults = []
    for name, stack, memory in (("encoder", card.encoder, None), ("decoder", card.decoder, card.encoder)):
        if stack is not None:
            faults += [Fault(f"{name}.{fault.where}", fault.what) for fault in stack_faults(stack, memory)]
    if card.decoder is not None and not card.decoder.causal:
        faults.append(Fault("decoder.causal", "must be true: a decoder may not look ahead"))
    if card.pooler and card.family != "encoder":
        faults.append(Fault("pooler", f"belongs to encoders; the family of this design is {card.family}"))
    tables = card.token_tables
    equal = len({(table.vocabulary, table.table_width) for table in tables}) == 1
    if card.share_embedding and not (len(tables) == 2 and equal):
        faults.append(Fault("share_embedding", "needs an encoder and a decoder with token tables of equal size"))
    return faults
