"""Chains of one-operation layers in blocks of one width: the choices, and the card of a whole chain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention, Identity, SeparableConvolution
from formwright.core.errors import IllegalInput
from formwright.space import Choice, Record, Repeat

OPERATIONS = ("attention", "feed-forward", "separable-3", "separable-5", "separable-7", "identity")
REAL = OPERATIONS[:-1]  # those that do anything
HEAD = 64
_HEADS = (2, 3, 4, 6, 8)  # of the widths that blocks may have
_TABLES = (1, 2, 4, 6, 8)  # widths of the token table, in heads
_BLOCKS = 4
_LAYERS = 2  # of a chain for each of the teacher's, which has attention and a feed-forward part


@dataclass(frozen=True)
class Menu:
    """The choices for chains: widths of blocks and of the token table, and the number of layers.

    `tokens` is the rest of the embedding: vocabulary, positions and types.
    """

    widths: tuple[int, ...]
    head: int
    blocks: int
    layers: int
    embeddings: tuple[int, ...]
    tokens: TokenEmbedding

    @property
    def block(self) -> Record:
        """Return the part for one block: its width, and an operation for each layer."""
        return Record.of(hidden=Choice(self.widths), layers=Repeat(Choice(OPERATIONS), self.layers))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(sorted({*self.widths, *self.embeddings}))


@dataclass(frozen=True, order=True)
class Chain:
    """One block: its width and its operations. Identities are left out, so that equal blocks are one chain."""

    width: int
    operations: tuple[str, ...]


@cache
def candidate(operation: str, width: int, head: int = HEAD) -> Block:
    if operation == "attention":
        return Block(width, Attention(width // head, head))
    if operation == "feed-forward":
        return Block(width, Identity(), (4 * width,))
    if operation == "identity":
        return Block(width, Identity())
    return Block(width, SeparableConvolution(int(operation.removeprefix("separable-"))))


def chains(menu: Menu) -> Iterator[Chain]:
    """List every non-empty block: at each width all sequences of one to `layers` operations."""
    for width in menu.widths:
        for length in range(1, menu.layers + 1):
            yield from (Chain(width, operations) for operations in product(REAL, repeat=length))


def chain_card(menu: Menu, table: int, blocks: Sequence[Chain]) -> Card:
    """Build the card of a whole chain, whose token table has its own width."""
    width = blocks[0].width
    layers = [candidate(operation, block.width, menu.head) for block in blocks for operation in block.operations]
    embedding = replace(menu.tokens, width=width, factorised=None if table == width else table)
    return Card(encoder=Stack(embedding, tuple(layers)))


def scaled(teacher: Card) -> Menu:
    """Scale the menu to a teacher: up to four blocks, two layers for each of its own, widths up to its own.

    A teacher of 512 features or more gets the published widths. Its layers are divided evenly where a number of blocks
    from four down to two divides them, and else as evenly as four blocks allow.
    """
    embedding, layers = _readable(teacher), len(teacher.stacks[0].layers)
    blocks = next((number for number in (4, 3, 2) if layers % number == 0), min(_BLOCKS, layers))
    head = min(HEAD, teacher.output_width // max(_HEADS))
    widths, tables = (tuple(number * head for number in numbers) for numbers in (_HEADS, _TABLES))
    return Menu(widths, head, blocks, _LAYERS * -(-layers // blocks), tables, replace(embedding, factorised=None))


def boundaries(layers: int, blocks: int) -> tuple[int, ...]:
    """Return after how many of a teacher's layers each block ends, starting with 0 for the embedding."""
    return tuple(-(-number * layers // blocks) for number in range(blocks + 1))


def _readable(teacher: Card) -> TokenEmbedding:
    embedding = teacher.stacks[0].embedding
    if teacher.family != "encoder" or not isinstance(embedding, TokenEmbedding):
        raise IllegalInput(f"the teacher of chains must be an encoder of text, not a model of family {teacher.family}")
    widths = {embedding.width, *(layer.output_width for layer in teacher.stacks[0].layers)}
    if len(widths) > 1 or teacher.output_width < max(_HEADS):
        listed = ", ".join(map(str, sorted(widths)))
        raise IllegalInput(
            f"the teacher of chains must have layers of one width, at least {max(_HEADS)}; this one's have {listed}"
        )
    if embedding.positions == "sinusoidal":
        raise IllegalInput(
            "this model has sinusoidal positions, which a narrower table cannot represent; it cannot be the teacher"
        )
    return embedding
