"""Panels come from stages and parts, ours and those of other packages, and a page opens without these packages."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.report.studies import SPACE, WORKER, new_log, pipeline_of, small_study, told
from tests.report.test_markup import HOSTILE, read

from formwright.core.options import STAGES, Stage
from formwright.pipeline.function_evaluator import FunctionEvaluator
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.run_folder import DONE, REPORT
from formwright.pipeline.runner import run_pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.study_place import Place
from formwright.report.facts import StudyFacts, study_facts
from formwright.report.page import report_html, write_run_page, write_study_page
from formwright.report.page_pipeline import configuration, draw_pipeline, footer, pipeline_figure
from formwright.report.panels import EVERY_RUN, EVERY_SEARCH, PANELS, StageFacts, contributions, parts_in
from formwright.search import searcher
from formwright.search.baselines import RandomSearch
from formwright.space import Choice, Record, Space
from formwright.study.stop import Stop

SOURCE = """
import json
from dataclasses import dataclass
from typing import ClassVar
from formwright.core.options import Stage, option
from formwright.report.markup import tag
from formwright.report.panels import Panel

@dataclass(frozen=True)
class Count(Stage):
    NAME: ClassVar[str] = "acme-count"
    PANELS: ClassVar[tuple[str, ...]] = ("acme", "acme-broken", "acme-nowhere")
    before: Stage | None = option(None, "what is counted")
    number: int = option(3, "a number")

    def make(self, run):
        run.folder.mkdir(parents=True, exist_ok=True)
        (run.folder / "number.json").write_text(json.dumps(self.number))

    def page_facts(self, run):
        file = run.folder / "number.json"
        return json.loads(file.read_text()) if file.is_file() else None

PANEL = Panel(lambda number: tag("p", f"<counted> {number}"), "Acme", source="stage", data=lambda number: [number],
              script="document.title = `acme ${data[0]}`;", style=".acme {}")
BROKEN = Panel(lambda number: 1 / 0, "Broken", source="stage")
"""


@pytest.fixture
def acme(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Install a package with a stage and panels of its own, and give its stage."""
    site, memory = tmp_path_factory.mktemp("site"), "formwright.core.registry.Registry._entries"
    monkeypatch.syspath_prepend(site)
    (site / "acme.py").write_text(SOURCE, encoding="utf-8")
    (info := site / "acme-1.0.dist-info").mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n", encoding="utf-8")
    entries = "[formwright.stages]\nacme-count = acme:Count\n[formwright.panels]\nacme = acme:PANEL\n"
    (info / "entry_points.txt").write_text(entries + "acme-broken = acme:BROKEN\n", encoding="utf-8")
    known = {registry: vars(registry).pop(memory, None) for registry in (STAGES, PANELS)}
    yield STAGES.get("acme-count")
    del sys.modules["acme"]
    for registry, before in known.items():
        vars(registry).pop(memory, None)
        if before is not None:
            vars(registry)[memory] = before


def test_parts_of_a_pipeline_are_found_with_their_panels() -> None:
    panels = {name: PANELS.get(name) for name in (*EVERY_SEARCH, *EVERY_RUN)}
    ordered = sorted(panels, key=lambda name: panels[name].rank)
    assert (ordered[0], ordered[-1]) == ("head", "footer")
    config = pipeline_of(evaluator={"name": "shared", "weights": "search"}, searcher={"name": "op-nas", "parents": 2})
    found = {part.name: part for part in parts_in(config)}
    assert list(found) == ["search", "op-nas", "shared", "deliver"]
    assert found["deliver"].inputs == found["shared"].inputs == ("search",)
    assert contributions(list(found.values())).panels == dict.fromkeys(found["deliver"].kind.PANELS, "deliver")


def test_a_part_that_is_not_installed_is_noted_and_the_page_opens(tmp_path: Path) -> None:
    log = small_study(tmp_path, searcher={"name": "acme-search"}, evaluator={"name": "acme <b>"})
    page = report_html([study_facts(log, SPACE)])
    words = read(page[page.index('id="left-out"') :]).words
    assert "acme-search" in words
    assert "acme <b>" in words
    assert 'id="left-out"' not in report_html([study_facts(small_study(tmp_path / "whole"), SPACE)])


def test_a_study_of_a_package_that_is_gone_has_its_page(tmp_path: Path) -> None:
    name = small_study(tmp_path, searcher={"name": "acme-search"}).name
    with Place(tmp_path, str(tmp_path / "study.db"), name).open() as opened:
        write_study_page(opened, tmp_path / REPORT)
    page = (tmp_path / REPORT).read_text(encoding="utf-8")
    assert "acme-search" in page[page.index('id="left-out"') :]
    assert 'id="trials"' in page


def test_a_run_of_stages_of_another_package_shows_their_panels(tmp_path: Path, acme: Any) -> None:
    first = acme(number=4)
    run = PipelineRun(Pipeline(first, acme(first, number=5), recipe="acme's"), tmp_path / "run", page=write_run_page)
    page = (run_pipeline(run).out / REPORT).read_text(encoding="utf-8")
    assert "&lt;counted&gt; 4" in page, "the first stage that names a panel fills it"
    assert '{"acme":[4]}' in page
    assert ".acme {}" in page
    assert "division by zero" in page
    assert "acme-nowhere" in page
    assert "plotly" not in page
    assert re.findall(r'class="stage (\w+)" data-stage="([\w-]+)"', page) == [
        ("done", "acme-count"),
        ("done", "acme-count-2"),
    ]
    assert 'href="#stage-acme-count"' in page
    assert "<h1>acme&#x27;s</h1>" in page


def test_a_run_whose_stages_contribute_nothing_shows_its_pipeline(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Silent(Stage):
        NAME: ClassVar[str] = "silent"

        def make(self, run: Any) -> None:
            run.folder.mkdir(parents=True, exist_ok=True)

    run = run_pipeline(PipelineRun(Pipeline(Silent()), tmp_path / "run", page=write_run_page))
    page = (run.out / REPORT).read_text(encoding="utf-8")
    assert 'class="stage done" data-stage="silent"' in page
    assert "1 of 1 stages" in page


def test_a_class_of_the_users_own_is_found_where_it_is_at_hand() -> None:
    class Mine(RandomSearch):
        PANELS: ClassVar[tuple[str, ...]] = ("block-models",)

    config = pipeline_of(searcher={"python": "program:Mine"})
    assert "block-models" in contributions(parts_in(config, {"program:Mine": Mine})).panels
    assert contributions(parts_in(config)) == contributions(parts_in(pipeline_of()))


DEPTHS = Space("mine", Record.of(depth=Choice((1, 2, 3))), lambda design: {"depth": design.depth})


def search_of(goal: str) -> Search:
    score = FunctionEvaluator(lambda card, budget: -1e30 * card.data["depth"], "score")
    return Search(DEPTHS, None, (goal,), (), searcher("random"), score, stop=Stop(trials=3))


def test_a_searcher_of_the_users_own_names_panels(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Mine(RandomSearch):
        PANELS: ClassVar[tuple[str, ...]] = ("nowhere",)

    search = replace(search_of("score:max"), searcher=searcher(Mine, by="gene"))
    run = PipelineRun(Pipeline(search), tmp_path)
    place = search.place(run.stage(search))
    place.create(run.pipeline, "search")
    with place.open(run=run) as opened:
        told(opened.log, DEPTHS, [1.0, 2.0, 3.0])
    write_run_page(run)
    page = (tmp_path / REPORT).read_text(encoding="utf-8")
    assert "nowhere" in page[page.index('id="left-out"') :]


def test_a_search_shows_the_panels_of_other_stages(tmp_path: Path, acme: Any) -> None:
    search = search_of("score:max")
    run = PipelineRun(Pipeline(acme(), search), tmp_path)
    run.pipeline.stages[0].make(run.stage(run.pipeline.stages[0]))
    place = search.place(run.stage(search))
    place.create(run.pipeline, "search")
    with place.open(run=run) as opened:
        told(opened.log, DEPTHS, [-1e30 * (depth + 1) for depth in range(3)])
    write_run_page(run)
    page = (run.out / REPORT).read_text(encoding="utf-8")
    assert "&lt;counted&gt; 3" in page
    assert 'data-stage="search"' in page
    assert re.search(r"has score -\d\.000e\+30\.", page)
    with place.open() as opened:  # as `formwright report` does, from files alone
        write_study_page(opened, tmp_path / "again.html")
    again = (tmp_path / "again.html").read_text(encoding="utf-8")
    assert "&lt;counted&gt; 3" in again
    assert "Python code" in again


def test_several_searches_have_a_part_of_the_page_each(tmp_path: Path) -> None:
    searches = list(map(search_of, ("score:max", "score:min", "score:max")))
    run = PipelineRun(Pipeline(*searches), tmp_path / "run")
    for number, search in enumerate(searches[:2]):  # the third has not begun
        place = search.place(run.stage(search))
        place.create(run.pipeline, run.pipeline.name_of(search))
        with place.open(run=run) as opened:
            told(opened.log, DEPTHS, [depth + 10.0 * number for depth in range(3)])
            opened.log.append("stopped", WORKER, {"reason": "3 trials"})
    write_run_page(run)
    page = (run.out / REPORT).read_text(encoding="utf-8")
    assert re.findall(r'<article id="([\w-]+)" aria-label="Search ([\w-]+)"', page) == [
        ("search-1", "search"),
        ("search-2", "search-2"),
    ]
    assert re.findall(r'class="stage (\w+)" data-stage="([\w-]+)"', page) == [
        ("done", "search"),
        ("done", "search-2"),
        ("open", "search-3"),
    ]
    assert "not over" in page
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r' (?:aria-labelledby|aria-describedby)="([^"]*)"', page)) <= set(ids)
    assert {"search-1-trials", "search-2-trials", "search-1-ledger", "search-2-ledger"} <= set(ids)
    assert "has score 2.0000" in page
    assert "has score 10.0000" in page
    assert page.count("<footer") == page.count('id="configuration"') == 1


def facts_of(folder: Path, **config: Any) -> StudyFacts:
    return study_facts(small_study(folder, **config), SPACE, folder)


def test_stages_are_done_when_the_log_or_their_record_says_so(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    assert [stage.done for stage in study_facts(log, SPACE).run.stages] == [False, False]
    log.append("stopped", WORKER, {"reason": "40 trials"})
    assert [stage.done for stage in study_facts(log, SPACE).run.stages] == [True, False]
    (tmp_path / "deliver").mkdir()
    (tmp_path / "deliver" / DONE).touch()
    assert [stage.done for stage in study_facts(log, SPACE, tmp_path).run.stages] == [True, True]


def test_the_pipeline_is_drawn_behind_what_it_reads_above_a_footer_that_says_when(tmp_path: Path) -> None:
    stages = [StageFacts("a", (), True), StageFacts("b"), StageFacts("c", ("a", "b"))]
    drawn = draw_pipeline(stages)
    assert drawn.count('class="wire"') == 2
    assert draw_pipeline([*stages, StageFacts("d", ("a", "c"))]).count('class="wire"') == 3
    lefts = re.findall(r'<rect x="([\d.]+)"', drawn)
    assert lefts[0] == lefts[1] < lefts[2]
    assert "c: not done yet; reads from a, b" in drawn
    run = facts_of(tmp_path).run
    assert "svg" in pipeline_figure(run)
    assert "as of 1970-01-02 00:00:00 UTC" in footer(replace(run, as_of=86_400.0))
    assert ("not over" in footer(run), "not over" in footer(replace(run, over=True))) == (True, False)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_the_configuration_lists_stages_options_and_references(tmp_path: Path, hostile: str) -> None:
    run = facts_of(tmp_path, task={"name": hostile}, space={"python": "mine#12"}, first=["x", hostile]).run
    reader = read(configuration(replace(run, config={**run.config, "recipe": hostile})))
    for expected in (f"Recipe: {hostile}", "mine#12 (Python)", "nsga2", "steps 300", f"x, {hostile}"):
        assert expected in reader.words
    assert [found["href"] for name, found in reader.tags if name == "a"] == ["#stage-search"]
    assert '"stage": "deliver"' in reader.words, "and the whole as JSON"
