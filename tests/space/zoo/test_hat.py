import csv
import json
from math import prod
from pathlib import Path
from typing import Any

import pytest
from numpy.random import default_rng

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention, CrossAttention
from formwright.cost import macs, params_body
from formwright.space import Choice, Fields, Record, Repeat
from formwright.space.design import Combinator
from formwright.space.zoo.hat import HAT, NANO, decoder_layer, encoder_layer, model

ENCODER_LAYERS = {-1: 1, 1: 2, 2: 3}  # how the authors write the number of encoder layers that are attended to


def published_card(row: dict[str, str]) -> Card:
    """Build a row of the authors' table; a list may be longer than the number of layers, and is cut."""

    def read(name: str, side: str) -> list[int]:
        return list(json.loads(row[name]))[: int(row[f"{side}_layer_num"])]

    below, above = int(row["encoder_embed_dim"]), int(row["decoder_embed_dim"])
    encoder = zip(
        read("encoder_self_attention_heads_all", "encoder"), read("encoder_ffn_embed_dim_all", "encoder"), strict=True
    )
    decoder = zip(
        read("decoder_self_attention_heads_all", "decoder"),
        read("decoder_ende_attention_heads_all", "decoder"),
        read("decoder_ffn_embed_dim_all", "decoder"),
        read("decoder_arbitrary_ende_attn_all", "decoder"),
        strict=True,
    )
    return model(
        tuple(encoder_layer(below, heads, hidden) for heads, hidden in encoder),
        tuple(decoder_layer(above, own, cross, hidden, ENCODER_LAYERS[far]) for own, cross, hidden, far in decoder),
    )


@pytest.mark.data
def test_all_published_designs_have_the_published_costs(data_dir: Path) -> None:
    with (data_dir / "hat" / "cards.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 44
    for row in rows:
        card = published_card(row)
        millions = params_body(card) / 1e6
        billions = 2 * macs(card, length=int(row["source_length"])) / 1e9
        assert millions == pytest.approx(float(row["params_M"]), abs=0.01), row["name"]
        assert billions == pytest.approx(float(row["flops_G"]), abs=0.01), row["name"]


def test_published_costs_and_counts() -> None:
    """Check HAT_wmt14ende_raspberrypi@6.0s, whose genes are copied here from the authors' table."""
    encoder = tuple(encoder_layer(512, heads, 3072) for heads in (4, 4, 4, 8, 8, 4))
    genes = zip((4, 8, 8, 4), (4, 8, 8, 8), (2048, 2048, 3072, 3072), (1, 1, 2, 1), strict=True)
    card = model(encoder, tuple(decoder_layer(512, *layer) for layer in genes))
    assert f"{params_body(card) / 1e6:.2f}" == "44.13"
    assert f"{2 * macs(card, length=30) / 1e9:.2f}" == "2.70"
    encoder = 2 * (2 * 3) ** 6
    decoder = 2 * sum((2 * 2 * 3 * 3) ** layers for layers in range(1, 7))
    assert HAT.count() == encoder * decoder


def genes(part: Combinator[Any]) -> int:
    """Count the vectors of genes of a fixed length, those of layers that are not there included."""
    if isinstance(part, Record):
        return prod(genes(below) for _, below in part.fields)
    if isinstance(part, Repeat):
        return len(part.lengths) * genes(part.part) ** max(part.lengths)
    assert isinstance(part, Choice)
    return len(part.options)


def test_with_inactive_genes_the_space_is_as_large_as_published() -> None:
    assert HAT.count() == 417_846_678_672_384
    assert genes(HAT.root) == 2_437_438_960_041_984


def test_queries_are_512_wide_however_many_heads() -> None:
    assert encoder_layer(640, 4, 1024).mixer == Attention(4, 128)
    assert decoder_layer(640, 8, 4, 1024, 3).cross == CrossAttention(4, 128, 3)
    costs = {
        (params_body(card), macs(card))
        for heads in (4, 8)
        for card in [model((encoder_layer(512, heads, 1024),), (decoder_layer(640, heads, heads, 1024, 1),))]
    }
    assert len(costs) == 1


def test_genes_become_layers() -> None:
    below = tuple(Fields.of(heads=heads, feed_forward=2048) for heads in (8, 4, 8, 4, 8, 4))
    above = (Fields.of(heads=4, cross_heads=8, feed_forward=3072, encoder_layers=2),)
    design = Fields.of(encoder=Fields.of(width=640, layers=below), decoder=Fields.of(width=512, layers=above))
    assert HAT.contains(design)
    card = HAT.card(design)
    assert card.family == "encoder-decoder"
    assert not card.share_embedding
    assert [layer.width for layer in card.encoder.layers] == [640] * 6
    expected = Block(512, Attention(4, 128), (3072,), "relu", cross=CrossAttention(8, 64, 2))
    assert card.decoder.layers == (expected,)
    assert card.decoder.causal


def test_heads_of_the_nano_space_share_one_inner_width() -> None:
    rng = default_rng(0)
    for _ in range(10):
        card = NANO.card(NANO.sample(rng, "gene"))
        attentions = [
            one for stack in card.stacks for layer in stack.layers for one in (layer.mixer, layer.cross) if one
        ]
        assert {one.heads * one.head_width for one in attentions} == {128}
        assert 1 <= len(card.decoder.layers) <= len(card.encoder.layers) == 3
