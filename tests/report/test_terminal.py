"""Text drawings: they fit the terminal, show widths as widths, and say how often a layer stands there."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.report import cards

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.report.terminal import draw_text

BERT = """\
encoder, 12 layers, 768 wide

  ╭─────────────────────────────╮   Embedding
  │ ░░░░░░░░░░░░░░░░░░░░░░░░░░░ │   30,522 tokens x 768
  │                             │   learned positions up to 512, 2 token types
  ╰──────────────┬──────────────╯
  ╭──────────────┴──────────────╮   Layers 1\N{EN DASH}12 x 12, 768 wide
  │   ● ● ● ● ● ● ● ● ● ● ● ●   │╮  ● 12 heads x 64, scaled dot product
  │ ━━━━━━━━━━━━━━━━━━━━━━━━━━━ ││  feed-forward 3072, gelu
  ╰─────────────────────────────╯│
   ╰─────────────┬───────────────╯
  ╭──────────────┴──────────────╮   Head
  │ ░░░░░░░░░░░░░░░░░░░░░░░░░░░ │   pooler, 768 to 768
  ╰──────────────┬──────────────╯

   ●  self-attention
"""
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def flat(drawing: str) -> str:
    """Join the words of a drawing, whatever the shapes and line breaks between them."""
    return " ".join(re.sub(r"[│╮╯╰╭─┬┴●○≈▲△◆■◇ƒ·━░╌]", " ", drawing).split())


def box_widths(drawing: str) -> list[int]:
    """List the widths of the boxes from top to bottom."""
    return [len(match) for match in re.findall(r"╭[─┴]+╮", drawing)]


def test_bert_base_is_a_picture() -> None:
    assert draw_text(cards.bert_base()) == BERT


@pytest.mark.parametrize("name", cards.CARDS)
@pytest.mark.parametrize("columns", [20, 48, 80, 100, 133])
def test_no_line_is_longer_than_the_terminal_is_wide(name: str, columns: int) -> None:
    lines = draw_text(cards.CARDS[name], columns=columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert all(line == line.rstrip() for line in lines)


@given(cards.any_cards(), st.integers(1, 160))
@settings(max_examples=40)
def test_any_design_fits_any_terminal(card: Card, columns: int) -> None:
    assert max(map(len, draw_text(card, columns=columns).splitlines())) <= columns


@pytest.mark.parametrize("name", cards.MIXERS)
def test_every_mixer_is_described(name: str) -> None:
    drawing = draw_text(cards.mixer_card(cards.MIXERS[name]), columns=120)
    assert flat(cards.MIXERS[name].describe()) in flat(drawing)


def test_boxes_are_as_wide_as_layers() -> None:
    widths = (1024, 512, 768, 256)
    card = cards.text_encoder(tuple(Block(width, Attention(2, 64), (512,)) for width in widths))
    embedding, *boxes = box_widths(draw_text(card))
    assert embedding == boxes[0]
    assert sorted(boxes, reverse=True) == [boxes[0], boxes[2], boxes[1], boxes[3]]
    for width, box in zip(widths, boxes, strict=True):
        assert abs(box - boxes[0] * width / 1024) <= 1.5  # boxes are an odd number of characters


@pytest.mark.parametrize(
    ("card", "boxes", "folded"),
    [
        (cards.flexibert_mini(), 4, ("1-2 x 2, 256 wide", "3-4 x 2, 128 wide")),
        (cards.speech(), 3, ("1-12, this pattern x 6",)),
        (cards.deep(96), 5, ("1-24 x 24", "25-48, this pattern x 12", "49-96 x 48")),
    ],
)
def test_equal_layers_and_patterns_are_folded(card: Card, boxes: int, folded: tuple[str, ...]) -> None:
    drawing = draw_text(card)
    for words in folded:
        assert f"Layers {words}" in flat(drawing).replace("\N{EN DASH}", "-")
    assert len(box_widths(drawing)) == boxes, "with those of the embedding and the head"
    assert len(drawing.splitlines()) < 50


def test_a_deep_design_without_pattern_takes_a_line_a_layer() -> None:
    lines = draw_text(cards.uneven(96)).splitlines()
    assert 96 < len(lines) < 110
    numbered = [int(match[1]) for line in lines if (match := re.search(r"│   +(\d+) +\d+  \S ", line))]
    assert numbered == list(range(1, 97))


def test_stacks_cells_and_heads_are_described() -> None:
    drawing = draw_text(cards.encoder_decoder())
    lines = drawing.splitlines()
    assert lines.index("Encoder") < lines.index("Decoder")
    assert "cross-attention to the last 3 encoder layers, 4 heads x 64" in flat(drawing)
    drawing = flat(draw_text(cards.evolved()))
    assert "1: [0] norm, gated linear unit, to 512 | add | [0] identity" in drawing
    assert "5: [4] norm, dense, to 2048, relu" in drawing
    assert "6: [5] dense, to 512 | add | [4] identity" in drawing
    assert "tokens x 512, shared with the encoder" in drawing
    drawing = draw_text(cards.vision())
    assert "▦▦▦" in drawing
    assert "norm" in [line.split()[-1] for line in drawing.splitlines() if line]
    assert "classifier, 1,000 classes" in drawing
    drawing = draw_text(cards.flexibert_mini())
    (line,) = [line for line in drawing.splitlines() if "256 → 128" in line]
    assert line.split()[:3] == ["╲", "│", "\N{BOX DRAWINGS LIGHT DIAGONAL UPPER RIGHT TO LOWER LEFT}"]
    assert "projection 128 → 512" in draw_text(cards.decoder())  # the factorised table
    assert draw_text(cards.flexibert_mini()).splitlines()[-1] == "   ●  self-attention   ≈  Fourier or cosine transform"


@pytest.mark.parametrize("name", cards.CARDS)
def test_colour_only_adds_colour(name: str) -> None:
    coloured = draw_text(cards.CARDS[name], colour=True)
    assert "\x1b[" in coloured
    stripped = [line.rstrip() for line in ESCAPE.sub("", coloured).splitlines()]
    assert stripped == draw_text(cards.CARDS[name]).splitlines()
