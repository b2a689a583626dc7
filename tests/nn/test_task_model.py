from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.cost import params, params_with_mlm_head
from formwright.nn.build import build, skeleton
from formwright.nn.settings import Settings
from formwright.space.zoo import load_card
from formwright.space.zoo.translation import transformer

TABLE = TokenEmbedding(40, 16, length=12, types=2)
BLOCK = Block(16, Attention(2, 8), (24,))
ENCODER = Card(encoder=Stack(TABLE, (BLOCK,) * 2))
DECODER = Card(decoder=Stack(TABLE, (BLOCK,) * 2, causal=True))
VISION = Card(encoder=Stack(PatchEmbedding(8, 4, 16), (BLOCK,), final_norm=True))
BOTH = transformer(16, 2)
IDS = torch.tensor([[5, 6, 7, 8, 9], [5, 6, 7, 0, 0]])
MASK = IDS != 0


@pytest.mark.parametrize(
    ("card", "spec", "shape"),
    [
        (ENCODER, HeadSpec("sequence-classification", 3), (2, 3)),
        (ENCODER, HeadSpec("sequence-classification", 1), (2, 1)),
        (replace(ENCODER, pooler=True), HeadSpec("sequence-classification", 3), (2, 3)),
        (ENCODER, HeadSpec("token-classification", 7), (2, 5, 7)),
        (ENCODER, HeadSpec("span-extraction"), (2, 5, 2)),
        (ENCODER, HeadSpec("masked-lm"), (2, 5, 40)),
        (DECODER, HeadSpec("causal-lm"), (2, 5, 40)),
    ],
)
def test_shapes_of_answers(card: Card, spec: HeadSpec, shape: tuple[int, ...]) -> None:
    assert build(card, head=spec).eval()(IDS, MASK).shape == shape


def test_images_and_translations_are_scored() -> None:
    model = build(VISION, head=HeadSpec("sequence-classification", 10)).eval()
    assert model(torch.rand(2, 3, 8, 8)).shape == (2, 10)
    model = build(BOTH, head=HeadSpec("seq2seq-lm")).eval()
    assert model(IDS, MASK, targets=IDS[:, :3]).shape == (2, 3, 32_768)
    with pytest.raises(IllegalInput, match="targets"):
        model(IDS, MASK)


@pytest.mark.parametrize(("card", "task"), [(ENCODER, "masked-lm"), (DECODER, "causal-lm")])
def test_the_vocabulary_is_scored_at_wanted_positions_only(card: Card, task: str) -> None:
    model = build(card, head=HeadSpec(task)).eval()  # type: ignore[arg-type]
    wanted = torch.zeros_like(IDS, dtype=torch.bool)
    wanted[0, 1] = wanted[0, 3] = wanted[1, 2] = True
    scores = model(IDS, MASK, positions=wanted)
    assert scores.shape == (3, 40)
    torch.testing.assert_close(scores, model(IDS, MASK)[wanted])


@pytest.mark.parametrize("name", ["bert-tiny", "flexibert-mini", "flexibert-bert-mini"])
def test_the_masked_head_has_the_counted_parameters(name: str) -> None:
    card = replace(load_card(name), pooler=False, idle=0)
    model = skeleton(card, head=HeadSpec("masked-lm"))
    assert sum(parameter.numel() for parameter in model.parameters()) == params_with_mlm_head(card)


def test_language_heads_share_the_token_table() -> None:
    model = build(ENCODER, head=HeadSpec("masked-lm")).eval()
    hidden = model.transformer(IDS, MASK).hidden
    head = model.head
    expected = head.norm(F.gelu(head.dense(hidden))) @ model.transformer.encoder.embedding.tokens.weight.T + head.bias
    torch.testing.assert_close(model(IDS, MASK), expected)
    model = skeleton(DECODER, head=HeadSpec("causal-lm"))
    assert sum(parameter.numel() for parameter in model.parameters()) == params(DECODER)
    narrow = Card(decoder=Stack(replace(TABLE, factorised=4), (BLOCK,), causal=True))
    model = skeleton(narrow, head=HeadSpec("causal-lm"))
    assert sum(parameter.numel() for parameter in model.parameters()) == params(narrow) + 16 * 4


def test_pooling() -> None:
    model = build(ENCODER, Settings(pooling="mean"), HeadSpec("sequence-classification", 3)).eval()
    hidden = model.transformer(IDS, MASK).hidden
    expected = torch.stack([hidden[0].mean(0), hidden[1, :3].mean(0)])
    torch.testing.assert_close(model(IDS, MASK), model.head.output(expected))
    torch.testing.assert_close(model(IDS[1:, :3]), model(IDS, MASK)[1:])
    spec = HeadSpec("sequence-classification", 3)
    model = build(ENCODER, head=spec).eval()
    torch.testing.assert_close(model(IDS, MASK), model.head.output(model.transformer(IDS, MASK).hidden[:, 0]))
    model = build(replace(ENCODER, pooler=True), head=spec).eval()
    first = model.transformer(IDS, MASK).hidden[:, 0]
    torch.testing.assert_close(model(IDS, MASK), model.head.output(model.transformer.pooler(first).tanh()))


@pytest.mark.parametrize(
    ("card", "task", "fits"),
    [
        (DECODER, "masked-lm", "encoder"),
        (ENCODER, "causal-lm", "decoder"),
        (ENCODER, "seq2seq-lm", "encoder-decoder"),
        (VISION, "token-classification", "encoder"),
        (BOTH, "sequence-classification", "encoder or vision"),
    ],
)
def test_a_head_that_the_design_cannot_carry_is_refused(card: Card, task: str, fits: str) -> None:
    with pytest.raises(
        IllegalInput, match=f"{task} needs a design of family {fits}; this card is of family {card.family}"
    ):
        skeleton(card, head=HeadSpec(task))  # type: ignore[arg-type]


def test_dropout_acts_in_training_only() -> None:
    with pytest.raises(IllegalInput, match="at least one label, not 0"):
        skeleton(ENCODER, head=HeadSpec("sequence-classification", 0))
    model = build(ENCODER, Settings(dropout=0.5), HeadSpec("sequence-classification", 3))
    assert not torch.equal(model(IDS, MASK), model(IDS, MASK))
    model.eval()
    assert torch.equal(model(IDS, MASK), model(IDS, MASK))
