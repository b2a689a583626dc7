from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.cards import MIXERS, bert_base, decoder, encoder_decoder, flexibert_mini, text_encoder, vision

from formwright.arch import ops
from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Branch, Cell, Junction, Stack
from formwright.report.words import (
    brief,
    describe_branch,
    describe_feed_forward,
    describe_head,
    describe_layer,
    heading,
    headline,
    shortened,
    wrapped,
)


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (ops.Attention(4, 64, relative=ops.Relative(9)), "4 heads x 64, scaled dot product, relative"),
        (ops.Attention(1, 8, "wma", bias=False), "1 head x 8, weighted multiplicative, no bias"),
        (
            ops.Attention(3, 64, relative=ops.Relative(14, 2, True)),
            "3 heads x 64, scaled dot product, relative in 2 axes for keys and values",
        ),
        (ops.CrossAttention(8, 64), "cross-attention to the last encoder layer, 8 heads x 64"),
        (
            ops.CrossAttention(8, 64, 3, bias=False),
            "cross-attention to the last 3 encoder layers, 8 heads x 64, no bias",
        ),
        (ops.Transform("dft"), "Fourier transform"),
        (ops.Transform("dct", ops.RelativeAttention(4, 32, 9)), "cosine transform + relative attention, 4 heads x 32"),
        (ops.DynamicConvolution(9, 4, 32), "dynamic convolution, kernel 9, 4 heads x 32"),
        (ops.SeparableConvolution(7, 1), "separable convolution, kernel 7"),
        (ops.SeparableConvolution(7), "separable convolution, kernel 7, twice"),
        (ops.SeparableConvolution(7, 3), "separable convolution, kernel 7, 3 times"),
        (ops.LightweightConvolution(15, 8), "lightweight convolution, kernel 15, 8 heads, gated"),
        (ops.LightweightConvolution(15, 1, gated=False), "lightweight convolution, kernel 15, 1 head"),
        (ops.Convolution(1), "dense"),
        (ops.Convolution(3), "convolution, kernel 3"),
        (ops.GatedLinearUnit(), "gated linear unit"),
        (MIXERS["op-graph"], "4 heads x 64, softmax(Q·softplus(Kᵀ) / √d)·(K + Q)"),
        (ops.Identity(), "identity"),
    ],
)
def test_every_operation_has_words(operation: ops.Operation, words: str) -> None:
    assert operation.describe() == words


def test_layers_cells_and_branches_say_what_they_do() -> None:
    block = Block(256, ops.Attention(4, 64), (512, 1024), "relu", "pre", ops.CrossAttention(4, 64))
    assert describe_feed_forward(block) == "feed-forward 512, 1024, relu"
    assert describe_feed_forward(replace(block, feed_forward=())) == ""
    assert describe_layer(block) == "256 wide, norm first"
    assert describe_layer(replace(block, norm="post")) == "256 wide"
    assert brief(block) == "512, 1024, cross-attention, 4 heads x 64, scaled dot product"
    left, right = Branch(0, ops.Convolution(3), 256), Branch(0, ops.Identity(), 128)
    cell = Cell(128, (Junction(left, right, "concatenate"),))
    assert describe_layer(cell) == "128 to 384 wide, cell"
    assert brief(cell) == "cell of 1 junction"
    assert describe_branch(Branch(2, ops.Convolution(1), 64, True, "swish")) == "[2] norm, dense, to 64, swish"
    assert describe_branch(Branch(0, ops.Identity(), 64)) == "[0] identity"
    assert describe_branch(Branch(1, ops.Attention(4, 16), 64)).startswith("[1] self-attention, 4 heads x 16")


def test_embeddings_say_what_enters() -> None:
    table = TokenEmbedding(30522, 768, factorised=128, types=2)
    assert table.describe() == ("30,522 tokens x 128", "learned positions up to 512, 2 token types")
    assert table.describe(shared=True)[0] == "30,522 tokens x 128, shared with the encoder"
    patches = PatchEmbedding(224, 16, 192)
    assert patches.describe() == (
        "224 x 224 image, 3 channels, patches of 16 x 16",
        "197 tokens with a class token, learned positions",
    )
    assert replace(patches, class_tokens=0).describe()[1] == "196 tokens, learned positions"
    distilled = "198 tokens with a class and a distillation token, learned positions"
    assert replace(patches, class_tokens=2).describe()[1] == distilled
    frames = FrameEmbedding(80, 256, "none")
    assert frames.describe() == ("frames of 80 features", "no positions")


def test_designs_and_their_heads_are_summed_up() -> None:
    assert headline(bert_base()) == "encoder, 12 layers, 768 wide"
    assert headline(flexibert_mini()) == "encoder, 4 layers, 128 to 256 wide"
    assert headline(encoder_decoder()) == "encoder-decoder, 6 + 4 layers, 512 to 640 wide"
    one = text_encoder((Block(64, ops.Attention(1, 64)),))
    assert headline(replace(one, idle=1500)) == "encoder, 1 layer, 64 wide, 1,500 idle parameters"
    causal = Stack(TokenEmbedding(10, 64), one.stacks[0].layers, causal=True)
    assert headline(Card(encoder=causal)) == "encoder, causal, 1 layer, 64 wide"
    assert describe_head(bert_base()) == ("pooler, 768 to 768",)
    assert describe_head(vision()) == ("classifier, 1,000 classes",)
    assert describe_head(decoder()) == ()
    assert heading(3, 3) == "Layer 3"
    assert heading(1, 12) == "Layers 1\N{EN DASH}12"
    assert ops.Attention(12, 64).head_count == 12
    assert ops.LightweightConvolution(7, 4).head_count == 4
    assert ops.Transform("dct", ops.RelativeAttention(4, 32, 9)).head_count == 4
    assert ops.Transform("dct").head_count == ops.Identity().head_count == ops.SeparableConvolution(3).head_count == 1


def test_lines_break_where_a_reader_would_break_them() -> None:
    words = "dynamic convolution, kernel 9, 4 heads x 32"
    assert wrapped(words, 36) == ["dynamic convolution, kernel 9,", "4 heads x 32"]
    assert wrapped(words, 28) == ["dynamic convolution,", "kernel 9, 4 heads x 32"]
    words = "4 heads x 64, softmax(Q / √d)·(K + Q)"
    assert wrapped(words, 30, indent=2) == ["4 heads x 64,", "  softmax(Q / √d)·(K + Q)"]
    assert wrapped(words, 18) == ["4 heads x 64,", "softmax(Q / √d)·(K", "+ Q)"]
    words = "4 heads x 16, euclidean(Q, K)·K - (K + Q + Q)"
    assert wrapped(words, 36, indent=4) == ["4 heads x 16,", "    euclidean(Q, K)·K - (K + Q + Q)"]
    words = "softsign(euclidean(softmax(P),K))·cosine(Q,softmax(K))"
    assert wrapped(words, 20, indent=2) == ["softsign(euclidean(", "  softmax(P),K))·", "  cosine(Q,softmax(", "  K))"]
    assert wrapped("unbreakable", 4) == ["unbr", "eaka", "ble"]
    assert wrapped("one two three four", 5, most=2) == ["one", "two …"]
    assert wrapped("", 5) == []


@given(st.text("ab x12+/, (·", max_size=80), st.integers(4, 40))
def test_lines_fit(words: str, letters: int) -> None:
    assert all(len(line) <= letters for line in wrapped(words, letters, indent=2))


@given(st.text(max_size=20), st.integers(0, 25))
def test_shortened_words_fit_and_show_the_cut(words: str, letters: int) -> None:
    cut = shortened(words, letters)
    assert len(cut) <= letters
    if len(words) <= letters:
        assert cut == words
    elif letters:
        assert cut == words[: letters - 1] + "…"
