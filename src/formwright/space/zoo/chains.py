"""Chains of one-operation layers, of one width or in blocks of one width: the choices, and the card of a chain."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, Identity, SeparableConvolution
from formwright.core.errors import IllegalInput
from formwright.space import Choice, Fields, Record, Repeat, Space

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


_CANDIDATES: dict[str, Callable[[int, int, int], Block]] = {  # by kind: of a width, a width of heads and a size
    "attention": lambda width, head, heads: Block(width, Attention(heads or width // head, head)),
    "feed-forward": lambda width, head, hidden: Block(width, Identity(), (hidden or 4 * width,)),
    "separable": lambda width, head, kernel: Block(width, SeparableConvolution(kernel)),
    "identity": lambda width, head, _: Block(width, Identity()),
}


def kind_of(operation: str) -> str:
    return operation.rstrip("0123456789").removesuffix("-")


@cache
def candidate(operation: str, width: int, head: int = HEAD) -> Block:
    """Give the layer of an operation such as `attention`, `attention-4`, `feed-forward-256`, `separable-5`, `identity`.

    The number is that of heads, the width of the feed-forward layer or the kernel; without one, heads are as many as
    fit, and the feed-forward layer is four times as wide as the model.
    """
    kind = kind_of(operation)
    return _CANDIDATES[kind](width, head, int(operation.removeprefix(kind).removeprefix("-") or 0))


def free_chain(
    name: str, about: str, operations: Sequence[str], layers: int, tokens: TokenEmbedding, head: int
) -> Space:
    """Make a space of chains of one width in which every layer has one of the operations."""

    def card(design: Fields) -> Card:
        blocks = tuple(candidate(operation, tokens.width, head) for operation in design.layers)
        return Card(encoder=Stack(tokens, blocks))

    return Space(name, Record.of(layers=Repeat(Choice(tuple(operations)), layers)), card, about)


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
