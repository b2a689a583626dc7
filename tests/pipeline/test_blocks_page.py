"""What the page of a block-wise run is made of: the tables, the models, and the best chain all along the range."""

from pathlib import Path

import pytest
from tests.pipeline.block_runs import begun, finished, here, stage

from formwright.pipeline import blocks_train
from formwright.pipeline.block_facts import BlockFacts
from formwright.pipeline.blocks_train import TrainedBlocks, read_table
from formwright.pipeline.run import PipelineRun
from formwright.search.chain_costs import PartCosts
from formwright.search.model_sizes import LATENCY, PARAMS

pytestmark = pytest.mark.slow


def costs() -> PartCosts:
    found: PartCosts = stage(finished(), "choices").parts(here(finished(), "choices")).costs
    return found


def trained() -> TrainedBlocks:
    found: TrainedBlocks = finished().artifact(stage(finished(), "blocks"))
    return found


def facts_of(run: PipelineRun) -> BlockFacts:
    found: BlockFacts = stage(run, "students").page_facts(here(run, "students"))
    return found


def test_the_page_shows_tables_and_models(tmp_path: Path) -> None:
    facts = facts_of(finished())
    assert [model.name for model in facts.models] == ["3k", "6k"]
    assert [len(table) for table in facts.blocks] == [len(table) for table in trained().tables]
    assert (facts.teacher, facts.text) == ("bert", "text.txt")
    page = (finished().out / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert all(word in page for word in ("bert has", "3k", "6k"))
    new = begun(tmp_path)
    assert stage(new, "students").page_facts(here(new, "students")) is None, "nothing is made yet"


def test_more_parameters_never_make_it_worse() -> None:
    facts = facts_of(finished())
    assert len(facts.options) > 3
    losses = [option.loss for option in facts.options]
    assert losses == sorted(losses, reverse=True)
    assert facts.options[0].params == costs().extremes(PARAMS)[0]
    assert costs().extremes(LATENCY)[0] <= facts.options[0].latency_ms


def test_options_are_sums_of_what_they_choose() -> None:
    facts, losses = facts_of(finished()), finished().artifact(stage(finished(), "bases")).losses
    for option in facts.options:
        parts = [table[place] for table, place in zip(facts.blocks, option.chosen, strict=True)]
        assert option.params <= option.limit
        assert sum(part.loss for part in parts) + losses[option.table] == pytest.approx(option.loss)
        assert option.latency_ms >= sum(part.latency_ms for part in parts)


def test_sizes_whose_chains_were_all_dropped_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    narrowest, read = min(costs().menu.widths), read_table
    monkeypatch.setattr(
        blocks_train, "read_table", lambda path: [row for row in read(path) if row[0].width > narrowest]
    )
    facts = facts_of(finished())
    assert len(facts.options) > 3
    assert facts.options[0].params > costs().extremes(PARAMS)[0]
