"""What a head is said to do, which exports and generation ask instead of its name."""

from typing import Any

import pytest

from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.arch.heads import OWN_HEADS, HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.arch.tensors import POOLED, STREAM

LOGITS = ("logits",)
PROPERTIES: dict[str, tuple[Any, ...]] = {
    "sequence-classification": (LOGITS, 3, True, False, False, False),
    "token-classification": (LOGITS, 3, True, False, False, False),
    "span-extraction": (("start_logits", "end_logits"), 2, False, False, False, False),
    "masked-lm": (LOGITS, 3, False, False, False, True),
    "causal-lm": (LOGITS, 3, False, True, True, True),
    "seq2seq-lm": (LOGITS, 3, False, True, False, False),
}


@pytest.mark.parametrize("task", OWN_HEADS)
def test_a_head_says_what_it_does(task: str) -> None:
    spec = HeadSpec(task, labels=3)
    found = (spec.output_names, spec.outputs, spec.has_names, spec.writes, spec.continues, spec.plain_text)
    assert found == PROPERTIES[task]


def test_heads_and_embeddings_say_what_others_ask_them() -> None:
    """Which head reads the pooler and which learns from plain text, and how rows of an embedding are given."""
    tasks = list(OWN_HEADS)
    assert [task for task in tasks if HeadSpec(task).pools] == ["sequence-classification"]
    assert [task for task in tasks if HeadSpec(task).plain_text] == ["masked-lm", "causal-lm"]
    read = (TokenEmbedding(9, 4, length=7, types=2), PatchEmbedding(4, 2, 4), FrameEmbedding(3, 4, length=5))
    assert [one.INPUT for one in read] == ["input_ids", "pixel_values", "input_features"]
    assert [one.most_tokens for one in read] == [7, None, 5]
    assert [(one.symbols, one.types, one.POOLS_ALL) for one in read] == [(9, 2, False), (0, 0, False), (0, 0, True)]


@pytest.mark.parametrize("pooler", [True, False])
def test_only_a_head_of_whole_sequences_reads_what_a_pooler_writes(pooler: bool) -> None:
    stack = Stack(TokenEmbedding(9, 4, length=7), (Block(4, Attention(1, 4), (8,)),))
    read = {}
    for task in ("sequence-classification", "token-classification", "span-extraction"):
        weight, _ = HeadSpec(task).tensors(Card(encoder=stack, pooler=pooler))
        read[task] = weight.axes[1][0].group
    assert read.pop("sequence-classification") == (POOLED if pooler else STREAM)
    assert set(read.values()) == {STREAM}
