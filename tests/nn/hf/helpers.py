"""Models whose every weight matters, and small designs of every family."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from formwright.arch import ops
from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Branch, Cell, Junction, Stack
from formwright.nn.build import build
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer

VOCABULARY = 50
SIDE = 8  # of an image


@torch.no_grad()
def enliven(model: nn.Module, seed: int = 0) -> None:
    """Give a model weights under which every tensor changes the output visibly.

    With a model's usual small weights a wrongly ordered attention changes the output by less than 1e-5, so comparing
    outputs would prove nothing.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        if weight.dim() == 1 or "class_token" in name or "cls_token" in name:
            weight.normal_(1.0 if name.endswith("weight") else 0.0, 0.2, generator=generator)
        elif "embedding" in name:
            weight.normal_(0.0, 1.0, generator=generator)
        else:
            weight.normal_(0.0, 1.5 * weight.flatten(1).shape[1] ** -0.5, generator=generator)
    model.eval()


@contextmanager
def broken(weight: Tensor) -> Iterator[None]:
    """Put the rows of a weight, or the numbers of a single row, in reverse order for a while."""
    kept = weight.detach().clone()
    with torch.no_grad():
        weight.copy_(kept.flip(0 if len(kept) > 1 else -1))
        yield
        weight.copy_(kept)


def tokens(seed: int = 0, lengths: tuple[int, ...] = (9, 5, 1), padding: int = 1) -> tuple[Tensor, Tensor]:
    """Draw sentences of several lengths, padded on the right, and their mask."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    mask = (torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]).long()
    return ids.masked_fill(mask == 0, padding), mask


def images(seed: int = 0) -> Tensor:
    """Draw a few images."""
    return torch.randn(2, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(seed))


def _bert(pooler: bool = True) -> Card:
    block = Block(16, ops.Attention(2, 8), (32,))
    return Card(encoder=Stack(TokenEmbedding(VOCABULARY, 16, length=20, types=2), (block,) * 2), pooler=pooler)


def _varied() -> Card:
    layers = (
        Block(16, ops.Attention(2, 8, "wma", ops.Relative(9)), (24, 32), "swish"),
        Block(24, ops.DynamicConvolution(3, 2, 8, ops.Relative(7)), (32,)),
        Block(24, ops.Transform("dft"), (32,), "squared-relu"),
        Block(16, ops.LightweightConvolution(3, 4), (8,)),
        Block(16, ops.SeparableConvolution(3), (), norm="pre"),
    )
    return Card(encoder=Stack(TokenEmbedding(VOCABULARY, 16, 8, "relative", 20), layers))


def _op_graph() -> Card:
    term = ("matmul", ("softmax", ("scale", ("matmul", "Q", ("transpose", "K")))), ("add", "V", "Q"))
    block = Block(16, ops.OpGraph(2, 8, term), (32,))
    return Card(encoder=Stack(TokenEmbedding(VOCABULARY, 16, length=20), (block,) * 2))


def _invented() -> Card:
    """Build what a search of formulas might find: no layer is a known attention, and all operations are there."""
    apart = ("neg", ("euclidean", ("scale", "Q"), ("add", "K", "P")))
    terms = (
        (
            "matmul",
            ("softmax", ("matmul", "Q", ("neg", ("logsigmoid", ("neg", ("transpose", "K")))))),
            ("add", "K", "Q"),
        ),
        ("matmul", ("softmax", apart), ("softsign", "V")),
        ("matmul", "P", ("cosine", ("transpose", "Q"), ("transpose", "V"))),
    )
    mixers = (*(ops.OpGraph(2, 8, term) for term in terms), ops.LightweightConvolution(7, 4))
    blocks = tuple(Block(16, mixer, (32,)) for mixer in mixers)
    return Card(encoder=Stack(TokenEmbedding(VOCABULARY, 16, length=20, types=2), blocks))


def _translator() -> Card:
    block = Block(16, ops.Attention(2, 8), (32,), "relu", "pre")
    cell = Cell(
        16,
        (
            Junction(
                Branch(0, ops.Attention(2, 8), 16, norm=True), Branch(0, ops.Convolution(3), 24, activation="relu")
            ),
            Junction(Branch(1, ops.CrossAttention(2, 8, layers=2), 16, norm=True), Branch(0, ops.Identity(), 16)),
        ),
    )
    tables = TokenEmbedding(VOCABULARY, 16, positions="sinusoidal", length=20, norm=False)
    encoder = Stack(tables, (block,) * 2, final_norm=True)
    return Card(encoder=encoder, decoder=Stack(tables, (cell, cell), causal=True), share_embedding=True)


def _writer() -> Card:
    layers = (Block(16, ops.Attention(2, 8), (32,)), Block(24, ops.Attention(3, 8), (32,)))
    return Card(decoder=Stack(TokenEmbedding(VOCABULARY, 16, length=20), layers, causal=True))


def _viewer(class_tokens: int = 1) -> Card:
    block = Block(16, ops.Attention(2, 8, relative=ops.Relative(6, 2, values=True)), (32,), norm="pre")
    return Card(encoder=Stack(PatchEmbedding(SIDE, 4, 16, class_tokens=class_tokens), (block,) * 2, final_norm=True))


DESIGNS: dict[str, tuple[Card, HeadSpec | None]] = {
    "bert": (_bert(), HeadSpec("sequence-classification", 3)),
    "bert-tokens": (_bert(pooler=False), HeadSpec("token-classification", 5)),
    "bert-spans": (_bert(), HeadSpec("span-extraction")),
    "bert-masked": (_bert(), HeadSpec("masked-lm")),
    "bert-bare": (_bert(), None),
    "varied": (_varied(), HeadSpec("sequence-classification", 1)),
    "varied-bare": (_varied(), None),
    "op-graph": (_op_graph(), HeadSpec("masked-lm")),
    "invented": (_invented(), HeadSpec("sequence-classification", 3)),
    "translator": (_translator(), HeadSpec("seq2seq-lm")),
    "writer": (_writer(), HeadSpec("causal-lm")),
    "viewer": (_viewer(), HeadSpec("sequence-classification", 4)),
    "viewer-distilled": (_viewer(class_tokens=2), HeadSpec("sequence-classification", 4)),
}


def lively(name: str, seed: int = 0, settings: Settings | None = None) -> TaskModel | Transformer:
    """Build one of `DESIGNS` with weights that matter."""
    card, spec = DESIGNS[name]
    model = build(card, settings, spec)
    enliven(model, seed)
    return model


@torch.no_grad()
def outputs(model: TaskModel | Transformer, name: str, seed: int = 1) -> Tensor:
    """Run a plain model on a batch; only what stands at real tokens counts."""
    ids, mask = tokens(seed)
    family = DESIGNS[name][0].family
    if family == "vision":
        return model(images(seed))
    result = model(ids, mask, None, ids.flip(1), None) if family == "encoder-decoder" else model(ids, mask)
    result = result if isinstance(result, Tensor) else result.hidden
    return result if result.dim() == 2 or family == "encoder-decoder" else result[mask.bool()]


def assert_same(found: TaskModel | Transformer, expected: TaskModel | Transformer, name: str) -> None:
    """Compare two models: every weight to the last bit, and what they say to the rounding of a processor.

    The last digit of a product may depend on where in memory a weight lies.
    """
    theirs = expected.state_dict()
    assert list(found.state_dict()) == list(theirs)
    assert all(torch.equal(tensor, theirs[key]) for key, tensor in found.state_dict().items())
    torch.testing.assert_close(outputs(found, name), outputs(expected, name), rtol=1e-6, atol=1e-5)


@torch.no_grad()
def hf_outputs(model: Any, name: str, seed: int = 1) -> Tensor:
    """Run a model of transformers on the same batch as `outputs` does."""
    ids, mask = tokens(seed)
    family = DESIGNS[name][0].family
    if family == "vision":
        return model(pixel_values=images(seed)).logits
    if family == "encoder-decoder":
        return model(ids, attention_mask=mask, decoder_input_ids=ids.flip(1)).logits
    result = model(ids, attention_mask=mask)
    if "start_logits" in result:
        return torch.stack((result.start_logits, result.end_logits), -1)[mask.bool()]
    scores = result.logits if "logits" in result else result.last_hidden_state
    return scores if scores.dim() == 2 else scores[mask.bool()]
