import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.evaluate.fake_table import fake_benchmark
from tests.tasks.test_corpora import pairs, texts

from formwright.core.errors import IllegalInput
from formwright.cost import params
from formwright.search.unseen import anything

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Import the script as Python runs it, its folder first on the path."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import evolved_transformer

    yield evolved_transformer
    for name in [name for name in sys.modules if name == "evolved_transformer" or name.startswith("evolved_kit")]:
        del sys.modules[name]


def test_both_designs_have_equally_many_parameters(script: ModuleType) -> None:
    from evolved_kit.cells import MAKERS

    for task in script.TASKS:
        evolved, plain = (params(MAKERS[design](task)) for design in script.DESIGNS)
        assert abs(evolved - plain) < 0.005 * evolved


@pytest.mark.slow
def test_searches_of_a_table_spend_no_more_than_they_may(script: ModuleType) -> None:
    from evolved_kit.races import race

    table = fake_benchmark()
    course = script.Course(table.space, table.objective, table.legal, table.table.marks, 6, 2)
    for way in script.WAYS:
        moments = race(course, way, table.evaluator(), 400, seed=1)
        assert [moment.steps for moment in moments] == sorted(moment.steps for moment in moments)
        assert moments[-1].steps < 400 + 20
        assert moments[-1].budget == (5 if way == "fixed-short" else 20)
        assert moments == race(course, way, table.evaluator(), 400, seed=1)


def test_rungs_that_grow_unevenly_are_refused(script: ModuleType) -> None:
    table = fake_benchmark()
    with pytest.raises(IllegalInput, match="do not grow by one factor"):
        script.Course(table.space, table.objective, anything, (5, 10, 25)).searcher("hurdles")
    assert script.Course(table.space, table.objective, anything, (7,)).searcher("hurdles").rungs == (7,)


def test_a_choice_counts_from_when_it_stays_good(script: ModuleType) -> None:
    moments = [script.Moment(steps, card, 1) for steps, card in ((1, "good"), (3, "bad"), (7, "good"), (9, "better"))]
    assert script.steps_to(moments, lambda card: card != "bad") == 7
    assert script.steps_to(moments, lambda card: card == "bad") is None
    assert script.at(moments, 8).chosen == "good"
    assert script.at(moments, 0) is None


def test_tables_are_summed_up_by_way(script: ModuleType) -> None:
    rows = [
        {"unit": ["table", "table", "hurdles", str(seed)], "steps_to_best": found, "steps": 90, "rank": 2, "score": 0.5}
        for seed, found in enumerate((10, 30, None))
    ]
    found = script.summary(rows)["table"]
    assert found == {
        "hurdles": {
            "searches": 3, "reached": 2 / 3, "median_steps": 30.0, "mean_rank": 2.0, "mean_score": 0.5,
        }
    }  # fmt: skip


def test_searches_are_compared_at_what_the_worst_has_found(script: ModuleType) -> None:
    curves = {"hurdles": [[10, 5.0], [20, 3.0]], "halving": [[10, 6.0], [20, 5.0]]}
    rows = [{"unit": ["search", "translation", way, "0"], "curve": curve} for way, curve in curves.items()]
    found = script.summary(rows)["search"]
    assert found["hurdles"] == {"perplexity": [3.0], "steps_to_same": [10]}
    assert found["halving"] == {"perplexity": [5.0], "steps_to_same": [20]}


@pytest.mark.slow
@pytest.mark.long
def test_all_parts_run_and_are_not_run_again(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs(tmp_path / "multi30k", 16)
    texts(tmp_path / "wikitext-2")
    monkeypatch.setattr(script, "bench", lambda _: fake_benchmark())
    command = ["--tiny", "--data", str(tmp_path), "--seeds", "1", "--table-seeds", "1", "--workers", "1"]
    command += ["--results", str(tmp_path / "rows.jsonl")]
    script.main(command)
    told = capsys.readouterr()
    assert "12 of 12" in told.err
    found = json.loads(told.out)
    assert set(found["cells"]) == {f"{task}, {design}" for task in script.TASKS for design in script.DESIGNS}
    assert set(found["table"]) == set(found["search"]) == set(script.WAYS)
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"unit": ["cells"')  # as if it had been stopped while it wrote
    script.main(command)
    again = capsys.readouterr()
    assert again.err == ""
    assert again.out == told.out
