import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import ModuleType

import pytest
from tests.evaluate.fake_table import fake_benchmark
from tests.tasks.test_corpora import pairs, texts

from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Observation, Request
from formwright.cost import params
from formwright.evaluate.benchmark import Benchmark
from formwright.evaluate.context import Context
from formwright.evaluate.training import Staged
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes.evolved_transformer import evolved_transformer
from formwright.search.proposals import anything
from formwright.search.rungs import Hurdles, rungs_of
from formwright.tasks import load_task

SCORES = ("validation", "test", "noise_validation", "noise_test")  # one for each mark


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


@dataclass(frozen=True)
class Noting:
    """Look scores up, and note whose."""

    table: Benchmark
    digests: list[str]

    def evaluate(self, request: Request, context: Context) -> Observation:
        self.digests.append(request.card.digest)
        return self.table.evaluator().evaluate(request, context)


def two_marks() -> Benchmark:
    """Give a table whose designs were judged half-way and at the end: there is one hurdle."""
    table = fake_benchmark().table
    scores = {name: getattr(table, name)[..., 1:] for name in SCORES}
    facts = {**table.facts, "marks": table.facts["marks"][1:]}
    return Benchmark(replace(table, facts=facts, **scores), fake_benchmark().space)


@pytest.mark.slow
def test_a_table_with_two_marks_has_one_hurdle(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    table = two_marks()
    assert table.table.marks == (10, 20)
    monkeypatch.setattr(script, "bench", lambda _: table)
    course = script.Course(table.space, table.objective, table.legal, table.table.marks)
    assert {way: course.searcher(way).rungs for way in script.WAYS} == {
        "hurdles": (10, 20), "fixed-short": (10,), "fixed-full": (20,), "halving": (10, 20),
    }  # fmt: skip
    for way in script.WAYS:
        row = script.execute(script.TINY, script.Sources(None, None), ("table", "table", way, "0"))
        assert row["steps"] == script.TINY.table_trainings * 20
        assert 1 <= row["rank"] <= len(table.table)


@pytest.mark.slow
def test_evolutions_of_one_seed_begin_with_the_same_designs(script: ModuleType) -> None:
    from evolved_kit.races import race

    table, asked = fake_benchmark(), {way: list[str]() for way in script.WAYS}
    course = script.Course(table.space, table.objective, table.legal, table.table.marks, 6, 2)
    for way in script.WAYS:
        race(course, way, Noting(table, asked[way]), 400, seed=3)
    assert asked["hurdles"][:6] == asked["fixed-short"][:6] == asked["fixed-full"][:6]
    assert len({*asked["hurdles"][:6]}) == 6


def test_a_part_is_run_again_only_where_its_own_plan_changed(script: ModuleType, tmp_path: Path) -> None:
    sources, path, wanted = script.Sources(None, None), tmp_path / "rows.jsonl", [("cells",), ("search",)]
    plans = script.plans_of(script.WHOLE, sources, wanted)
    path.write_text("".join(json.dumps({"unit": [part], "plan": plans[part]}) + "\n" for part in plans))
    assert len(script.stored(path, plans)) == 2
    longer = replace(script.WHOLE, cells=replace(script.WHOLE.cells, steps=7))
    assert [row["unit"] for row in script.stored(path, script.plans_of(longer, sources, wanted))] == [["search"]]
    fewer = replace(script.WHOLE, validation=7)
    assert [row["unit"] for row in script.stored(path, script.plans_of(fewer, sources, wanted))] == [["cells"]]
    shared = {name for names in script.OWN.values() for name in names}
    assert shared == {field.name for field in fields(script.Plan)}  # nothing that decides is left out


def test_real_searches_have_the_rungs_and_the_population_of_the_recipe(script: ModuleType) -> None:
    search, plan = evolved_transformer(TaskChoice("translation")).of_kind(Search)[0], script.WHOLE
    steps = search.training.default_steps
    usual = Hurdles.for_budget(search.stop.trials, steps)
    assert {name: usual[name] for name in ("population", "tournament", "batch")} == {
        "population": plan.population, "tournament": plan.tournament, "batch": plan.population,
    }  # fmt: skip
    assert plan.rungs == rungs_of(usual["min_steps"], usual["max_steps"], 3)
    assert plan.rungs[-1] == plan.search.steps == steps
    assert script.EARLY.rungs[-1] == script.EARLY.search.steps


def test_rows_of_another_table_do_not_count(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = []
    for table in (fake_benchmark(), two_marks()):
        monkeypatch.setattr(script, "bench", lambda _, table=table: table)
        plans.append(script.own_plan(script.WHOLE, script.Sources(None, None), "table"))
    assert plans[0] != plans[1]


def test_what_fails_is_recorded(script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from evolved_kit.races import in_full

    class Failing:
        """Fail, as designs that diverge do."""

        def evaluate(self, *_: object) -> None:
            raise EvaluationFailed("the loss is nan")

    assert in_full(Failing(), fake_benchmark().space.card, "perplexity", Context(0)) is None
    monkeypatch.setattr(script, "measure", Failing().evaluate)
    row = script.execute(script.TINY, script.Sources(tmp_path, None), ("cells", "multi30k", "evolved", "0"))
    assert row["failed"] == "the loss is nan"
    assert script.summary([row]) == {
        "cells": {}, "table": {}, "search": {}, "failed": {"cells multi30k evolved 0": "the loss is nan"},
    }  # fmt: skip


def test_a_choice_counts_from_when_it_stays_good(script: ModuleType) -> None:
    moments = [script.Moment(steps, card, 1) for steps, card in ((1, "good"), (3, "bad"), (7, "good"), (9, "better"))]
    assert script.steps_to((moment.steps, moment.chosen != "bad") for moment in moments) == 7
    assert script.steps_to((moment.steps, moment.chosen == "bad") for moment in moments) is None
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
    rows.append({"unit": ["search", "translation", "fixed-short", "0"], "curve": [[10, None], [20, None]]})
    again = script.summary(rows)["search"]
    assert again["fixed-short"] == {"perplexity": [None], "steps_to_same": [None]}
    assert {way: again[way] for way in found} == found  # a failure is not what the others are compared with
    rows[0]["curve"] = [[10, 4.0], [20, 6.0], [30, 3.0]]
    assert script.summary(rows)["search"]["hurdles"]["steps_to_same"] == [30]  # what was lost again does not count


def test_what_failed_or_was_not_chosen_yet_is_not_drawn(script: ModuleType) -> None:
    curves = ([[10, 5.0], [20, 3.0], [30, 2.0]], [[20, 4.0], [30, None]])
    rows = [{"unit": ["search", "translation", "hurdles", str(n)], "curve": curve} for n, curve in enumerate(curves)]
    assert script.races(rows).count("<polyline") == 1
    from evolved_kit.figures import _line

    line = _line("hurdles", [dict(curve) for curve in curves])
    assert (line.x, line.y, line.low, line.high) == ([20], [3.5], [3.0], [4.0])


def test_choices_are_judged_on_rows_that_the_search_has_not_seen(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evolved_kit.cells import evolved

    used = dict[str, list[str]]()

    def race(_: object, way: str, evaluator: Staged, *__: object) -> list[object]:
        used["search"] = sources(evaluator)
        return [script.Moment(1, evolved("multi30k"), 1)]

    def in_full(evaluator: Staged, *_: object) -> float:
        used["judged"] = sources(evaluator)
        return 2.0

    monkeypatch.setattr(script, "race", race)
    monkeypatch.setattr(script, "in_full", in_full)
    row = script.for_real(script.TINY, script.Sources(None, None), "hurdles", 0)
    assert row["curve"][-1] == [script.TINY.search_steps, 2.0]
    whole = load_task("translation").search_view().validation.sources
    assert used == {"search": [*whole[:32]], "judged": [*whole[32:64]]}


def sources(evaluator: Staged) -> list[str]:
    return [*evaluator.trainer.task.search_view().validation.sources]


@pytest.mark.slow
@pytest.mark.long
def test_all_parts_run_and_are_not_run_again(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs(tmp_path / "multi30k", 16)
    texts(tmp_path / "wikitext-2")
    monkeypatch.setattr(script, "bench", lambda _: fake_benchmark())
    command = ["--tiny", "--data", str(tmp_path), "--seeds", "1", "--table-seeds", "1", "--workers", "1"]
    command += ["--results", str(tmp_path / "rows.jsonl"), "--figure", str(tmp_path / "races.svg")]
    script.main(command)
    told = capsys.readouterr()
    assert "12 of 12" in told.err
    found = json.loads(told.out)
    assert set(found["cells"]) == {f"{task}, {design}" for task in script.TASKS for design in script.DESIGNS}
    assert set(found["table"]) == set(found["search"]) == set(script.WAYS)
    assert "whole trainings only" in (tmp_path / "races.svg").read_text(encoding="utf-8")
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"unit": ["cells"')  # as if it had been stopped while it wrote
    script.main(command)
    again = capsys.readouterr()
    assert again.err == ""
    assert again.out == told.out
