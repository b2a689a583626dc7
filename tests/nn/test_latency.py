"""Latencies that decide: the least of several measurements, the same verdict on a busy machine as on an idle one.

The parts of an encoder are told apart by measuring whole encoders, whatever noise there is.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from tests.supernet.experts import Experts
from tests.supernet.lessons import MENU

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Branch, Cell, Junction, Layer, Stack
from formwright.arch.ops import (
    Attention,
    CrossAttention,
    DynamicConvolution,
    Identity,
    LightweightConvolution,
    SeparableConvolution,
    Transform,
)
from formwright.core.errors import IllegalInput, MissingExtra
from formwright.core.rng import derive
from formwright.cost import COSTS, LATENCY, params
from formwright.cost.latency_tables import LatencyTable
from formwright.nn import latency as measured_by
from formwright.nn.deploy import Runtime
from formwright.nn.latency import (
    REPEATED,
    LeastLatency,
    measured_latency,
    measured_operations,
    measured_table,
    measurements,
    quick,
)
from formwright.nn.measurement import Latency, TimingSettings
from formwright.pipeline.limits import Limits
from formwright.space.elastic import elastic
from formwright.space.elastic_parts import elastic_parts, resized
from formwright.space.zoo.chains import REAL, candidate, chain_card, chains
from formwright.supernet.automatic import sub_network
from formwright.testing.toy_problem import small

ONE = Latency(1.0, 1.0, 1.0, 0.0, 0.0, False, 20, 1, "torch", "cpu", "abacus", None)
CARDS = [small().card(design) for design in small().enumerate()]


def latency(*times: float, busy: bool = False) -> tuple[LeastLatency, list[float]]:
    """Let measurements give these times, one after the other; give also what is left of them."""
    left = list(times)
    return LeastLatency(lambda _: replace(ONE, median_ms=left.pop(0), busy=busy), pause=lambda _: None), left


def test_a_card_is_measured_once() -> None:
    found, left = latency(2.0, 3.0)
    assert ([found(CARDS[0]), found(CARDS[0]), found(CARDS[1])], left) == ([2.0, 2.0, 3.0], [])


def test_settings_of_a_measurement_belong_to_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[TimingSettings, Runtime]] = []
    monkeypatch.setattr(measured_by, "measure", lambda _, trial, runtime, memory: seen.append((trial, runtime)) or ONE)
    for name in ("latency_ms", "writing_30x5_ms", "onnx_batch8_ms"):
        COSTS.get(name).meter(9)(CARDS[0])  # type: ignore[union-attr]
    one, writing, onnx = seen
    assert (one[0].length, one[0].batch, one[0].tokens, one[1]) == (9, 1, 0, "torch")
    assert (writing[0].tokens, writing[0].beams, writing[0].batch, writing[1]) == (30, 5, 1, "torch")
    assert (onnx[0].batch, onnx[0].tokens, onnx[1]) == (8, 0, "onnxruntime")


def test_a_runtime_that_is_not_installed_is_told_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra):
        COSTS.get("onnx_batch8_ms").meter(9)  # type: ignore[union-attr]
    COSTS.get("writing_30x5_ms").meter(9)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("times", "told"), [((4.0,), None), ((6.7, 1.3), None), ((6.7, 9.0, 4.9), None), ((6.7, 6.25, 9.0), "6.25")]
)
def test_a_design_is_measured_again_before_it_is_rejected(times: tuple[float, ...], told: str | None) -> None:
    found, left = latency(*times)
    refusal = Limits.parse(["latency_ms<=5"], 16).gate({LATENCY: found})(CARDS[0])
    assert left == []
    assert refusal is None if told is None else refusal is not None and told in refusal
    assert found(CARDS[0]) == min(times)  # which the observation is told


def test_a_rejection_says_that_the_machine_was_busy() -> None:
    gate = Limits.parse(["latency_ms<=5"], 16).gate
    found, left = latency(*[9.0] * (1 + REPEATED), busy=True)
    assert "busy" in str(gate({LATENCY: found})(CARDS[0]))
    assert left == []  # a busy machine is the more reason to measure again
    assert "busy" not in str(gate({LATENCY: latency(*[9.0] * (1 + REPEATED))[0]})(CARDS[0]))


def test_only_so_many_cards_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formwright.nn.latency._REMEMBERED", 1)
    found, _ = latency(2.0, 3.0, 4.0)
    assert [found(CARDS[0]), found(CARDS[1]), found(CARDS[0])] == [2.0, 3.0, 4.0]


def test_a_card_that_is_measured_again_stays_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formwright.nn.latency._REMEMBERED", 1)
    found, left = latency(2.0, *[9.0] * REPEATED)
    assert found.decided(CARDS[0], lambda _: False) == 2.0
    assert (found(CARDS[0]), left) == (2.0, [])


SPIN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nprint(flush=True)\nwhile True: pass"


@contextmanager
def two_busy_processes() -> Iterator[None]:
    """Share one processor with two processes that never rest."""
    before = os.sched_getaffinity(0)
    here = min(before)
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN, str(here)], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for process in spinning:
            process.stdout.readline()
        os.sched_setaffinity(0, {here})
        yield
    finally:
        os.sched_setaffinity(0, before)
        for process in spinning:
            process.kill()
            process.communicate()


@pytest.mark.alone
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes are bound to one processor on Linux only")
def test_two_busy_processes_change_no_verdict() -> None:
    """A design of half the limit is accepted and one of twice the limit rejected, as on an idle machine."""
    card = Card(Stack(TokenEmbedding(100, 256), (Block(256, Attention(4, 64), (1024,)),) * 2))
    measured = partial(measured_latency, length=128)
    idle = min(measured(card).median_ms for _ in range(2))
    with two_busy_processes():
        loaded = measured(card)
        verdicts = [
            Limits.parse([f"latency_ms<={share * idle}"], 128).gate({LATENCY: LeastLatency(measured)})(card)
            for share in (2.0, 0.5)
        ]
    assert loaded.busy
    assert loaded.high_ms > 2 * idle  # the load was real: so long a run took
    assert verdicts[0] is None
    assert verdicts[1] is not None


HEADS, CHANNELS, LAYERS, WIDTH = 4, 64, 3, 16
ENCODER = Card(
    encoder=Stack(TokenEmbedding(50, WIDTH, length=16), (Block(WIDTH, Attention(HEADS, 4), (CHANNELS,)),) * 3)
)
REST = 2.0


def true_time(card: Card) -> float:
    """Give the time of a machine whose parts take what their width says: fewer hidden numbers, less time."""
    share, total = card.output_width / WIDTH, REST
    for layer in card.encoder.layers:
        heads = layer.mixer.heads if isinstance(layer.mixer, Attention) else 0
        total += share * (0.1 * bool(heads) + 0.5 * heads + 0.01 * sum(layer.feed_forward))
    return total


@pytest.mark.parametrize(
    "widths", [((4, 64),) * 3, ((0, 0),) * 3, ((1, 32), (3, 0), (0, 64)), ((2, 43), (4, 11), (1, 1))]
)
def test_on_a_machine_without_noise_the_table_tells_the_time(widths: tuple[tuple[int, int], ...]) -> None:
    table = measured_table(ENCODER, measured=true_time)
    assert table(sub_network(ENCODER, widths)) == pytest.approx(true_time(sub_network(ENCODER, widths)), abs=1e-9)


def test_hidden_sizes_are_measured_beside_the_encoders_own() -> None:
    table = measured_table(ENCODER, (8, 12), measured=true_time)
    assert sorted(table.by_hidden) == [8, 12, 16]
    narrow = sub_network(ENCODER, ((1, 32), (4, 64), (0, 16)), 8)
    assert table(narrow) == pytest.approx(true_time(narrow), abs=1e-9)
    assert table(ENCODER) == pytest.approx(true_time(ENCODER), abs=1e-9)
    assert sorted(measured_table(ENCODER, (16,), measured=true_time).by_hidden) == [16]


def test_noise_never_makes_a_wider_part_quicker() -> None:
    rng = derive(0, "noise")
    table = measured_table(ENCODER, measured=lambda card: true_time(card) * float(rng.uniform(0.8, 1.5)))
    (times,) = table.by_hidden.values()
    for part in (times.heads, times.channels):
        values = [part[width] for width in sorted(part)]
        assert values[0] == 0.0
        assert values == sorted(values)
    assert times.rest >= 0
    table = measured_table(ENCODER, measured=lambda card: true_time(card) * float(rng.uniform(1.0, 1.02)))
    for widths in (((4, 64),) * 3, ((1, 16), (2, 32), (0, 0))):
        card = sub_network(ENCODER, widths)
        assert table(card) == pytest.approx(true_time(card), rel=0.05), "little noise changes little"


def test_a_busy_moment_falls_on_no_part_alone() -> None:
    """Slow runs are forgotten where quick ones follow: of each model the quickest of three rounds counts."""
    seen: Counter[str] = Counter()

    def busy_at_first(card: Card) -> float:
        seen[card.digest] += 1
        return true_time(card) + (100.0 if seen[card.digest] == 1 else 0.0)

    assert measured_table(ENCODER, measured=busy_at_first)(ENCODER) == pytest.approx(true_time(ENCODER), abs=1e-9)
    assert set(seen.values()) == {3}


def test_few_models_are_measured_and_each_three_times() -> None:
    measured: list[str] = []

    def note(card: Card) -> float:
        measured.append(card.digest)
        return true_time(card)

    measured_table(ENCODER, measured=note)
    assert len(measured) == 3 * len(set(measured))
    assert len(set(measured)) == 5 + 7 - 1  # 0 to 4 heads, 7 widths, and the full model once


def _layer(heads: int, channels: int) -> Block:
    return Block(WIDTH, Attention(heads, 4) if heads else Identity(), (channels,) if channels else ())


def _encoder(*layers: Layer) -> Card:
    return Card(encoder=Stack(TokenEmbedding(50, WIDTH, length=16), layers))


@pytest.mark.parametrize(
    "layers",
    [
        (_layer(4, 64), _layer(2, 64)),
        (_layer(4, 64), _layer(4, 32)),
        (_layer(4, 64), _layer(0, 64)),
        (_layer(4, 64), Block(WIDTH, DynamicConvolution(3, 4, 4), (64,))),
    ],
)
def test_layers_that_differ_are_refused(layers: tuple[Layer, ...]) -> None:
    with pytest.raises(IllegalInput, match=r"differ.*targets in MACs or parameters"):
        measured_table(_encoder(*layers), measured=true_time)


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        (Block(WIDTH, Transform("dft"), (64,)), "transform"),
        (Cell(WIDTH, (Junction(Branch(0, Attention(2, 8), WIDTH), Branch(0, Identity(), WIDTH)),)), "cell"),
        (_layer(0, 0), "identity"),
    ],
    ids=["transform", "cell", "nothing"],
)
def test_layers_without_measured_parts_are_refused_with_their_name(layer: Layer, told: str) -> None:
    with pytest.raises(IllegalInput, match=f"'{told}'.*targets in MACs or parameters") as refused:
        measured_table(_encoder(layer, layer), measured=true_time)
    assert "differ" not in str(refused.value)


WHOLE_LAYERS: dict[str, Block] = {
    "dynamic": Block(WIDTH, DynamicConvolution(3, 4, 4), (64,)),
    "lightweight": Block(WIDTH, LightweightConvolution(9, 4), (64,)),
    "an even kernel": Block(WIDTH, SeparableConvolution(6), (64,)),
    "two maps": Block(WIDTH, Attention(4, 4), (64, 32)),
    "no heads": Block(WIDTH, Identity(), (64,)),
    "no channels": Block(WIDTH, Attention(4, 4)),
    "experts": Block(WIDTH, Experts(5, 4), (64,)),
}


def time_of_sizes(card: Card) -> float:
    """Give the time of a machine on which an operation takes what its sizes say, and something for being there."""
    total = REST
    for layer in card.encoder.layers:
        by_operation: dict[str, float] = {}
        for one in elastic_parts(layer):
            by_operation[one.part] = by_operation.get(one.part, 0.5) * (0.25 + one.most)
        total += sum(by_operation.values())
    return total


@pytest.mark.parametrize("name", WHOLE_LAYERS)
def test_any_operation_with_sizes_that_may_be_smaller_is_added_up(name: str) -> None:
    layer = WHOLE_LAYERS[name]
    table = measured_table(_encoder(layer, layer), measured=time_of_sizes)
    for one in elastic_parts(layer):
        step = 2 if one.cut == "centred" else 1
        smallest = max(one.least, round(one.most / 6), 1)  # which is measured; below it lies a layer without the part
        for size in range(one.most, smallest - 1, -step):
            card = _encoder(layer, resized(layer, {one.name: size}))
            assert table(card) == pytest.approx(time_of_sizes(card), abs=1e-9), one.name
    together = resized(layer, {one.name: one.most - 2 for one in elastic_parts(layer)})
    assert table(_encoder(together, together)) == pytest.approx(time_of_sizes(_encoder(together, together)), abs=1e-9)
    assert LatencyTable.from_json(json.loads(json.dumps(table.to_json()))) == table


def test_a_smaller_kernel_may_take_longer() -> None:
    """As kernels of one token do in torch: that must not be counted for larger ones."""
    layer = WHOLE_LAYERS["lightweight"]

    def slow_at_1(card: Card) -> float:
        kernels = [
            layer.mixer.kernel for layer in card.encoder.layers if isinstance(layer.mixer, LightweightConvolution)
        ]
        return REST + sum(3.0 if kernel == 1 else 1.0 for kernel in kernels)

    table = measured_table(_encoder(layer, layer), measured=slow_at_1)
    for kernel in (1, 3, 9):
        card = _encoder(resized(layer, {"kernel": kernel}), layer)
        assert table(card) == pytest.approx(slow_at_1(card))


def test_a_layer_without_an_operation_takes_its_time_away() -> None:
    layer = WHOLE_LAYERS["lightweight"]
    table, bare = measured_table(_encoder(layer, layer), measured=time_of_sizes), replace(layer, mixer=Identity())
    assert table(_encoder(bare, layer)) == pytest.approx(time_of_sizes(_encoder(bare, layer)), abs=1e-9)
    with pytest.raises(IllegalInput, match="experts"):
        table(_encoder(replace(layer, mixer=Experts(5, 4))))


def _stack(heads: int, channels: int, layers: int, width: int, cross: int = 0, *, causal: bool = False) -> Stack:
    attention = CrossAttention(cross, 4) if cross else None
    blocks = (Block(width, Attention(heads, 4), (channels,), cross=attention),) * layers
    return Stack(TokenEmbedding(50, width, length=16), blocks, causal=causal)


TRANSLATOR = Card(encoder=_stack(4, 64, 3, 16), decoder=_stack(2, 32, 2, 12, 2, causal=True))
TIED = Card(encoder=_stack(4, 64, 3, 16), decoder=_stack(2, 32, 2, 16, 2, causal=True), share_embedding=True)
WRITER = Card(decoder=_stack(4, 64, 3, 16, causal=True))


def time_of_both(card: Card) -> float:
    """Give the time of a machine without noise, on which attention to the encoder depends on both hidden sizes."""
    widths, total = (
        [stack.output_width for stack in card.stacks],
        REST + 0.125 * sum(s.output_width for s in card.stacks),
    )
    for stack, dear in zip(card.stacks, (1.0, 3.0), strict=False):
        for layer in stack.layers:
            heads = layer.mixer.heads if isinstance(layer.mixer, Attention) else 0
            cross = layer.cross.heads if layer.cross is not None else 0
            own = 0.5 * heads + 0.01 * sum(layer.feed_forward)
            total += dear * stack.output_width * own + cross * widths[0] * widths[-1] / 16
    return total


@pytest.mark.parametrize(
    ("card", "widths", "hidden"),
    [
        (TRANSLATOR, ((4, 64),) * 3 + ((2, 2, 32),) * 2, None),
        (TRANSLATOR, ((4, 64),) * 3 + ((1, 1, 16),) * 2, None),
        (TRANSLATOR, ((1, 64), (4, 0), (0, 16), (2, 0, 32), (0, 1, 3)), None),
        (TRANSLATOR, ((1, 64), (4, 0), (0, 16), (2, 0, 32), (0, 1, 3)), 8),
        (TIED, ((4, 64), (2, 0), (0, 16), (1, 2, 32), (2, 1, 0)), 8),
        (WRITER, ((1, 64), (4, 7), (0, 0)), None),
        (WRITER, ((1, 64), (4, 7), (0, 0)), 8),
    ],
    ids=["whole", "less of the decoder", "free", "free and narrow", "one table", "decoder", "narrow decoder"],
)
def test_the_table_of_any_family_tells_the_time(
    card: Card, widths: tuple[tuple[int, ...], ...], hidden: int | None
) -> None:
    table = measured_table(card, (8,), measured=time_of_both)
    small = sub_network(card, widths, hidden)
    assert table(small) == pytest.approx(time_of_both(small), abs=1e-9)


def test_two_hidden_sizes_of_a_translator_are_free() -> None:
    table = measured_table(TRANSLATOR, (8,), measured=time_of_both)
    for below, above in ((8, 8), (8, 12), (16, 8), (16, 12)):
        space = elastic(TRANSLATOR, heads={"encoder": (1,)}, hidden={"encoder": (below,), "decoder": (above,)})
        (design,) = space.enumerate()
        card = space.card(design)
        assert [stack.output_width for stack in card.stacks] == [below, above]
        assert table(card) == pytest.approx(time_of_both(card), abs=1e-9)


def test_a_decoder_whose_layers_differ_is_refused() -> None:
    layers = tuple(Block(WIDTH, Attention(heads, 4), (64,)) for heads in (2, 4))
    card = Card(decoder=Stack(TokenEmbedding(50, WIDTH, length=16), layers, causal=True))
    with pytest.raises(IllegalInput, match="MACs or parameters"):
        measured_table(card, measured=time_of_both)


BARE, JOINT = 0.1, 0.03


def pretended(card: Card) -> float:
    """Take a time that is exactly the sum of parts: so must the table come to it."""
    layers = [layer for layer in card.encoder.layers if isinstance(layer, Block)]
    widths = [card.encoder.embedding.width, *(layer.width for layer in layers)]
    joints = sum(below != above for below, above in pairwise(widths))
    return BARE + JOINT * joints + sum(_own(layer) for layer in layers)


def _own(layer: Block) -> float:
    return 0.0 if layer.empty else 0.001 * layer.width * (1 + len(layer.feed_forward))


def test_sums_are_what_whole_chains_take() -> None:
    told: list[int] = []
    times = measured_operations(MENU, measured=pretended, after=told.append)
    assert told == list(range(measurements(MENU)))
    found = list(chains(MENU))
    for first, second in zip(found[::9], found[4::9], strict=False):
        card = chain_card(MENU, first.width, [first, second])
        added = times.embeddings.get(first.width, BARE) + times.of_joint(first.width, second.width)
        added += times.of_chain(first.width, first.operations) + times.of_chain(second.width, second.operations)
        assert added == pytest.approx(pretended(card))


def test_every_operation_width_and_joint_has_a_time_from_0() -> None:
    times = measured_operations(MENU, measured=lambda card: 1e-6 * params(card))
    assert set(times.operations) == {(name, width) for name in REAL for width in MENU.widths}
    assert set(times.embeddings) == set(MENU.embeddings)
    assert len(times.joints) == len(MENU.sizes) * (len(MENU.sizes) - 1) // 2
    assert min(times.operations.values()) > 0
    times = measured_operations(MENU, measured=lambda card: 1.0 / params(card))
    assert set(times.operations.values()) == set(times.joints.values()) == {0.0}


def test_a_real_model_can_be_measured() -> None:
    for card in (ENCODER, TRANSLATOR, WRITER, chain_card(MENU, 4, [next(chains(MENU))])):
        assert 0 < quick(8)(card) < np.inf
    assert candidate("identity", 4).empty
