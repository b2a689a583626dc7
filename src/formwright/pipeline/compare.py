"""Compare the delivered models of a study with its baseline or its teacher, row by row, and note it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from formwright.core.rng import derive
from formwright.evaluate.evaluation_file import kept_tables
from formwright.nn.hf.readme import put_section
from formwright.pipeline.conclusion import COMPARED, Comparison, comparison_line, score_line
from formwright.pipeline.delivered import Delivered, broken_limits, delivered, reported, reported_split
from formwright.pipeline.run_folder import FINAL
from formwright.pipeline.study_place import Opened
from formwright.study.events import Event
from formwright.study.identity import own_name
from formwright.tasks.bootstrap import Difference, Interval, differences, overlap, sign_of
from formwright.tasks.metrics import METRICS


def note_comparisons(opened: Opened, models: Sequence[Delivered]) -> None:
    """Compare what was delivered with the teacher or the baseline; note what is new, in the log and in model cards."""
    known = delivered(opened)
    other = known.get("teacher") or known.get("baseline")
    metric = opened.search.objectives[0].partition(":")[0]
    if other is None or metric not in METRICS.names():
        return
    before = comparisons(opened.log.read())
    for model in models:
        if model.name != other.name and (found := compared(opened, model, other, metric)) is not None:
            if before.get(model.name) != found:
                opened.log.append("note", own_name(), {COMPARED: asdict(found)})
            put_section(model.path, "Comparison", [describe_comparison(found, model, other)])


def comparisons(events: Iterable[Event]) -> dict[str, Comparison]:
    """Read the noted comparisons, the last one of each model."""
    notes = [event.data[COMPARED] for event in events if event.kind == "note" and COMPARED in event.data]
    return {found.model: found for found in map(Comparison.from_json, notes)}


def compared(opened: Opened, model: Delivered, other: Delivered, metric: str) -> Comparison | None:
    """Compare two models by a metric, on test where both were tested; None where one has no such score."""
    split = "test" if model.test is not None and other.test is not None else "validation"
    one, second = (reported(each, split) for each in (model, other))
    if metric not in one or metric not in second:
        return None
    intervals = [each.evidence[split].intervals[metric] for each in (model, other) if split in each.evidence]
    value = sign_of(metric) * (one[metric] - second[metric])
    both = len(intervals) == len((model, other)) and overlap(*intervals)
    difference = Difference(value, _paired(opened, model, other, metric, split), both)
    return Comparison(model.name, other.name, metric, split, difference)


def _paired(opened: Opened, model: Delivered, other: Delivered, metric: str, split: str) -> Interval | None:
    """Give the interval of the difference, row by row; None where the answers of one are lost."""
    folder = opened.place.folder / FINAL
    one, second = (kept_tables(folder / each.name, split, reported(each, split)) for each in (model, other))
    if one is None or second is None or len(one[metric]) != len(second[metric]):
        return None
    return differences({metric: one[metric]}, {metric: second[metric]}, derive(0, "bootstrap"))[metric]


def describe_comparison(found: Comparison, model: Delivered, other: Delivered) -> str:
    """Say how a model compares, with the share of parameters that it has."""
    scores = [reported(each, found.split)[found.metric] for each in (model, other)]
    evidence = model.evidence.get(found.split)
    beats = None if evidence is None else evidence.beats_majority(found.metric)
    line = comparison_line(found, scores[0], scores[1], beats=beats, other=f"the {other.role}")
    return f"{line}. It has {model.params / other.params:.0%} of the parameters of the {other.role}"


def conclusion(opened: Opened, models: Sequence[Delivered]) -> list[str]:
    """Say of each found model what it scores and how sure that is, and how it compares; the first one first."""
    lines: list[str] = []
    known, noted = delivered(opened), comparisons(opened.log.read())
    wanted = opened.search.objectives[0].partition(":")[0]
    for model in models:
        split = reported_split(model)
        scores = reported(model, split)
        if model.role not in ("best", "front") or not scores:
            continue
        metric = wanted if wanted in scores else next(iter(scores))
        lines.append(f"{model.name}: {score_line(metric, split, scores[metric], model.evidence.get(split))}")
        found = noted.get(model.name)
        if found is not None and found.other in known:
            lines.append(describe_comparison(found, model, known[found.other]))
        lines += [
            f"{model.name} was measured at {limit.name} {model.costs[limit.name]:.4g} when it was delivered, beyond "
            f"the limit {limit}, which it kept in the search. If the machine was busy, measure it again with "
            f"`formwright measure {model.path}`; if not, give a lower limit"
            for limit in broken_limits(opened, model)
        ]
    return lines
