"""Operations and designs to count: each operation in several forms, each kind of design at least once."""

from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Branch, Cell, Junction, Stack
from formwright.arch.ops import (
    Attention,
    Convolution,
    CrossAttention,
    DynamicConvolution,
    GatedLinearUnit,
    Identity,
    LightweightConvolution,
    Mixer,
    Operation,
    OpGraph,
    Relative,
    RelativeAttention,
    SeparableConvolution,
    Transform,
)

_SHARED = ("matmul", ("softmax", ("matmul", "Q", ("transpose", "K"))), "V")
OPERATIONS: tuple[Operation, ...] = (
    Attention(2, 8),
    Attention(3, 8, "wma"),
    Attention(2, 16, bias=False),
    Attention(4, 8, relative=Relative(9)),
    Attention(4, 8, "wma", Relative(9, axes=2, values=True), bias=False),
    Attention(4, 8, relative=Relative(9, axes=2)),
    CrossAttention(2, 8),
    CrossAttention(3, 16, layers=3, bias=False),
    Transform("dft"),
    Transform("dct"),
    Transform("dft", RelativeAttention(2, 24, 9)),
    Transform("dct", RelativeAttention(4, 12, 31)),
    DynamicConvolution(5, 2, 8),
    DynamicConvolution(9, 4, 8, Relative(13)),
    SeparableConvolution(3),
    SeparableConvolution(7, stacked=1),
    SeparableConvolution(5, stacked=3),
    LightweightConvolution(7, 4),
    LightweightConvolution(15, 8, gated=False),
    Convolution(),
    Convolution(3),
    GatedLinearUnit(),
    OpGraph(2, 8, ("add", "Q", "K")),
    OpGraph(2, 8, _SHARED),
    OpGraph(3, 4, ("add", _SHARED, ("neg", _SHARED))),
    OpGraph(4, 16, ("matmul", ("add", ("cosine", "Q", "P"), ("euclidean", "K", "V")), "V")),
    OpGraph(2, 8, ("matmul", "Q", ("matmul", ("transpose", "K"), "V"))),
    Identity(),
)


def _block(width: int, mixer: Mixer, *feed_forward: int, cross: CrossAttention | None = None) -> Block:
    return Block(width, mixer, feed_forward, cross=cross)


_MIXED = (
    _block(48, Attention(3, 8, "wma", Relative(9)), 96, 64, 96),
    _block(48, Transform("dct", RelativeAttention(2, 24, 9)), 64),
    _block(32, DynamicConvolution(5, 2, 8, Relative(9))),
    _block(64, Identity(), 128),
    _block(64, Identity()),
    _block(64, SeparableConvolution(3), 32),
    _block(64, LightweightConvolution(5, 4), 32),
    _block(24, OpGraph(2, 8, _SHARED), 48),
)
_CELL = Cell(
    32,
    (
        Junction(Branch(0, GatedLinearUnit(), 32, norm=True), Branch(0, Identity(), 32)),
        Junction(Branch(1, Convolution(3), 16, norm=True), Branch(1, SeparableConvolution(5, 1), 64, norm=True)),
        Junction(Branch(2, Attention(2, 8), 48, norm=True), Branch(1, Convolution(), 16, norm=True), "concatenate"),
        Junction(Branch(3, LightweightConvolution(3, 8, gated=False), 64, activation="relu")),
        Junction(Branch(4, Identity(), 64), Branch(0, SeparableConvolution(3), 40), "multiply"),
    ),
)
_READING_CELL = Cell(
    32,
    (
        Junction(Branch(0, CrossAttention(2, 8), 24, norm=True), Branch(0, Attention(2, 8, bias=False), 40, norm=True)),
        Junction(Branch(1, CrossAttention(4, 4, bias=False), 56)),
    ),
)
_PATCHES = PatchEmbedding(24, 8, 32)
_IMAGE_LAYERS = (Block(32, Attention(2, 16, relative=Relative(5, axes=2, values=True)), (64,), norm="pre"),) * 2
_WIDE = TokenEmbedding(100, 48, factorised=16, positions="sinusoidal", norm=False)
_NARROW = TokenEmbedding(100, 32, factorised=16, length=20)
_DECODER = (
    _block(32, Attention(2, 8), 64, cross=CrossAttention(2, 8)),
    _block(40, Attention(2, 8), cross=CrossAttention(3, 16, layers=2, bias=False)),
)
_ENCODER = (_block(48, Attention(2, 8), 96),) * 2

CARDS: dict[str, Card] = {
    "plain": Card(Stack(TokenEmbedding(100, 48, types=2), _ENCODER), pooler=True),
    "one norm more": Card(Stack(TokenEmbedding(100, 48, length=20), _ENCODER, final_norm=True)),
    "mixed": Card(Stack(TokenEmbedding(99, 48, None, "relative", types=1), _MIXED), pooler=True, classes=3, idle=1_234),
    "factorised": Card(Stack(TokenEmbedding(100, 48, factorised=12, length=30, types=2), _ENCODER), classes=5),
    "patches": Card(Stack(_PATCHES, _IMAGE_LAYERS, final_norm=True), classes=10),
    "distilled patches": Card(Stack(PatchEmbedding(24, 8, 32, class_tokens=2), _IMAGE_LAYERS), classes=10),
    "bare patches": Card(
        Stack(PatchEmbedding(24, 6, 32, channels=1, class_tokens=0, positions="relative"), _IMAGE_LAYERS)
    ),
    "frames": Card(Stack(FrameEmbedding(20, 48, length=30), _ENCODER)),
    "frames without positions": Card(Stack(FrameEmbedding(20, 48, positions="none"), _ENCODER), classes=7),
    "decoder": Card(decoder=Stack(TokenEmbedding(100, 48), _ENCODER, causal=True)),
    "cells": Card(Stack(TokenEmbedding(100, 32, norm=False), (_CELL, _CELL), final_norm=True)),
    "translation": Card(Stack(_WIDE, _ENCODER), Stack(_NARROW, _DECODER, causal=True)),
    "shared table": Card(Stack(_WIDE, _ENCODER), Stack(_NARROW, _DECODER, causal=True), share_embedding=True),
    "image captions": Card(Stack(_PATCHES, _IMAGE_LAYERS), Stack(_NARROW, _DECODER, causal=True)),
    "translation by cells": Card(
        Stack(TokenEmbedding(100, 32), (_CELL,) * 2), Stack(TokenEmbedding(100, 32), (_READING_CELL,) * 2, causal=True)
    ),
}
