"""The page of a run: one HTML file that opens without a server and without a network, made of panels."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.files import write_whole
from formwright.core.options import Part, PythonObject, describe
from formwright.pipeline.pipeline import Pipeline, check_version
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.run_folder import DONE, REPORT, RunRecord
from formwright.pipeline.study_place import Opened, find
from formwright.report.markup import Markup, asset, join, script_json, script_source, tag
from formwright.report.panels import (
    EVERY_RUN,
    EVERY_SEARCH,
    PANELS,
    PLOTS,
    Contributions,
    Panel,
    RunFacts,
    contributions,
    parts_in,
    stage_facts,
)

if TYPE_CHECKING:
    from formwright.report.facts import StudyFacts

_SEARCHES = 50  # rank of the searches among the panels of a run with several of them
_IDS = re.compile(r' (?:id|aria-labelledby|aria-describedby)="| href="#')
_UNREADABLE = (IllegalInput, LookupError, ValueError)  # of a run whose packages are not installed
StageFactsOf = Callable[[str], Any]  # gives what the stage of that name says of itself, or None


def write_page(source: str, path: Path | None = None) -> Path:
    """Write the page of the run in a folder, or of the study that a URL names; give where it is.

    Stages whose packages are not installed are shown from the log alone.
    """
    folder = Path(source)
    try:
        known = RunRecord.read(folder)
        run = PipelineRun(Pipeline.from_json(known.pipeline), folder, known.options, storage=known.storage)
        run.study_name, run.command = known.name, known.command
    except _UNREADABLE:  # also a record that only its owner may read, and a URL
        place = find(source)
        path = path or place.folder / REPORT
        with place.open() as opened:
            write_study_page(opened, path)
        return path
    write_run_page(run, path)
    return path or run.out / REPORT


def write_run_page(run: PipelineRun, path: Path | None = None) -> None:
    """Write the page of a run, at work or over, by default into its folder."""
    with ExitStack() as stack:
        searches = [stack.enter_context(opened) for opened in _begun(run)]
        _write(path or run.out / REPORT, _run_html(run, searches))


def write_study_page(opened: Opened, path: Path) -> None:
    """Write the page of a study that is open; stages whose parts are not installed are shown from its log alone."""
    try:
        run = opened.run
    except _UNREADABLE:
        run = None
    facts = _study_facts(opened, run)
    _write(path, report_html([facts], cache(lambda stage: None if run is None else _facts_of(run, stage))))


def _begun(run: PipelineRun) -> Iterator[Opened]:
    """Open the studies of the searches that have begun."""
    for stage in run.pipeline:
        place = stage.place(run.stage(stage)) if hasattr(stage, "place") else None
        if place is not None and ("://" in place.storage or Path(place.storage).is_file()):
            try:
                opened = place.open(run=run)
            except UnknownName:
                continue
            yield opened


def _run_html(run: PipelineRun, searches: Sequence[Opened]) -> str:
    facts_of = cache(lambda stage: _facts_of(run, stage))
    if searches:
        return report_html([_study_facts(opened, run) for opened in searches], facts_of, run.out.resolve().name)
    config = run.pipeline.to_json(whole=True)
    used = parts_in(config, _at_hand(run))
    done = {name for name in run.pipeline.named if (run.out / name / DONE).is_file()}
    stages = stage_facts(config, used, done)
    facts = RunFacts(run.out.resolve().name, config, stages, run.command, None, len(done) == len(stages))
    return page_html(facts, [], contributions(used), facts_of)


def _study_facts(opened: Opened, run: PipelineRun | None) -> "StudyFacts":
    from formwright.report.facts import study_facts  # noqa: PLC0415  scikit-learn takes a second

    check_version(opened.log.config)
    try:
        space = opened.space
    except _UNREADABLE:
        space = None
    folder, at_hand = (opened.place.folder, {}) if run is None else (run.out, _at_hand(run))
    return study_facts(opened.log, space, folder, at_hand)


def _facts_of(run: PipelineRun, name: str) -> Any:
    stage = run.pipeline.named.get(name)
    return None if stage is None or isinstance(stage, PythonObject) else stage.page_facts(run.stage(stage))


def _at_hand(run: PipelineRun) -> Mapping[str, Any]:
    """Find the classes of stages, searchers and evaluators that a program gave, by the names that JSON has for them."""
    found: dict[str, Any] = {}
    for stage in run.pipeline:
        found[stage.NAME] = type(stage)
        for part in vars(stage).values():
            if isinstance(part, Part) and not part.NAME:
                found[describe(part)] = getattr(part, "KIND", type(part))
    return found


def _write(path: Path, page: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, page)
    except OSError as error:
        raise IllegalInput(f"cannot write {path}: {error.strerror or error}; name another file with --out") from None


@dataclass(frozen=True)
class _Shown:
    """A panel with its content; `scope` is the id of the search that it belongs to, where a page has several."""

    name: str
    panel: Panel
    content: Markup
    data: Any
    scope: str = ""

    @property
    def section(self) -> Markup:
        """Return the panel as an element of the page; what it names by an id is unique on the page."""
        made = self.content
        if self.panel.title:
            title = tag("h2", self.panel.title, id=f"{self.name}-heading")
            attributes = {"id": self.name, "class_": f"panel-{self.name}", "aria_labelledby": f"{self.name}-heading"}
            made = tag("section", title, self.content, **attributes)
        return Markup(_IDS.sub(rf"\g<0>{self.scope}-", made)) if self.scope else made

    @property
    def key(self) -> str:
        return f"{self.scope}-{self.name}" if self.scope else self.name

    @property
    def script(self) -> str:
        """Return the script of the panel as a function of its own."""
        prefix = f"{self.scope}-" if self.scope else ""
        given = (
            f'const data = JSON.parse(document.getElementById("data").textContent)[{script_json(self.key)}];\n'
            f"const root = document.getElementById({script_json(self.scope)}) ?? document;\n"
            f"const byId = (name) => document.getElementById({script_json(prefix)} + name);"
        )
        return f'(() => {{\n"use strict";\n{given}\n{self.panel.script}\n}})();\n' if self.panel.script else ""


def report_html(
    studies: "Sequence[StudyFacts]", facts_of: StageFactsOf = lambda stage: None, name: str | None = None
) -> str:
    """Write the page of a run with one or several searches; `name` is that of the run."""
    first, *more = studies
    if not more:
        return page_html(first.run, studies, first.contributed, facts_of)
    runs = [one.run for one in studies]
    together = zip(*(one.stages for one in runs), strict=True)
    stages = tuple(replace(same[0], done=any(one.done for one in same)) for same in together)
    over, as_of = all(stage.done for stage in stages), max((one.as_of or 0.0 for one in runs), default=0.0) or None
    run = replace(runs[0], name=name or runs[0].name, stages=stages, over=over, as_of=as_of)
    own = [replace(one, run=replace(one.run, command="")) for one in studies]
    return page_html(run, own, first.contributed, facts_of)


def page_html(
    run: RunFacts, studies: "Sequence[StudyFacts]", contributed: Contributions, facts_of: StageFactsOf
) -> str:
    """Put a page together.

    Its policy lets the browser run the scripts of its panels and nothing else, and load nothing from anywhere.
    """
    groups, missing = _groups(run, studies, contributed, facts_of)
    shown = [one for group in groups for one in group]
    plotly = any(one.panel.plotly for one in shown)
    scripts = [one.script for one in shown if one.script]
    if plotly:
        from plotly.offline import get_plotlyjs  # noqa: PLC0415  trainings need none

        scripts.insert(0, get_plotlyjs())
    allowed = " ".join([*(["'unsafe-eval'"] if plotly else []), *map(script_source, scripts)])
    about = studies[0].task if len(studies) == 1 else run.recipe
    return Template(asset("page.html")).substitute(
        title=join(" \N{MIDDLE DOT} ".join(filter(None, [about, run.name]))),
        style="\n".join([asset("page.css"), *dict.fromkeys(one.panel.style for one in shown if one.panel.style)]),
        body=_body(groups, [one.search for one in studies], missing),
        data=script_json({one.key: one.data for one in shown if one.data is not None}),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
        allowed=allowed or "'none'",
    )


def _groups(
    run: RunFacts, studies: "Sequence[StudyFacts]", contributed: Contributions, facts_of: StageFactsOf
) -> tuple[list[list[_Shown]], list[str]]:
    """Fill the panels: those of the run with its only search, and those of each search of several.

    Give also why panels are left out.
    """
    several = len(studies) > 1
    facts = {"run": run} if several or not studies else {"run": run, "study": studies[0]}
    heads = EVERY_SEARCH if len(studies) == 1 else ("run-head",)
    groups = [[_shown(name, PANELS.get(name), facts) for name in (*heads, *EVERY_RUN)]]
    for number, study in enumerate(studies if several else (), 1):
        own = {"study": study}
        groups.append([_shown(name, PANELS.get(name), own, f"search-{number}") for name in EVERY_SEARCH])
    missing = list(contributed.missing)
    for name, stage in contributed.panels.items():
        if any(name == one.name for group in groups for one in group):
            continue
        try:
            panel = PANELS.get(name)
            if panel.source == "study" and several:
                for number, study in enumerate(studies, 1):
                    groups[number].append(_shown(name, panel, {"study": study}, f"search-{number}"))
            else:
                given = {"stage": facts_of(stage)} if panel.source == "stage" else facts
                groups[0].append(_shown(name, panel, given))
        except Exception as error:  # a panel of another package may fail in any way; the page is written all the same
            missing.append(f"The panel {name} of the stage {stage} cannot be shown: {error or type(error).__name__}")
    return [sorted(filter(lambda one: one.content, group), key=lambda one: one.panel.rank) for group in groups], missing


def _shown(name: str, panel: Panel, facts: Mapping[str, Any], scope: str = "") -> _Shown:
    given = facts.get(panel.source)
    content = join() if given is None else join(panel.html(given))
    return _Shown(name, panel, content, panel.data(given) if panel.data is not None and content else None, scope)


def _body(groups: Sequence[Sequence[_Shown]], names: Sequence[str], missing: Sequence[str]) -> Markup:
    sections = _sections(groups[0])
    if groups[1:]:
        links = [tag("a", name, href=f"#{group[0].scope}") for group, name in zip(groups[1:], names, strict=True)]
        searches = [
            tag("article", *(made for _, made in _sections(group)), id=group[0].scope, aria_label=f"Search {name}")
            for group, name in zip(groups[1:], names, strict=True)
        ]
        sections.append((_SEARCHES, join(tag("nav", "Searches: ", *links, class_="searches"), *searches)))
        sections.sort(key=lambda ranked: ranked[0])
    lines = [tag("li", line) for line in missing]
    note = tag("section", tag("h2", "Left out"), tag("ul", *lines), id="left-out") if lines else join()
    return join(*(made for _, made in sections[:-1]), note, *(made for _, made in sections[-1:]))


def _sections(shown: Sequence[_Shown]) -> list[tuple[int, Markup]]:
    """Give the panels as elements with their ranks; those among the plots stand inside of the panel with plots."""
    plots = join(*(one.section for one in shown if one.panel.place == "plots"))
    page = [(one.panel.rank, one.section) for one in shown if one.panel.place == "page"]
    inside = [(rank, Markup(section.replace(PLOTS, plots))) for rank, section in page]
    return inside if inside != page or not plots else [*inside, (_SEARCHES, plots)]
