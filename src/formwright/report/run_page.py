"""Write the page of a run: that of its search with the panels of all stages, or these panels alone."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.core.errors import IllegalInput
from formwright.core.files import write_whole
from formwright.core.options import Part, PythonObject
from formwright.pipeline.pipeline import check_version
from formwright.report.facts import study_facts
from formwright.report.page import report_html, run_html
from formwright.report.panels import contributions, parts_in
from formwright.report.run_facts import DONE, RunFacts, stage_facts

if TYPE_CHECKING:
    from formwright.pipeline.run import PipelineRun
    from formwright.pipeline.run_folder import Opened

REPORT = "report.html"


def write_run_page(run: "PipelineRun", path: Path | None = None) -> None:
    """Write the page of a run, at work or over, by default into its folder.

    A run whose search has not begun, and one whose stages have nothing to show, have none.
    """
    path = path or run.out / REPORT
    search: Any = next((stage for stage in run.pipeline if hasattr(stage, "place")), None)
    if search is None:
        _write_stages(run, path)
        return
    place = search.place(run.stage(search))
    if "://" in place.storage or Path(place.storage).is_file():
        with place.open(run=run) as opened:
            write_study_page(opened, path)


def write_study_page(opened: "Opened", path: Path) -> None:
    """Write the page of a study that is open; stages whose parts are not installed are shown from its log alone."""
    check_version(opened.log.config)
    try:
        run = opened.run
    except (IllegalInput, LookupError, ValueError):
        run = None
    at_hand = {} if run is None else _at_hand(run)
    facts = study_facts(opened.log, _space(opened), opened.place.folder, at_hand)
    _write(path, report_html(facts, cache(lambda stage: None if run is None else _facts_of(run, stage))))


def _space(opened: "Opened") -> Any:
    try:
        return opened.space
    except (IllegalInput, LookupError, ValueError):
        return None


def _write_stages(run: "PipelineRun", path: Path) -> None:
    config = run.pipeline.to_json(whole=True)
    used = parts_in(config, _at_hand(run))
    done = {name for name in run.pipeline.named if (run.out / name / DONE).is_file()}
    stages = stage_facts(config, used, done)
    facts = RunFacts(run.out.resolve().name, config, stages, run.command, None, len(done) == len(stages))
    contributed = contributions(used)
    if contributed.panels:
        _write(path, run_html(facts, contributed, cache(lambda stage: _facts_of(run, stage))))


def _facts_of(run: "PipelineRun", name: str) -> Any:
    stage = run.pipeline.named.get(name)
    return None if stage is None or isinstance(stage, PythonObject) else stage.page_facts(run.stage(stage))


def _at_hand(run: "PipelineRun") -> Mapping[str, Any]:
    """Find the classes of stages and searchers that a program gave, by the names that JSON has for them."""
    found: dict[str, Any] = {}
    for stage in run.pipeline:
        found[stage.NAME] = type(stage)
        for part in vars(stage).values():
            kind = getattr(part, "kind", None) if isinstance(part, Part) else None
            if isinstance(kind, type):
                found[part.name] = kind
    return found


def _write(path: Path, page: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, page)
    except OSError as error:
        raise IllegalInput(f"cannot write {path}: {error.strerror or error}; name another file with --out") from None
