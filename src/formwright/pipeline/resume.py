"""Read a run that stopped, so that it can be resumed or extended."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun, RunOptions
from formwright.pipeline.run_events import extended, last_options, noted
from formwright.pipeline.run_folder import RUN, RunRecord, holds_study
from formwright.pipeline.search import Search
from formwright.pipeline.study_place import find
from formwright.train.device import choose_device, device_name


def resumed_run(
    source: str,
    folder: Path | None,
    limits: Mapping[str, Any],
    device: str,
    options: Mapping[str, Any],
    confirm: Callable[[Any], None] | None,
) -> PipelineRun:
    """Read a run from its folder or its database, with what its searches note when they begin again.

    `limits` are fields of `Stop`, and `options` of `RunOptions`; `confirm` is called with the opened study.
    """
    by_url = "://" in source
    record = None if by_url or not (Path(source) / RUN).is_file() else RunRecord.read(Path(source))
    pipeline = None if record is None else Pipeline.from_json(record.pipeline)
    chosen = (record.options if record is not None else RunOptions()).changed(**options)
    notes: dict[str, Any] = {}
    if record is not None and not record.storage and not holds_study(Path(source)):
        assert pipeline is not None
        pipeline = _limited(pipeline, Path(source), {name: one for name, one in limits.items() if one is not None})
        return PipelineRun(pipeline, Path(source), replace(chosen, ray=None if chosen.ray == "none" else chosen.ray))
    place = find(source, folder, update=True)
    with place.open(update=True) as opened:
        if confirm is not None:
            confirm(opened)
        if by_url:
            opened.make_folder()
        stop = extended(opened, limits)
        if stop != opened.search.stop:
            notes |= noted(stop)
        chosen = last_options(opened.log).changed(**options)
        chosen = replace(chosen, ray=None) if chosen.ray == "none" else chosen
        kept = opened.search.training.device
        if not chosen.ray:  # of a cluster, each worker has a device of its own
            device = choose_device(device or kept).type if device or kept != "auto" else ""
        if device and device_name(device) != kept:
            notes["device"] = device
        pipeline, name = pipeline or opened.pipeline, opened.stage_name
        own: Any = pipeline.named[name]
        search = replace(own, stop=stop, training=replace(own.training, device=device or kept))
        pipeline = pipeline.changed({name: search})
    storage = place.storage if by_url or (record is not None and record.storage) else None
    known = place.name if record is None else record.name
    out = place.folder if record is None else Path(source)
    return PipelineRun(pipeline, out, chosen, storage=storage, study_name=known, notes=notes)


def _limited(pipeline: Pipeline, out: Path, limits: Mapping[str, Any]) -> Pipeline:
    """Give the pipeline of a run whose search has not begun with another end of it."""
    if not limits:
        return pipeline
    searches = pipeline.of_kind(Search)
    if not searches:
        raise IllegalInput(
            f"the run in {out} has no search, so {', '.join(limits)} cannot be set: resume it without these options"
        )
    stop = replace(searches[0].stop, **limits)
    return pipeline.changed({pipeline.name_of(searches[0]): replace(searches[0], stop=stop)})
