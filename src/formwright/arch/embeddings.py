"""Embeddings: what a design reads, as tokens, patches or frames, with the tensors and products of each.

Tensors come in the order of torch's `named_parameters`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from formwright.arch.operations.base import listed, plural
from formwright.arch.tensors import STREAM, TABLE, Factor, Product, Tensor, linear, marked, norm
from formwright.core.codec import Natural, Positive, Range
from formwright.core.remember import remembers

Positions = Literal["learned", "sinusoidal", "relative", "none"]


@remembers
@dataclass(frozen=True)
class TokenEmbedding:
    """Token, position and type tables, summed and normalised.

    `relative` positions are tables inside the mixers. When `factorised` is set, the tables are that wide and a linear
    map projects them to `width`.
    """

    TYPE: ClassVar[str] = "tokens"
    PICTURE: ClassVar[str] = "table"  # how it is drawn
    PREPARED_BY: ClassVar[str] = "AutoTokenizer"  # what prepares it in Hugging Face
    INPUT: ClassVar[str] = "input_ids"  # the name of what it reads, as in Hugging Face
    POOLS_ALL: ClassVar[bool] = False  # no token stands for a row: a head reads the mean of all
    vocabulary: Positive
    width: Positive
    factorised: Positive | None = None
    positions: Positions = "learned"
    length: Positive = 512
    types: Natural = 0
    norm: bool = True

    @property
    def most_tokens(self) -> int | None:
        """Return the maximum number of tokens of a row, which is padded; None if all rows are alike."""
        return self.length

    @property
    def table_width(self) -> int:
        return self.factorised or self.width

    @property
    def table(self) -> Factor:
        """Return the columns of the tables: they are the stream, unless a map stands between them and the layers."""
        return Factor(self.table_width, TABLE if self.factorised else STREAM)

    def tensors(self) -> Iterator[Tensor]:
        return marked(self._tensors(), kind=(self.TYPE, self.vocabulary))

    def _tensors(self) -> Iterator[Tensor]:
        yield Tensor("tokens.weight", ((Factor(self.vocabulary, "vocabulary", "whole"),), (self.table,)))
        yield from _positions(self, self.length, self.table)
        if self.types:
            yield Tensor("types.weight", ((Factor(self.types),), (self.table,)))
        if self.norm:
            yield from norm("norm", self.table)
        if self.factorised:
            yield from linear("widen", (self.table,), (Factor(self.width, STREAM),))

    def tokens_of(self, length: int) -> int:
        """Return the number of tokens of a row of `length`."""
        return length

    @property
    def symbols(self) -> int:
        """Return how many different tokens it reads; 0 if it reads numbers."""
        return self.vocabulary

    def row_shape(self, length: int) -> tuple[int, ...]:
        """Return the shape of what it reads at once, in at most `length` tokens."""
        return (min(length, self.length),)

    def describe(self, *, shared: bool = False) -> tuple[str, str]:
        """Describe it and its positions in two lines; a `shared` table belongs to the encoder."""
        table = f"{self.vocabulary:,} tokens x {self.table_width}"
        types = plural(self.types, "token type") if self.types else ""
        return listed(table, "shared with the encoder" if shared else ""), listed(_named(self, self.length), types)

    def products(self, tokens: int) -> Iterator[Product]:
        if self.factorised:
            yield Product("map", (tokens, self.factorised, self.width))


@remembers
@dataclass(frozen=True)
class PatchEmbedding:
    """Square patches of a square image, each mapped to a vector, behind trained tokens.

    `class_tokens` is the number of trained tokens before the patches: none, a class token, or a class and a
    distillation token.
    """

    TYPE: ClassVar[str] = "patches"
    PICTURE: ClassVar[str] = "grid"
    PREPARED_BY: ClassVar[str] = "AutoImageProcessor"
    INPUT: ClassVar[str] = "pixel_values"
    POOLS_ALL: ClassVar[bool] = False
    symbols: ClassVar[int] = 0
    types: ClassVar[int] = 0
    most_tokens: ClassVar[int | None] = None
    image: Positive
    patch: Positive
    width: Positive
    channels: Positive = 3
    class_tokens: Annotated[int, Range(0, 2)] = 1
    positions: Positions = "learned"

    @property
    def tokens(self) -> int:
        return self.side**2 + self.class_tokens

    @property
    def side(self) -> int:
        """Return the number of patches in a row."""
        return self.image // self.patch

    def tensors(self) -> Iterator[Tensor]:
        return marked(self._tensors(), kind=(self.TYPE,))

    def _tensors(self) -> Iterator[Tensor]:
        stream, pixels = Factor(self.width, STREAM), (self.channels, self.patch, self.patch)
        if self.class_tokens:
            yield Tensor("class_token", ((Factor(self.class_tokens),), (stream,)))
        yield from linear("pixels", tuple(Factor(size, cut="whole") for size in pixels), (stream,))
        # a row of positions is a place on the grid, which moves with the grid and with the tokens before it
        yield from marked(_positions(self, self.tokens, stream), kind=(self.class_tokens, self.side))

    def tokens_of(self, length: int) -> int:
        """Return the number of tokens of an image, whatever the length of a row."""
        return self.tokens

    def row_shape(self, length: int) -> tuple[int, ...]:
        """Return the shape of an image, whatever the length of a row."""
        return (self.channels, self.image, self.image)

    def describe(self, *, shared: bool = False) -> tuple[str, str]:
        """Describe the image and its tokens in two lines."""
        size, patch = f"{self.image} x {self.image}", f"{self.patch} x {self.patch}"
        trained = ("", " with a class token", " with a class and a distillation token")[self.class_tokens]
        line = f"{size} image, {plural(self.channels, 'channel')}, patches of {patch}"
        return line, listed(f"{plural(self.tokens, 'token')}{trained}", _named(self))

    def products(self, tokens: int) -> Iterator[Product]:
        yield Product("map", (self.side**2, self.patch**2 * self.channels, self.width))


@remembers
@dataclass(frozen=True)
class FrameEmbedding:
    """Frames of numbers, such as speech features, normalised and mapped to vectors."""

    TYPE: ClassVar[str] = "frames"
    PICTURE: ClassVar[str] = "bars"
    PREPARED_BY: ClassVar[str] = "AutoFeatureExtractor"
    INPUT: ClassVar[str] = "input_features"
    POOLS_ALL: ClassVar[bool] = True
    symbols: ClassVar[int] = 0
    types: ClassVar[int] = 0
    features: Positive
    width: Positive
    positions: Positions = "learned"
    length: Positive = 512

    @property
    def most_tokens(self) -> int | None:
        """Return the maximum number of frames of a row."""
        return self.length

    def tensors(self) -> Iterator[Tensor]:
        features, stream = Factor(self.features, "features", "whole"), Factor(self.width, STREAM)
        maps = (*norm("norm", features), *linear("features", (features,), (stream,)))
        return marked((*maps, *_positions(self, self.length, stream)), kind=(self.TYPE,))

    def tokens_of(self, length: int) -> int:
        """Return the number of frames of a row of `length`."""
        return length

    def row_shape(self, length: int) -> tuple[int, ...]:
        """Return the shape of at most `length` frames."""
        return (min(length, self.length), self.features)

    def describe(self, *, shared: bool = False) -> tuple[str, str]:
        """Describe the frames and their positions in two lines."""
        return f"frames of {self.features} features", _named(self, self.length)

    def products(self, tokens: int) -> Iterator[Product]:
        yield Product("map", (tokens, self.features, self.width))


Embedding = TokenEmbedding | PatchEmbedding | FrameEmbedding


def _named(embedding: Embedding, length: int | None = None) -> str:
    """Describe the positions of an embedding."""
    if embedding.positions == "none":
        return "no positions"
    return f"{embedding.positions} positions" + (f" up to {length}" if length is not None else "")


def _positions(embedding: Embedding, rows: int, columns: Factor) -> Iterator[Tensor]:
    if embedding.positions == "learned":
        yield Tensor("positions.table", ((Factor(rows),), (columns,)))
