from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.report.cards import MIXERS, text_encoder
from tests.report.studies import (
    CHANNELS,
    COMPRESSED,
    COSTS,
    HEADS,
    LENGTH,
    SPACE,
    WHOLE,
    WORKER,
    card_of,
    compressed_facts,
    compressed_log,
    deliver_card,
    note_of,
    small_study,
)
from tests.report.test_compression import note
from tests.report.test_markup import read

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, CrossAttention
from formwright.cost import macs, params
from formwright.pipeline.delivered import TOO_SLOW, Miss
from formwright.report.compression import CompressionFacts, compression
from formwright.report.facts import StudyFacts, study_facts
from formwright.report.page import report_html
from formwright.report.page_compression import (
    _MOST_DRAWN,
    chosen_of,
    chosen_section,
    draw_space,
    draw_widths,
    listed,
    space_section,
    targets_section,
    teacher_of,
)
from formwright.report.svg_canvas import LETTER
from formwright.study.events import Event
from formwright.study.store import Log

MACS = sorted((float(macs(card_of(number), LENGTH)), number) for number in range(6))  # the costlier, the better


@pytest.fixture
def facts(tmp_path: Path) -> StudyFacts:
    return compressed_facts(tmp_path)


def compression_of(facts: StudyFacts) -> CompressionFacts:
    assert facts.compression is not None
    return facts.compression


def with_card(facts: StudyFacts, card: Card) -> StudyFacts:
    """Put another card in the place of the one of the first delivered model."""
    digest = facts.models[1].digest
    rows = tuple(replace(row, card=card) if row.digest == digest else row for row in facts.trials)
    return replace(facts, trials=rows, models=facts.models[:2])


def test_widths_are_those_of_the_cards_below_a_full_teacher(facts: StudyFacts) -> None:
    teacher = teacher_of(facts, compression_of(facts))
    assert teacher.widths == {"heads": (12,) * 4, "channels": (384,) * 4}
    assert teacher.cost == compression_of(facts).teacher.costs["macs"]
    found = {one.model.name: one for one in chosen_of(facts, compression_of(facts)).drawn}
    for number in range(3):
        one, card = found[f"trial-{number}"], card_of(number)
        assert card.encoder is not None
        blocks = [layer for layer in card.encoder.layers if isinstance(layer, Block)]
        heads = tuple(block.mixer.heads if isinstance(block.mixer, Attention) else 0 for block in blocks)
        assert one.widths == {"heads": heads, "channels": tuple(sum(block.feed_forward) for block in blocks)}
        assert (one.cost, one.hidden) == (one.model.costs["macs"], 96)
    costs = [one.cost for one in chosen_of(facts, compression_of(facts)).drawn]
    assert costs == sorted(costs, key=lambda cost: -(cost or 0))
    bare = replace(facts, models=tuple(replace(model, costs={}) for model in facts.models))
    assert [one.cost for one in chosen_of(bare, compression_of(bare)).drawn] == costs, "trials know their costs too"


def test_a_translator_has_a_third_part(facts: StudyFacts) -> None:
    """Layers of its encoder have no attention to an encoder; nothing is drawn for them."""
    space = {
        "full": [[4, 64, 0], [4, 64, 2]],
        "heads": [[1, 4], [4]],
        "channels": [[16, 64]] * 2,
        "cross": [[0], [1, 2]],
    }
    found = replace(compression_of(facts), **_translated(space))
    assert list(found.parts) == ["heads", "cross", "channels"]
    assert found.count == 2 * 2 * 2 * 2
    block = Block(16, Attention(4, 4), (64,))
    above = replace(block, mixer=Attention(2, 4), cross=CrossAttention(1, 8))
    table = TokenEmbedding(30, 16)
    both = Card(Stack(table, (block,)), Stack(table, (above,), causal=True))
    (one,) = chosen_of(with_card(facts, both), found).drawn
    assert one.widths == {"heads": (4, 2), "cross": (0, 1), "channels": (64, 64)}
    drawing = draw_space(found)
    assert "attention to the encoder" in drawing
    read(space_section(replace(facts, compression=found)))
    read(chosen_section(replace(with_card(facts, both), compression=found)))


def _translated(space: dict[str, Any]) -> dict[str, Any]:
    data = {"compress": {"space": {**space, "hidden": [16]}}}
    found = compression([Event(0, "note", None, "test", 0.0, data)])
    assert found is not None
    names = ("full_heads", "full_channels", "full_cross", "heads", "channels", "cross", "hidden")
    return {name: getattr(found, name) for name in names}


def test_of_many_models_an_even_choice_is_drawn_and_the_others_named(tmp_path: Path) -> None:
    facts = compressed_facts(tmp_path, count=7, delivered=7)
    found = chosen_of(facts, compression_of(facts))
    assert (len(found.drawn), len(found.further), found.unknown) == (_MOST_DRAWN, 1, ())
    costs = [model.costs["macs"] for model in facts.models if model.role == "front"]
    assert (found.drawn[0].cost, found.drawn[-1].cost) == (max(costs), min(costs))
    assert tags_of(chosen_section(facts)).count("svg") == 2 * 7
    assert "not drawn: trial-" in chosen_section(facts)
    lost = replace(facts, trials=())
    names = ", ".join(f"trial-{number}" for number in range(7))
    assert f"no trial has its design: {names}." in chosen_section(lost)


def test_a_design_that_no_trial_has_is_named(facts: StudyFacts) -> None:
    lost = replace(facts, trials=tuple(row for row in facts.trials if row.digest != facts.models[1].digest))
    assert chosen_of(lost, compression_of(facts)).unknown == (facts.models[1].name,)


def test_a_shallower_design_lacks_its_last_layers_and_a_deeper_one_is_no_sub_network(facts: StudyFacts) -> None:
    short = with_card(facts, text_encoder((Block(96, Attention(3, 8), (64,)),)))
    (one,) = chosen_of(short, compression_of(facts)).drawn
    assert one.widths == {"heads": (3, 0, 0, 0), "channels": (64, 0, 0, 0)}
    deep = with_card(facts, text_encoder((Block(96, MIXERS["sdp"], (64,)),) * 5))
    found = chosen_of(deep, compression_of(facts))
    assert (found.drawn, found.unknown) == ((), (facts.models[1].name,))


def row(facts: StudyFacts, name: str) -> str:
    """Give the words of the line of a target."""
    lines = targets_section(facts).split("<tr>")
    (line,) = (each for each in lines if f'scope="row">{name}<' in each)
    return read(line).words


def log_with(folder: Path, **asked: str) -> Log:
    return compressed_log(folder, delivered=0, asked=asked)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Give a study with a target for all but the costliest design, and with the same target once more."""
    bound = MACS[-2][0]
    found = log_with(tmp_path, most=f"macs<={bound}", same=f"macs<={bound + 1}", none="macs<=1")
    deliver_card(found, "most", "front", card_of(MACS[-2][1]), 0.8)
    return found


def test_a_target_has_its_model_with_what_it_costs_or_says_why_not(log: Log) -> None:
    bound = MACS[-2][0]
    cost = f"{bound:,.0f}{100 * bound / macs(WHOLE, LENGTH):.0f} % of the teacher"
    found = f"mostmacs \N{LESS-THAN OR EQUAL TO} {cost}most{cost}0.8000kept"
    assert row(study_facts(log, COMPRESSED), "most") == found
    facts = study_facts(log, COMPRESSED)
    assert row(facts, "same").endswith("keptthe best within this target and most")
    assert row(facts, "none").endswith("no design keeps it")
    dash = "\N{EN DASH}"
    assert row(facts, "none").count(dash) == 3


def test_a_target_has_the_parameters_of_its_model_once_it_is_delivered(tmp_path: Path) -> None:
    facts = study_facts(log_with(tmp_path, most=f"macs<={MACS[-1][0]}"), COMPRESSED)
    assert row(facts, "most").endswith("not delivered")
    card = card_of(MACS[-1][1])
    log = log_with(tmp_path / "other", many=f"macs<={MACS[-1][0]}")
    deliver_card(log, "many", "front", card, 0.8)
    (found,) = study_facts(log, COMPRESSED).targets
    assert found.model is not None
    assert found.model.params == params(card)


def test_designs_that_were_too_slow_are_counted_and_the_next_best_is_no_earlier_model(tmp_path: Path) -> None:
    (_, best), (cost, second) = MACS[-1], MACS[-2]
    log = log_with(tmp_path, all=f"macs<={MACS[-1][0]}")
    miss = Miss("all", card_of(best).digest, best, 1.001 * MACS[-1][0])
    log.append("note", WORKER, {TOO_SLOW: [asdict(miss)]})
    deliver_card(log, "all", "front", card_of(second), 0.7)
    facts = study_facts(log, COMPRESSED)
    assert row(facts, "all").endswith("kept1 other design was measured beyond it")
    assert f"{cost:,.0f}" in row(facts, "all")
    assert [model.role for model in facts.models] == ["teacher", "front"]


def test_a_target_that_none_keeps_shows_what_the_fastest_costs(tmp_path: Path) -> None:
    log = log_with(tmp_path, all=f"macs<={MACS[1][0]}")
    for cost, number in MACS[:2]:
        log.append("note", WORKER, {TOO_SLOW: [asdict(Miss("all", card_of(number).digest, number, 9 * cost))]})
    low, number = MACS[0]
    deliver_card(log, "all", "front", card_of(number), 0.7, costs={**COSTS, "macs": 9 * low})
    found = row(study_facts(log, COMPRESSED), "all")
    assert f"{9 * low:,.0f}" in found
    assert found.endswith(f"exceededthe sum of its parts is {low:,.0f}the fastest of 2 designs that were measured")


def tags_of(page: str) -> list[str]:
    return [name for name, _ in read(page).tags]


def test_panels_stand_in_their_order_and_other_studies_have_none(log: Log, tmp_path: Path) -> None:
    page = report_html([study_facts(log, COMPRESSED)])
    names = ("targets", "best", "space", "chosen-widths", "trials")
    places = [page.index(f'<section id="{name}"') for name in names]
    assert places == sorted(places)
    facts = study_facts(small_study(tmp_path / "other"), SPACE)
    assert targets_section(facts) == space_section(facts) == chosen_section(facts) == ""


def test_the_space_is_counted_and_listed_with_its_targets(facts: StudyFacts) -> None:
    reader = read(space_section(facts))
    assert "6,561 sub-networks in all. The hidden size is 96." in reader.words
    assert "3left out, 1, 1232, 48, 64" in reader.words, "the third layer, its heads and its channels"
    assert ("figure", {"tabindex": "0"}) in reader.tags
    words = read(space_section(facts)).words
    assert "Aimed at, macsOf the teacherNearest sub-networkDifference" in words
    assert "50 %" in words
    assert "+2.0 %" in words
    assert "-4.0 %" in words


def test_targets_may_be_milliseconds_or_missing_and_hidden_sizes_several(tmp_path: Path) -> None:
    timed = compressed_facts(tmp_path / "timed", cost="latency_ms", targets=[{"target": 3.95, "cost": 4.0}])
    assert "Aimed at, latency" in space_section(timed)
    # of the 8.125 ms that the teacher took in turns with the models, not of the 7.9 ms that were noted first
    assert "3.95 ms49 %4.00 ms+1.3 %" in read(space_section(timed)).words
    assert "latency 3.25 ms" in chosen_section(timed)
    assert "40 % of the teacher" in chosen_section(timed)
    assert "Aimed at" not in space_section(compressed_facts(tmp_path / "bare", targets=[]))
    facts = compressed_facts(tmp_path / "other", space={**note_of()["space"], "hidden": [64, 96]})
    assert "13,122 sub-networks in all. All layers together have one of the hidden sizes 64, 96." in space_section(
        facts
    )
    assert chosen_section(facts).count("hidden size 96") == 3


def test_the_teacher_stands_above_the_models(facts: StudyFacts) -> None:
    page = chosen_section(facts)
    assert tags_of(page).count("svg") == 2 * 4
    words = read(page).words
    assert words.index("MiniLM teacher") < words.index("trial-0")
    assert "accuracy 0.8300 on validation" in words
    assert "heads of layers 1 to 4: 12, 12, 12, 12" in page


def test_before_any_model_is_delivered(tmp_path: Path) -> None:
    page = chosen_section(compressed_facts(tmp_path, delivered=0))
    assert "No model has been delivered yet." in page
    assert tags_of(page).count("svg") == 2


def shapes(drawing: str, kind: str) -> list[ElementTree.Element]:
    return [one for one in ElementTree.fromstring(drawing).iter() if one.get("class") == kind]


def test_bars_share_one_scale_and_what_is_left_out_has_a_name() -> None:
    drawing = draw_widths("heads", (12, 6, 3), (12, 12, 6))
    bars = [float(one.attrib["height"]) for one in shapes(drawing, "heads")]
    assert bars == pytest.approx([46, 23, 11.5])
    assert [float(one.attrib["height"]) for one in shapes(drawing, "full")] == pytest.approx([46, 46, 23])
    bottoms = {float(one.attrib["y"]) + float(one.attrib["height"]) for one in shapes(drawing, "heads")}
    assert len(bottoms) == 1
    drawing = draw_widths("channels", (0, 384), (384, 384))
    assert len(shapes(drawing, "channels")) == len(shapes(drawing, "full out")) == 1
    assert ">out</text>" in drawing
    assert "Layer 1: no channels: left out" in drawing
    assert 'aria-label="channels of layers 1 to 2: left out, 384"' in drawing
    (bar,) = shapes(draw_widths("channels", (1,), (3072,)), "channels")
    assert float(bar.attrib["height"]) >= 1.5
    assert listed((0, 4, 1536)) == "left out, 4, 1536"


@pytest.mark.parametrize("layers", [1, 6, 24, 48])
def test_columns_have_room_for_their_numbers(layers: int) -> None:
    drawing = ElementTree.fromstring(draw_widths("channels", (3072,) * layers, (3072,) * layers))
    width = float(drawing.attrib["viewBox"].split()[2])
    places = [float(one.attrib["x"]) for one in drawing.iter("text") if one.text == "3072"]
    assert len(places) == layers
    assert all(right - left >= 32 for left, right in pairwise(places))
    assert min(places) >= 16
    assert max(places) <= width - 16


def drawn(**space: Any) -> ElementTree.Element:
    found = compression([note(1, compress=note_of(space={**note_of()["space"], **space}))])
    assert found is not None
    return ElementTree.fromstring(draw_space(found))


def circles(drawing: ElementTree.Element, kind: str) -> list[tuple[float, float]]:
    found = [one for one in drawing.iter("circle") if one.get("class") == kind]
    return [(float(one.attrib["cx"]), float(one.attrib["cy"])) for one in found]


def words_in(drawing: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in drawing.iter("text")]


def test_every_width_is_a_dot_and_wider_stands_higher() -> None:
    drawing = drawn()
    for kind, widths in (("heads", HEADS), ("channels", CHANNELS)):
        assert len(circles(drawing, kind)) == sum(one > 0 for layer in widths for one in layer)
    assert len(circles(drawing, "hollow")) == 3
    assert len({x for x, _ in circles(drawing, "heads")}) == 4, "one column for each layer"
    assert words_in(drawn()).count("left out") == 2
    assert words_in(drawn(heads=[[4, 12]] * 4)).count("left out") == 1
    assert set(map(str, range(1, 13))) <= set(words_in(drawn(heads=[list(range(13))] * 4)))
    drawing = drawn(heads=[[0, 1, 4, 12]] * 4)
    column = [y for x, y in circles(drawing, "heads") if x == circles(drawing, "heads")[0][0]]
    assert all(low > high for low, high in pairwise(column))
    assert circles(drawing, "hollow")[0][1] > column[0] + 15
    assert max(y for _, y in circles(drawing, "heads")) < min(y for _, y in circles(drawing, "channels"))
    bars = [one for one in drawn(full=[[12, 384], [6, 192]] * 2).iter("rect") if one.get("class") == "full"]
    tall = [float(one.attrib["height"]) for one in bars]
    assert tall == pytest.approx([140, 70] * 2 + [170, 85] * 2)


def test_numbers_never_stand_on_one_another() -> None:
    drawing = drawn(channels=[[16, 32, 48, 64, 200, 352, 368, 384]] * 4)
    columns: dict[str, list[float]] = {}
    for one in drawing.iter("text"):
        if one.get("class") == "over":
            columns.setdefault(one.attrib["x"], []).append(float(one.attrib["y"]))
    for places in columns.values():
        ordered = sorted(places)
        assert all(below - above >= 10.9 for above, below in pairwise(ordered))
    assert {"16", "384", "200"} <= set(words_in(drawing))


@pytest.mark.parametrize("layers", [1, 6, 24, 48])
def test_numbers_stay_on_the_page_and_clear_of_the_next_column(layers: int) -> None:
    drawing = drawn(full=[[16, 4096]] * layers, heads=[[16]] * layers, channels=[[4096]] * layers)
    numbers = [one for one in drawing.iter("text") if one.text == "4096" and one.get("class") == "over"]
    ends = [float(one.attrib["x"]) + 4 * LETTER for one in numbers]
    bars = sorted(float(one.attrib["x"]) for one in drawing.iter("rect"))[2::2]
    assert len(ends) == layers
    assert all(end <= bar for end, bar in zip(ends, bars, strict=False))
    assert max(ends) <= float(drawing.attrib["viewBox"].split()[2])


def test_names_are_text() -> None:
    found = compression([note(1, compress=note_of(model='<b>"&\x00'))])
    assert found is not None
    drawing = ElementTree.fromstring(draw_space(found))
    assert '<b>"&\N{REPLACEMENT CHARACTER}' in drawing.attrib["aria-label"]
