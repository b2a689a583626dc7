"""What `--dry-run` prints: the stages of a pipeline with their inputs, time, disk, and the costs of designs."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from formwright.cli.output import echo, print_json, print_table

if TYPE_CHECKING:
    from formwright.pipeline.forecast import StageForecast
    from formwright.pipeline.pipeline import Pipeline
    from formwright.pipeline.run import RunOptions


def print_plan(pipeline: "Pipeline", out: Path, options: "RunOptions", as_json: bool) -> None:
    """Settle and check a pipeline, and print what a run of it would do and take; nothing is written."""
    from formwright.cli.run_view import Terminal
    from formwright.pipeline.forecast import forecast_run
    from formwright.pipeline.run import PipelineRun
    from formwright.pipeline.runner import prepare

    run = PipelineRun(pipeline, out, options, Terminal())
    record = prepare(run)
    stages = forecast_run(run)
    if as_json:
        print_json({"out": str(out), "pipeline": record.pipeline, "stages": [asdict(one) for one in stages]})
        return
    echo(f"{out}: {len(stages)} stages" + (f" of the recipe {pipeline.recipe}" if pipeline.recipe else ""))
    rows = [(one.stage, one.what, ", ".join(one.reads), *_numbers([one])) for one in stages]
    print_table(["stage", "what it does", "reads", ">time", ">disk"], [*rows, ("in all", "", "", *_numbers(stages))])
    for one in stages:
        for name, (least, most) in one.expected.costs.items():
            echo(f"{one.stage}: designs drawn at random have {name} from {least:,.0f} to {most:,.0f}")
    if any(one.expected.seconds is None for one in stages):
        echo("A time or size that is left out is not known before the run.")


def _numbers(stages: "list[StageForecast]") -> tuple[str, str]:
    """Write the time and the disk that stages take, as far as they are known."""
    from formwright.core.text import clock

    seconds = [one.expected.seconds for one in stages if one.expected.seconds is not None]
    disk = [one.expected.disk for one in stages if one.expected.disk is not None]
    more = "> " if 0 < len(disk) < len(stages) else ""
    return (f"about {clock(sum(seconds))}" if seconds else "", f"{more}{sum(disk) / 1e6:,.1f} MB" if disk else "")
