import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.supernet.experts import Experts

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Branch, Cell, Junction, Stack
from formwright.arch.ops import (
    Attention,
    Convolution,
    CrossAttention,
    Identity,
    LightweightConvolution,
    Operation,
    SeparableConvolution,
    Transform,
)
from formwright.core.errors import IllegalInput
from formwright.cost.latency_tables import LatencyTable, OperationTimes, PartTimes

TIMES = PartTimes(1.0, {0: 0.0, 2: 0.25, 4: 0.75}, {0: 0.0, 16: 0.125, 64: 0.5})
TABLE = LatencyTable({16: TIMES, 8: PartTimes(0.5, {0: 0.0, 4: 0.25}, {0: 0.0, 64: 0.25})})
_TABLE = TokenEmbedding(50, 16, length=16)
_CELL = Cell(16, (Junction(Branch(0, Attention(2, 8), 16), Branch(0, Convolution(3), 16)),))
OPERATION_TIMES = OperationTimes({4: 0.5, 8: 1.0}, {("attention", 8): 2.0, ("feed-forward", 8): 3.0}, {(4, 8): 0.25})


def encoder(*widths: tuple[int, int], hidden: int = 16) -> Card:
    """Describe an encoder by the heads and channels of its layers; 0 leaves a part out."""
    layers = tuple(
        Block(hidden, Attention(heads, 4) if heads else Identity(), (channels,) if channels else ())
        for heads, channels in widths
    )
    return Card(encoder=Stack(TokenEmbedding(50, hidden, length=16), layers))


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        (encoder((4, 64)), 1.0 + 0.75 + 0.5),
        (encoder((4, 64), (2, 16)), 1.0 + 0.75 + 0.5 + 0.25 + 0.125),
        (encoder((0, 0), (2, 0)), 1.0 + 0.25),
        (encoder((0, 16)), 1.0 + 0.125),
        (encoder((4, 64), hidden=8), 0.5 + 0.25 + 0.25),
    ],
    ids=["one", "two", "left out", "no heads", "narrow"],
)
def test_the_parts_are_added_up(card: Card, expected: float) -> None:
    assert TABLE(card) == expected
    assert TABLE(card) == TABLE(card)


def test_what_lies_between_two_widths_is_interpolated() -> None:
    assert TIMES.of_part("heads", 3) == 0.5
    assert TIMES.of_part("heads", 1) == 0.125
    assert TIMES.of_part("feed_forward", 40) == 0.3125
    assert TABLE(encoder((3, 40))) == 1.0 + 0.5 + 0.3125


@dataclass(frozen=True)
class Both(Experts):
    """Experts of which the number of members and their channels may be smaller."""

    ELASTIC: ClassVar[Mapping[str, str]] = {"experts": "members", "channels": "channels of a member"}


FURTHER = PartTimes.of_parts(
    {
        "feed_forward": {0: 0.0, 64: 1.0},
        "kernel": {0: 0.0, 1: 2.0, 5: 4.0},
        "mixer_experts": {0: 0.0, 1: 2.0, 4: 8.0},
        "mixer_channels": {0: 0.0, 1: 6.0, 3: 8.0},
    },
    rest=1.0,
)


@pytest.mark.parametrize(
    ("mixer", "expected"),
    [
        (LightweightConvolution(3, 4), 3.0),
        (SeparableConvolution(5), 4.0),
        (Experts(2, 3), 4.0),
        (Both(4, 3), 8.0),
        (Both(4, 1), 6.0),
        (Both(1, 1), 2.0 * 6 / 8),
        (Identity(), 0.0),
    ],
    ids=["lightweight", "separable", "experts", "both whole", "one smaller", "both smaller", "left out"],
)
def test_parts_are_known_by_what_operations_declare(mixer: Operation, expected: float) -> None:
    card = Card(encoder=Stack(_TABLE, (Block(16, mixer, (64,)), Block(16, Identity(), (32,)))))
    assert LatencyTable({16: FURTHER})(card) == pytest.approx(1.0 + expected + 1.0 + 0.5)


def test_a_part_that_took_no_time_takes_none_when_it_is_smaller() -> None:
    nothing = {0: 0.0, 1: 0.0, 4: 0.0}
    table = LatencyTable({16: PartTimes.of_parts({"mixer_experts": nothing, "mixer_channels": nothing}, 1.0)})
    assert table(Card(encoder=Stack(_TABLE, (Block(16, Both(2, 1)),)))) == 1.0


def translator(encoder_layers: int, *decoder: tuple[int, int, int], hidden: int = 16) -> Card:
    """Describe a translator by the number of its encoder's layers, and its decoder's heads, cross heads, channels."""
    above = tuple(
        Block(hidden, Attention(heads, 4), (channels,), cross=CrossAttention(cross, 4) if cross else None)
        for heads, cross, channels in decoder
    )
    tokens = [TokenEmbedding(50, width, length=16) for width in (16, hidden)]
    below = Stack(tokens[0], (Block(16, Attention(2, 4), (64,)),) * encoder_layers)
    return Card(encoder=below, decoder=Stack(tokens[1], above, causal=True))


ABOVE = {
    16: PartTimes(8.0, {0: 0.0, 2: 1.0}, {0: 0.0, 64: 2.0}, {0: 0.0, 2: 4.0}),
    8: PartTimes(5.0, {0: 0.0, 2: 0.5}, {0: 0.0, 64: 1.0}, {0: 0.0, 2: 3.0}),
}
BELOW = PartTimes(0.0, {0: 0.0, 2: 0.25}, {0: 0.0, 64: 0.5}, decoder=ABOVE)
TRANSLATORS = LatencyTable({16: BELOW}, "encoder-decoder")


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        (translator(2, (2, 2, 64)), 2 * 0.75 + 8.0 + 1.0 + 4.0 + 2.0),
        (translator(1, (2, 1, 64), (1, 0, 32)), 0.75 + 8.0 + (1.0 + 2.0 + 2.0) + (0.5 + 1.0)),
        (translator(1, (2, 2, 64), hidden=8), 0.75 + 5.0 + 0.5 + 3.0 + 1.0),
    ],
    ids=["whole", "less of the decoder", "narrow decoder"],
)
def test_the_parts_of_both_stacks_are_added_up(card: Card, expected: float) -> None:
    assert TRANSLATORS(card) == expected


def test_a_table_of_translators_refuses_others() -> None:
    for card in (encoder((2, 64)), Card(decoder=translator(1, (2, 0, 64)).decoder)):
        with pytest.raises(IllegalInput, match="encoder-decoder"):
            TRANSLATORS(card)
    with pytest.raises(IllegalInput, match="16, 8, not 12"):
        TRANSLATORS(translator(1, (2, 2, 64), hidden=12))


times = st.floats(0, 1e3, allow_nan=False)

parts = st.dictionaries(st.integers(0, 4096), times, min_size=1, max_size=6)

further = st.dictionaries(st.sampled_from(["kernel", "mixer_experts", "feed_forward_2"]), parts, max_size=2)

by_hidden = st.dictionaries(
    st.integers(1, 2048), st.builds(PartTimes, times, parts, parts, parts, further=further), min_size=1, max_size=3
)

of_encoders = st.dictionaries(
    st.integers(1, 2048), st.builds(PartTimes, times, parts, parts, decoder=by_hidden), min_size=1, max_size=2
)

tables = st.one_of(
    by_hidden.map(LatencyTable),
    by_hidden.map(lambda one: LatencyTable(one, "decoder")),
    of_encoders.map(lambda one: LatencyTable(one, "encoder-decoder")),
)


@given(tables)
def test_a_table_survives_json(table: LatencyTable) -> None:
    assert LatencyTable.from_json(json.loads(json.dumps(table.to_json()))) == table


@given(st.lists(st.floats(0, 10), min_size=2, max_size=5), st.lists(st.integers(0, 100), min_size=2, max_size=10))
def test_where_the_measured_times_rise_a_wider_part_never_takes_less(rising: list[float], asked: list[int]) -> None:
    widths = [round(100 * index / (len(rising) - 1)) for index in range(len(rising))]
    found = PartTimes(0.0, dict(zip(widths, sorted(rising), strict=True)), {0: 0.0})
    answers = [found.of_part("heads", width) for width in sorted(asked)]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(answers))


def test_the_order_of_the_file_does_not_matter() -> None:
    turned = PartTimes(1.0, dict(reversed(TIMES.heads.items())), dict(reversed(TIMES.channels.items())))
    assert turned.of_part("heads", 3) == TIMES.of_part("heads", 3)
    assert turned.of_part("feed_forward", 20) == TIMES.of_part("feed_forward", 20)


@pytest.mark.parametrize(
    ("card", "told"),
    [
        (encoder((5, 64)), "heads.* 5"),
        (encoder((4, 65)), "feed_forward.* 65"),
        (encoder((4, 64), hidden=12), "hidden size 16, 8, not 12"),
        (Card(encoder=Stack(_TABLE, (_CELL,))), "ordinary layers, not cells"),
        (Card(encoder=Stack(_TABLE, (Block(16, SeparableConvolution(5), (64,)),))), "none of kernel"),
        (Card(encoder=Stack(_TABLE, (Block(16, Attention(4, 4), (64, 64)),))), "none of feed_forward_1"),
        (Card(encoder=Stack(_TABLE, (Block(16, Transform("dft"), (64,)),))), "transform"),
        (Card(decoder=Stack(_TABLE, (Block(16, Attention(4, 4), (64,)),), causal=True)), "encoder .* decoder"),
    ],
)
def test_what_was_not_measured_is_refused(card: Card, told: str) -> None:
    with pytest.raises(IllegalInput, match=told):
        TABLE(card)


def stored(**changes: Any) -> dict[str, Any]:
    return whole({"16": {**ONE, **changes}})


def whole(by_hidden: Any, family: str = "encoder") -> dict[str, Any]:
    return {"family": family, "by_hidden": by_hidden}


ONE = TABLE.to_json()["by_hidden"]["16"]


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        whole({}),
        whole({"wide": ONE}),
        whole({"-1": ONE}),
        whole({"16": 3}),
        whole({"16": {"rest": 1.0, "heads": {"0": 0.0}}}),
        whole({"16": ONE}, "writer"),
        {"16": ONE},
        stored(cross={}),
        stored(decoder={"16": 3}),
        stored(decoder=[]),
        stored(rest="long"),
        stored(rest=float("nan")),
        stored(heads={}),
        stored(heads=[0.0, 1.0]),
        stored(heads={"four": 1.0}),
        stored(channels={"0": None}),
        stored(channels={"0": float("inf")}),
        stored(more=1),
        stored(further=[]),
        stored(further={"kernel": {}}),
        stored(further={"kernel": {"1": float("nan")}}),
    ],
    ids=str,
)
def test_what_is_no_table_is_refused(data: Any) -> None:
    with pytest.raises(IllegalInput, match=r"latency table|LatencyTable|PartTimes|the time of"):
        LatencyTable.from_json(data)


def test_equal_tables_have_equal_hashes() -> None:
    assert hash(LatencyTable.from_json(TABLE.to_json())) == hash(TABLE)


def test_times_of_operations() -> None:
    assert OPERATION_TIMES.of_chain(8, ("attention", "feed-forward", "attention")) == 7.0
    assert OPERATION_TIMES.of_joint(4, 8) == OPERATION_TIMES.of_joint(8, 4) == 0.25
    assert OPERATION_TIMES.of_joint(8, 8) == 0.0
    assert OperationTimes.from_json(OPERATION_TIMES.to_json()) == OPERATION_TIMES


@pytest.mark.parametrize(
    "data",
    [
        {},
        [],
        {**OPERATION_TIMES.to_json(), "joints": [[1, 2]]},
        {**OPERATION_TIMES.to_json(), "embeddings": [[4, float("nan")]]},
    ],
)
def test_invalid_operation_times_are_refused(data: object) -> None:
    with pytest.raises(IllegalInput):
        OperationTimes.from_json(data)


def test_a_size_whose_measurement_is_0_leaves_the_operation_the_time_of_its_other_size() -> None:
    parts = {"mixer_experts": {0: 0.0, 1: 2.0, 4: 8.0}, "mixer_channels": {0: 0.0, 1: 0.0, 3: 0.0}}
    table = LatencyTable({16: PartTimes.of_parts(parts, 1.0)})
    assert table(Card(encoder=Stack(_TABLE, (Block(16, Both(4, 1)),)))) == 1.0 + 8.0
