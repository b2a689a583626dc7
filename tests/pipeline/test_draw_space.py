"""The space that a model draws up: from below the lowest target of every cost, and its targets as limits."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.pipeline.compressions import BERT, CHANNELS, HEADS, LENGTH, begun, bert, compression, tokeniser
from tests.supernet.experts import Bottleneck, Experts

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.records import Objective
from formwright.cost import macs, params
from formwright.cost.latency_tables import LatencyTable, PartTimes
from formwright.nn.build import build
from formwright.nn.hf.save import save_pretrained_folder
from formwright.pipeline.draw_space import DrawnSpace, DrawSpace, closeness, low_end, space_facts
from formwright.pipeline.run import StageRun
from formwright.pipeline.score_parts import MeasureParts, PartScores
from formwright.pipeline.targets import USUAL, Target, limits, redundant_targets
from formwright.report.compression import compression as compression_facts
from formwright.report.page_compression import draw_space
from formwright.study.events import Event
from formwright.supernet.automatic import BudgetMatch, choices_between, sub_network
from formwright.supernet.importance import Importance

FULL = float(macs(BERT, LENGTH))
LEAST = float(macs(sub_network(BERT, ((1, 16),) * 2), LENGTH))
TABLE = LatencyTable(
    {
        16: PartTimes(1.0, {0: 0.0, HEADS: 1.0}, {0: 0.0, CHANNELS: 1.0}),
        8: PartTimes(0.5, {0: 0.0, 4: 1.0}, {0: 0.0, 64: 1}),
    }
)
Stage = tuple[DrawSpace, StageRun]


@pytest.fixture(autouse=True)
def _table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure nothing."""
    monkeypatch.setattr(MeasureParts, "_table", lambda *_: TABLE)


def started(folder: Path, out: str = "out", **options: Any) -> Stage:
    run = begun(compression(folder, **options), folder / out)
    stage = run.pipeline.of_kind(DrawSpace)[0]
    return stage, run.stage(stage)


def drawn(folder: Path, out: str = "out", **options: Any) -> DrawnSpace:
    """Draw up a space by random scores."""
    stage, run = started(folder, out, **options)
    rng = np.random.default_rng(3)
    scores = Importance(tuple(rng.random(size) for size in (4, 64) * 2))
    run.run._artifacts["scores"] = PartScores(scores, scores)
    stage.make(run)
    found: DrawnSpace = run.artifact(stage)
    return found


def test_costs_are_those_that_the_targets_name_in_their_order(tmp_path: Path) -> None:
    stage, run = started(tmp_path, targets=("params=60%", "macs=50%", "params=70%"))
    costs = stage.costs(run)
    assert stage.lowers == tuple(costs) == ("params", "macs")
    assert (costs["params"](BERT), costs["macs"](BERT)) == (params(BERT), FULL)
    assert stage.latency is None
    search: Any = run.run.pipeline.named["search"]
    assert search.objectives == ("accuracy:max", "params:min", "macs:min")


def test_latency_is_added_up_by_the_table(tmp_path: Path) -> None:
    stage, run = started(tmp_path, targets=("macs=50%", "latency_ms=4"))
    assert stage.costs(run)["latency_ms"](BERT) == 1.0 + 2 * 2.0
    search: Any = run.run.pipeline.named["search"]
    assert search.cost_table is stage.latency
    assert search.objectives == ("accuracy:max", "macs:min", "latency_ms:min")
    with pytest.raises(IllegalInput, match="latency"):
        replace(stage, latency=None)


def test_targets_become_limits_and_the_space_reaches_from_the_lowest_to_the_model(tmp_path: Path) -> None:
    targets = ("macs=50%", "params=60%", "macs=70%")
    stage, run = started(tmp_path, targets=targets)
    first, second = stage.cost_ranges(run)
    assert (first.name, first.low, first.high) == ("macs", low_end(LEAST, 0.5 * FULL), FULL)
    least = params(sub_network(BERT, ((1, 16),) * 2))
    assert (second.name, second.low) == ("params", low_end(least, 0.6 * params(BERT)))
    assert stage.smallest_share(run) == min(first.low / FULL, second.low / params(BERT))
    found = drawn(tmp_path, targets=targets)
    assert found.limits == {
        "macs-50pct": f"macs<={0.5 * FULL!r}",
        "params-60pct": f"params<={0.6 * params(BERT)!r}",
        "macs-70pct": f"macs<={0.7 * FULL!r}",
    }


def test_a_space_that_is_drawn_up_begins_below_the_lowest_target_with_its_first_designs(tmp_path: Path) -> None:
    found = drawn(tmp_path)
    stage, run = started(tmp_path)
    (reach,) = stage.cost_ranges(run)
    assert [one.target for one in found.met] == pytest.approx(np.linspace(reach.low, reach.high, 3).tolist())
    assert {one.measure for one in found.met} == {"macs"}
    assert found.choices.largest == BERT
    assert macs(found.choices.smallest, LENGTH) < 0.5 * FULL
    assert drawn(tmp_path, "again") == found
    cards = [found.space.card(found.space.from_json(design)) for design in found.first]
    assert [float(macs(card, LENGTH)) for card in cards] == [one.cost for one in found.met]
    assert BERT in cards
    _, run = started(tmp_path)
    run.run._artifacts[run.name] = found
    search: Any = replace(run.run.pipeline.named["search"], first=("mine",))
    assert found.first
    assert search.first_designs(run) == ("mine", *found.first)


def test_a_space_that_is_not_whole_ends_at_the_highest_target(tmp_path: Path) -> None:
    stage, run = started(tmp_path, targets=("macs=50%", "macs=70%"), space__whole=False)
    (reach,) = stage.cost_ranges(run)
    assert reach.high == pytest.approx(0.7 * FULL)
    assert macs(drawn(tmp_path, space__whole=False).choices.largest, LENGTH) < 0.9 * FULL


def test_the_lowest_target_of_a_further_cost_is_met_too(tmp_path: Path) -> None:
    """Whichever cost is named first."""
    least = params(sub_network(BERT, ((1, 16),) * 2))
    bound = round(least + 0.1 * (params(BERT) - least))
    low = f"params={bound}"
    for number, targets in enumerate((("macs=80%", low), (low, "macs=80%"))):
        found = drawn(tmp_path, str(number), targets=targets)
        cards = [found.space.card(found.choices.design(one.widths)) for one in found.met]
        assert any(params(card) <= bound for card in cards), targets  # which the search begins with
        assert {one.measure for one in found.met} == {"macs", "params"}
    without = drawn(tmp_path, targets=("macs=80%",))
    assert params(without.choices.smallest) > bound  # nobody would have met it


@pytest.mark.parametrize(("hidden", "size"), [((), None), ((8, 12), 8)])
def test_a_target_below_the_least_sub_network_is_refused(
    hidden: tuple[int, ...], size: int | None, tmp_path: Path
) -> None:
    least = macs(sub_network(BERT, ((1, 16),) * 2, size), LENGTH)
    started(tmp_path, targets=(f"macs={least}",), hidden=hidden)
    with pytest.raises(IllegalInput, match=rf"cannot be met: .* reach from {re.escape(f'{least:.4g}')} "):
        started(tmp_path, targets=(f"macs={least - 1}",), hidden=hidden)


def test_hidden_sizes_are_costed_by_the_table_too(tmp_path: Path) -> None:
    stage, run = started(tmp_path, targets=("latency_ms=40%",), hidden=(8,))
    assert stage.parsed[0].of(stage.ranges(run)["latency_ms"][1]) == 2.0
    assert stage.example(run).count() > 1


def test_a_target_above_the_model_is_told(tmp_path: Path) -> None:
    stage, run = started(tmp_path, targets=("macs=1e12", "latency_ms=9"), space__whole=False)
    assert [reach.high for reach in stage.cost_ranges(run)] == [FULL, 5.0]
    found = drawn(tmp_path, targets=("macs=1e12", "latency_ms=9"), space__whole=False)
    assert found.limits == {"macs-1000000000000": f"macs<={FULL!r}", "latency_ms-9": "latency_ms<=5.0"}


def test_a_hidden_size_that_cannot_change_is_refused_at_once(tmp_path: Path) -> None:
    assert BERT.encoder is not None
    assert isinstance(BERT.encoder.embedding, TokenEmbedding)
    fixed = replace(BERT.encoder.embedding, positions="sinusoidal")
    card = replace(BERT, encoder=replace(BERT.encoder, embedding=fixed))
    folder = save_pretrained_folder(build(card, seed=0), tmp_path / "fixed", tokenizer=tokeniser().tokenizer)
    stage, run = started(tmp_path, model=folder)
    assert stage.card(run) == card
    with pytest.raises(IllegalInput, match="sinusoidal positions"):
        started(tmp_path, model=folder, hidden=(8,))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"choices": {}}'])
def test_a_space_that_cannot_be_read_is_named(content: str, tmp_path: Path) -> None:
    drawn(tmp_path)
    stage, run = started(tmp_path)
    (run.folder / "space.json").write_text(content, encoding="utf-8")
    with pytest.raises(IllegalInput, match=r"cannot read .*space\.json"):
        stage.load(run)


def test_a_measured_table_is_written_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    run = begun_with_clock(tmp_path, monkeypatch)
    stage = run.pipeline.of_kind(MeasureParts)[0]
    here = run.stage(stage)
    stage.make(here)
    found = run.artifact(stage)
    assert set(found.by_hidden) == {8, 16}
    monkeypatch.setattr("formwright.nn.latency.measured_table", lambda *_, **__: pytest.fail("measured again"))
    again = begun(compression(tmp_path, targets=("latency_ms=80%",), hidden=(8,)), tmp_path / "out")
    assert again.artifact(again.pipeline.of_kind(MeasureParts)[0]) == found
    assert json.loads((here.folder / "latency.json").read_text(encoding="utf-8"))["by_hidden"].keys() == {"8", "16"}


def begun_with_clock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Begin on a machine without noise, that takes a millisecond for ten thousand operations."""
    monkeypatch.setattr("formwright.nn.latency.quick", lambda length: lambda card: macs(card, length) / 1e4)
    return begun(compression(folder, targets=("latency_ms=80%",), hidden=(8,)), folder / "out")


def test_a_family_reads_the_model_once(tmp_path: Path) -> None:
    """The stages share what was read of the model."""
    stage, run = started(tmp_path, model=bert(tmp_path, "once"))
    assert stage.teacher.pretrained(run) is run.run.pipeline.named["teacher"].pretrained(run)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "target", "name"),
    [
        ("macs=50%", Target("macs", 50.0, True), "macs-50pct"),
        (" macs = 12.5 % ", Target("macs", 12.5, True), "macs-12.5pct"),
        ("latency_ms=8", Target("latency_ms", 8.0), "latency_ms-8"),
        ("latency_ms=100%", Target("latency_ms", 100.0, True), "latency_ms-100pct"),
        ("params=1e7", Target("params", 1e7), "params-10000000"),
        ("params<=10M", Target("params", 1e7), "params-10000000"),
        ("macs<=50%", Target("macs", 50.0, True), "macs-50pct"),
        ("latency_ms <= 8 ms", Target("latency_ms", 8.0), "latency_ms-8"),
        ("params-body=2E6", Target("params-body", 2e6), "params-body-2000000"),
    ],
)
def test_a_target_is_a_share_or_an_amount(text: str, target: Target, name: str) -> None:
    assert Target.parse(text) == target
    assert target.name == name


@pytest.mark.parametrize(
    "text", ["", "macs", "macs=", "=50%", "macs>=50%", "macs=fifty", "macs=50%%", "macs=50 MB", "50%"]
)
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(IllegalInput):
        Target.parse(text)


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        *((f"macs={text}", IllegalInput, re.escape(text)) for text in ("1e", "1.2.3", "+-3", "e%", "8ms", "1e999")),
        *((f"macs={text}", IllegalInput, r"above 0 .* at most 100%") for text in ("0", "-1", "0%", "101%")),
        ("mac=50%", UnknownName, "Nearest: 'macs'"),
        ("parms<=5M", UnknownName, "Nearest: 'params'"),
    ],
)
def test_unknown_costs_and_amounts_that_no_model_has_are_refused(text: str, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        Target.parse(text)


def test_targets_become_limits_by_name_and_it_is_said_how_closely_they_were_met() -> None:
    targets = [Target.parse(text) for text in ("macs=50%", "latency_ms=8", "macs=100%")]
    found = limits(targets, {"macs": (10.0, 1000.0), "latency_ms": (2.0, 16.0)})
    assert found == {"macs-50pct": "macs<=500.0", "latency_ms-8": "latency_ms<=8.0", "macs-100pct": "macs<=1000.0"}
    assert [Target.parse(text).of(200.0) for text in USUAL] == [150.0, 100.0, 70.0, 50.0]
    assert low_end(10.0, 60.0) == 50.0
    assert low_end(0.0, 60.0) == pytest.approx(48.0)
    assert low_end(60.0, 40.0) == pytest.approx(32.0)  # a narrower hidden size makes up for it
    widths = ((1, 16),)
    met = [BudgetMatch(100.0, 101.0, widths, "macs"), BudgetMatch(200.0, 200.0, widths, "macs")]
    found = closeness([*met, BudgetMatch(8.0, 7.0, widths, "latency_ms")])
    assert found == ["drawn up at macs 100 (+1.0 %), 200 (+0.0 %)", "drawn up at latency_ms 8 (-12.5 %)"]


@given(share=st.floats(1, 100), full=st.floats(1e-3, 1e12))
def test_a_limit_keeps_the_amount_to_the_last_digit(share: float, full: float) -> None:
    target = Target("macs", share, True)
    (text,) = limits([target], {"macs": (0.0, full)}).values()
    assert Objective.parse(text).bound == target.of(full)


def told(text: str, reach: tuple[float, float]) -> str:
    with pytest.raises(IllegalInput) as caught:
        limits([Target.parse(text)], {"macs": reach})
    return str(caught.value)


def test_a_target_beyond_the_range_is_refused_below_and_told_above() -> None:
    expected = "the target macs 20 (10.0% of the model's) cannot be met: sub-networks of this model reach from "
    assert told("macs=10%", (50.0, 200.0)) == f"{expected}50 (25%) to 200"
    assert limits([Target.parse("macs=50")], {"macs": (50.0, 200.0)}) == {"macs-50": "macs<=50.0"}
    targets, ranges = [Target.parse(text) for text in ("macs=201", "macs=200", "macs=100%")], {"macs": (50, 200)}
    assert [float(limit.removeprefix("macs<=")) for limit in limits(targets, ranges).values()] == [200.0] * 3
    (line,) = redundant_targets(targets, ranges)
    assert line.startswith("the target macs 201 lies above the model's own 200: every sub-network meets it")


@given(least=st.floats(1, 99), full=st.floats(100, 1e9))
@example(least=1.0000000000000002, full=596584754.794882)
def test_the_share_that_is_told_can_be_asked_for(least: float, full: float) -> None:
    reach = (least / 100 * full, full)
    (share,) = re.findall(r"from \S+ \((\S+%)\)", told("macs=0.5%", reach))
    assert limits([Target.parse(f"macs={share}")], {"macs": reach})


def test_the_least_sub_network_has_a_fast_number_of_channels_in_any_operation() -> None:
    layers = (Block(16, Bottleneck(100), (64,)), Block(16, Experts(6, 3), (8,)))
    card = Card(encoder=Stack(TokenEmbedding(50, 16), layers))
    stage: Any = SimpleNamespace(card=lambda _: card, hidden=())
    assert DrawSpace.ends(stage, None).smallest.encoder.layers == (  # type: ignore[arg-type, union-attr]
        Block(16, Bottleneck(16), (16,)),
        Block(16, Experts(1, 3), (8,)),
    )


def test_the_page_is_given_every_scored_part_and_the_sums_of_several_maps() -> None:
    layers = (Block(16, Attention(4, 4), (32, 64)), Block(16, Experts(6, 3), (48,)))
    card = Card(encoder=Stack(TokenEmbedding(50, 16), layers))
    choices = choices_between(card, [((4, 32, 64), (6, 48)), ((2, 16, 32), (3, 16))])
    facts = space_facts(choices)
    assert facts["full"] == [[4, 96, 0], [0, 48, 0]]
    assert (facts["heads"], facts["cross"]) == ([[2, 4], [0]], [[0], [0]])
    # both maps of the first layer have one list, each up to its own width: 16 or 32, and 16, 32 or 64
    assert facts["channels"] == [[32, 48, 64, 80, 96], [16, 48]]
    assert facts["further"] == {"mixer_experts": {"full": [0, 6], "widths": [[0], [3, 6]]}}
    assert facts["count"] == choices.count == 2 * (2 * 3) * 2 * 2
    found = compression_facts(
        [Event(1, "note", None, "worker", 1.0, {"compress": {"space": json.loads(json.dumps(facts))}})]
    )
    assert found is not None
    assert found.count == choices.count
    assert found.parts["mixer_experts"] == ((0, 6), ((0,), (3, 6)))
    assert found.parts["channels"][0] == (96, 48)
    assert "Mixer experts" in draw_space(found)


def test_the_goals_are_the_costs_of_the_targets_and_then_the_others_to_minimise(tmp_path: Path) -> None:
    made = compression(tmp_path, targets=("params=60%",))
    run = begun(made.changed({"search": replace(made.named["search"], minimise=("macs", "params"))}), tmp_path / "out")
    search: Any = run.pipeline.named["search"]
    assert search.objectives == ("accuracy:max", "params:min", "macs:min")
