"""What the page is made of: the tables, the models, and the best chain all along the range."""

import pytest

from formwright.compress.blockwise.choices import Selection
from formwright.compress.blockwise.page import page_facts, write_page
from formwright.compress.blockwise.sizes import LATENCY, PARAMS

pytestmark = pytest.mark.slow


def test_the_page_shows_tables_and_models(whole: Selection, models: list[dict[str, object]]) -> None:
    facts = page_facts(whole, models)
    assert [model.name for model in facts.models] == ["3k", "6k"]
    assert [len(table) for table in facts.blocks] == [len(table) for table in whole.tables()]
    assert (facts.teacher, facts.text) == ("bert", "text.txt")
    page = write_page(whole, models, whole.folders.out / "report.html")
    assert "bert in smaller sizes" in page.read_text(encoding="utf-8")


def test_more_parameters_never_make_it_worse(whole: Selection) -> None:
    facts = page_facts(whole, [])
    assert len(facts.options) > 3
    losses = [option.loss for option in facts.options]
    assert losses == sorted(losses, reverse=True)
    assert facts.options[0].params == whole.costs.extremes(PARAMS)[0]
    assert whole.costs.extremes(LATENCY)[0] <= facts.options[0].latency_ms


def test_options_are_sums_of_what_they_choose(whole: Selection) -> None:
    facts = page_facts(whole, [])
    for option in facts.options:
        parts = [table[place] for table, place in zip(facts.blocks, option.chosen, strict=True)]
        assert option.params <= option.limit
        assert sum(part.loss for part in parts) + whole.prepared.losses[option.table] == pytest.approx(option.loss)
        assert option.latency_ms >= sum(part.latency_ms for part in parts)


def test_sizes_whose_chains_were_all_dropped_are_left_out(whole: Selection, monkeypatch: pytest.MonkeyPatch) -> None:
    narrowest = min(whole.started.menu.widths)
    tables = [[row for row in table if row[0].width > narrowest] for table in whole.tables()]
    monkeypatch.setattr(Selection, "tables", lambda _: tables)
    facts = page_facts(whole, [])
    assert len(facts.options) > 3
    assert facts.options[0].params > whole.costs.extremes(PARAMS)[0]
