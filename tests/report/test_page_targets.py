"""The page says for each target what was asked for, which model was chosen, and whether that keeps it."""

from pathlib import Path

import pytest
from tests.report.compressed import COSTS, LENGTH, SPACE, WHOLE, card_of, compressed_log, deliver
from tests.report.studies import SPACE as SMALL
from tests.report.studies import WORKER, small_study
from tests.report.test_markup import read

from formwright.cost import macs, params
from formwright.report.facts import StudyFacts, study_facts
from formwright.report.page import report_html
from formwright.report.page_targets import asked_and_met
from formwright.study.store import Log
from formwright.study.too_slow import Miss, note_of

MACS = sorted((float(macs(card_of(number), LENGTH)), number) for number in range(6))  # the costlier, the better


def row(facts: StudyFacts, name: str) -> str:
    """Give the words of the line of a target."""
    lines = asked_and_met(facts).split("<tr>")
    (line,) = (each for each in lines if f'scope="row">{name}<' in each)
    return read(line).words


def log_with(folder: Path, **asked: str) -> Log:
    return compressed_log(folder, delivered=0, asked=asked)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Give a study with a target for all but the costliest design, and with the same target once more."""
    bound = MACS[-2][0]
    found = log_with(tmp_path, most=f"macs<={bound}", same=f"macs<={bound + 1}", none="macs<=1")
    deliver(found, "most", "front", card_of(MACS[-2][1]), 0.8)
    return found


def test_other_studies_have_no_targets(tmp_path: Path) -> None:
    assert asked_and_met(study_facts(small_study(tmp_path), SMALL)) == ""


def test_a_target_has_its_model_with_what_it_costs(log: Log) -> None:
    bound = MACS[-2][0]
    cost = f"{bound:,.0f}{100 * bound / macs(WHOLE, LENGTH):.0f} % of the teacher"
    found = f"mostmacs \N{LESS-THAN OR EQUAL TO} {cost}most{cost}0.8000kept"
    assert row(study_facts(log, SPACE), "most") == found


def test_targets_that_share_a_model_or_have_none_say_so(log: Log) -> None:
    facts = study_facts(log, SPACE)
    assert row(facts, "same").endswith("keptthe best within this target and most")
    assert row(facts, "none").endswith("no design keeps it")
    dash = "\N{EN DASH}"
    assert row(facts, "none").count(dash) == 3


def test_before_a_model_is_delivered(tmp_path: Path) -> None:
    facts = study_facts(log_with(tmp_path, most=f"macs<={MACS[-1][0]}"), SPACE)
    assert row(facts, "most").endswith("not delivered")


def test_parameters_are_those_of_the_model(tmp_path: Path) -> None:
    card = card_of(MACS[-1][1])
    log = log_with(tmp_path, many=f"macs<={MACS[-1][0]}")
    deliver(log, "many", "front", card, 0.8)
    (found,) = study_facts(log, SPACE).targets
    assert found.model is not None
    assert found.model.params == params(card)


def test_designs_that_were_too_slow_are_counted_and_the_next_best_is_no_earlier_model(tmp_path: Path) -> None:
    (_, best), (cost, second) = MACS[-1], MACS[-2]
    log = log_with(tmp_path, all=f"macs<={MACS[-1][0]}")
    miss = Miss("all", card_of(best).digest, best, 1.001 * MACS[-1][0])
    log.append("note", WORKER, note_of([miss]))
    deliver(log, "all", "front", card_of(second), 0.7)
    facts = study_facts(log, SPACE)
    assert row(facts, "all").endswith("kept1 other design was measured beyond it")
    assert f"{cost:,.0f}" in row(facts, "all")
    assert [model.role for model in facts.models] == ["teacher", "front"]


def test_a_target_that_none_keeps_shows_what_the_fastest_costs(tmp_path: Path) -> None:
    log = log_with(tmp_path, all=f"macs<={MACS[1][0]}")
    for cost, number in MACS[:2]:
        log.append("note", WORKER, note_of([Miss("all", card_of(number).digest, number, 9 * cost)]))
    low, number = MACS[0]
    deliver(log, "all", "front", card_of(number), 0.7, costs={**COSTS, "macs": 9 * low})
    found = row(study_facts(log, SPACE), "all")
    assert f"{9 * low:,.0f}" in found
    assert found.endswith(f"exceededthe sum of its parts is {low:,.0f}the fastest of 2 designs that were measured")


def test_the_page_has_them_first(log: Log) -> None:
    page = report_html(study_facts(log, SPACE))
    places = [page.index(f'id="{name}"') for name in ("targets", "best", "space")]
    assert places == sorted(places)
