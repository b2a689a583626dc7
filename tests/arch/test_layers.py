"""Widths that follow from the parts."""

from typing import Literal

import pytest
from tests.arch.random_cards import random_cell

from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Branch, Cell, Junction, Stack
from formwright.arch.ops import Attention, Convolution, Identity
from formwright.core import codec
from formwright.core.rng import derive

DENSE = Convolution()


@pytest.mark.parametrize(
    ("image", "patch", "class_tokens", "tokens"), [(224, 16, 1, 197), (8, 2, 0, 16), (224, 16, 2, 198)]
)
def test_tokens_of_an_image(image: int, patch: int, class_tokens: int, tokens: int) -> None:
    assert PatchEmbedding(image, patch, 64, class_tokens=class_tokens).tokens == tokens
    assert PatchEmbedding(image, patch, 64).class_tokens == 1


@pytest.mark.parametrize(("combine", "width"), [("add", 32), ("multiply", 32), ("concatenate", 48)])
def test_a_junction_is_as_wide_as_what_it_joins(combine: Literal["add", "concatenate", "multiply"], width: int) -> None:
    narrow, wide = Branch(0, DENSE, 16), Branch(0, DENSE, 32)
    assert Junction(narrow, wide, combine).width == width
    assert Junction(wide, narrow, combine).width == width
    assert Junction(narrow, None, combine).width == 16


def test_widths_of_tables_cells_and_projections() -> None:
    assert TokenEmbedding(100, 64).table_width == 64
    assert TokenEmbedding(100, 64, factorised=16).table_width == 16
    first = Junction(Branch(0, DENSE, 16), Branch(0, DENSE, 32), "concatenate")
    cell = Cell(64, (first, Junction(Branch(1, DENSE, 8), Branch(0, Identity(), 64))))
    assert (cell.state_widths, cell.output_width) == ((64, 48, 64), 64)
    assert Cell(64, (first,)).output_width == 48
    layers = [Block(width, Attention(2, 8)) for width in (32, 32, 64)]
    cell = Cell(64, (Junction(Branch(0, DENSE, 16)),))
    stack = Stack(TokenEmbedding(100, 32), (*layers, cell, layers[0]))
    assert (stack.projections, stack.output_width) == (((2, 32, 64), (4, 16, 32)), 32)
    assert Stack(FrameEmbedding(40, 64), (cell,)).projections == ()
    assert Stack(FrameEmbedding(40, 64), (cell,)).output_width == 16


def test_projections_at_every_joint_and_behind_the_last_layer() -> None:
    layers = tuple(Block(width, Attention(2, 8)) for width in (32, 32, 16))
    stack = Stack(TokenEmbedding(100, 64), layers, joints="always", out=48)
    assert stack.projections == ((0, 64, 32), (1, 32, 32), (2, 32, 16), (3, 16, 48))
    assert (stack.output_width, stack.output_widths) == (48, (32, 32, 48))
    assert Stack(TokenEmbedding(100, 32), layers, out=16).projections == ((2, 32, 16),)
    assert codec.read(Stack, codec.write(stack), "stack") == stack


def test_equal_cells_are_one() -> None:
    rng, again = derive(0, "cells"), derive(0, "cells")
    for _ in range(50):
        cell, same = random_cell(rng, 32), random_cell(again, 32)
        assert cell is not same
        assert (cell, {cell: "found"}[same]) == (same, "found")
        assert codec.read(Cell, codec.write(cell), "cell") == cell
