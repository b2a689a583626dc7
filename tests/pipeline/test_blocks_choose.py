"""What is chosen for each size: within its limits, and the nearest to the teacher of the best few."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.block_runs import begun, copied, finished, here, pretended, stage

from formwright.arch.card import Card
from formwright.cost import LATENCY, params
from formwright.pipeline import blocks_choose
from formwright.pipeline.blocks_choose import CHOICES, BlockFacts, ChooseChains, ChosenChain
from formwright.pipeline.blocks_train import TrainedBlocks, read_table
from formwright.pipeline.run import PipelineRun
from formwright.search.chain_costs import PARAMS
from formwright.space.zoo.chains import chain_card

pytestmark = pytest.mark.slow


def chosen() -> dict[str, ChosenChain]:
    found: dict[str, ChosenChain] = finished().artifact(stage(finished(), "choices"))
    return found


def compared(run: Any = None) -> dict[str, list[ChosenChain]]:
    run = run or finished()
    read = json.loads((here(run, "choices").folder / CHOICES).read_bytes())
    return {name: [ChosenChain.from_json(one) for one in choices] for name, choices in read.items()}


def choose(run: Any) -> dict[str, ChosenChain]:
    stage(run, "choices").make(here(run, "choices"))
    found: dict[str, ChosenChain] = stage(run, "choices").load(here(run, "choices"))
    return found


def test_the_nearest_of_the_best_few_within_its_size_is_chosen() -> None:
    run = finished()
    for size in stage(run, "choices").asked:
        choice = chosen()[size.name]
        card = chain_card(run.artifact(stage(run, "source")).menu, choice.table, choice.blocks)
        assert params(card) == choice.costs[PARAMS] <= size.limits[PARAMS]
    for name, choices in compared().items():
        assert len(choices) == stage(finished(), "choices").checked
        distances = [one.distance for one in choices]
        assert distances == sorted(distances)
        assert choices[0] == chosen()[name]
    for size in stage(finished(), "choices").asked:
        best = trained().choices.best(size.limits)[0]
        assert best.loss == pytest.approx(min(one.loss for one in compared()[size.name]))
        assert chosen()[size.name].loss >= best.loss - 1e-9


def test_what_was_chosen_is_not_chosen_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChooseChains, "compared", lambda *_: pytest.fail("it was chosen before"))
    assert choose(finished()) == chosen()


def test_further_sizes_are_chosen_beside_those_before(tmp_path: Path) -> None:
    later = copied(tmp_path, sizes="4k,6k")
    assert not stage(later, "choices").reaches(here(later, "choices"))
    found = choose(later)
    assert list(found) == ["4k", "6k"]
    assert found["6k"] == chosen()["6k"]
    assert chosen()["3k"].costs[PARAMS] < found["4k"].costs[PARAMS] <= 4000
    assert set(compared(later)) == {"3k", "4k", "6k"}
    assert stage(later, "choices").reaches(here(later, "choices"))


@pytest.mark.parametrize("content", ["{", "[]", '{"3k": []}', '{"3k": null}', '{"3k": [{}]}'])
def test_a_damaged_choice_is_made_again(tmp_path: Path, content: str) -> None:
    later = copied(tmp_path)
    (here(later, "choices").folder / CHOICES).write_text(content, encoding="utf-8")
    assert not stage(later, "choices").reaches(here(later, "choices"))
    assert choose(later) == chosen()


def test_those_that_keep_their_milliseconds_as_measured_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def slow_at_first(card: Card) -> float:
        """Let the first design that is measured be slower than the sum of its parts."""
        seen.append(card.digest)
        return 2.0 if card.digest == seen[0] else pretended(card)

    monkeypatch.setattr("formwright.nn.latency.quick", lambda *_: slow_at_first)
    later = copied(tmp_path, sizes="6k@1ms")
    (best,) = choose(later).values()
    found = compared(later)["6k-1ms"]
    assert found[0] == best
    assert [one.measured_ms <= 1 for one in found if one.measured_ms is not None] == [True, False]
    assert len(seen) == 3 * len(found)
    assert all(choice.measured_ms is None for choice in chosen().values())


def trained() -> TrainedBlocks:
    found: TrainedBlocks = finished().artifact(stage(finished(), "blocks"))
    return found


def facts_of(run: PipelineRun) -> BlockFacts:
    found: BlockFacts = stage(run, "students").page_facts(here(run, "students"))
    return found


def test_the_page_shows_tables_and_models_and_options_that_add_up(tmp_path: Path) -> None:
    facts = facts_of(finished())
    assert [model.name for model in facts.models] == ["3k", "6k"]
    assert [len(table) for table in facts.blocks] == [len(table) for table in trained().tables]
    assert (facts.teacher, facts.text) == ("bert", "text.txt")
    page = (finished().out / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert all(word in page for word in ("bert has", "3k", "6k"))
    new = begun(tmp_path)
    assert stage(new, "students").page_facts(here(new, "students")) is None, "nothing is made yet"
    assert len(facts.options) > 3
    losses = [option.loss for option in facts.options]
    assert losses == sorted(losses, reverse=True)
    assert facts.options[0].params == trained().costs.extremes(PARAMS)[0]
    assert trained().costs.extremes(LATENCY)[0] <= facts.options[0].latency_ms
    facts, losses = facts_of(finished()), finished().artifact(stage(finished(), "bases")).losses
    for option in facts.options:
        parts = [table[place] for table, place in zip(facts.blocks, option.chosen, strict=True)]
        assert option.params <= option.limit
        assert sum(part.loss for part in parts) + losses[option.table] == pytest.approx(option.loss)
        assert option.latency_ms >= sum(part.latency_ms for part in parts)


def test_sizes_whose_chains_were_all_dropped_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    narrowest, read = min(trained().costs.menu.widths), read_table
    monkeypatch.setattr(
        blocks_choose, "read_table", lambda path: [row for row in read(path) if row[0].width > narrowest]
    )
    facts = facts_of(finished())
    assert len(facts.options) > 3
    assert facts.options[0].params > trained().costs.extremes(PARAMS)[0]
