"""What `formwright show` says of a run without a study: its stages, which of them are done, and what came out."""

from pathlib import Path

from formwright.cli.output import echo, print_json, print_table
from formwright.cli.run_view import print_summaries, summary_data
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.run_folder import DATABASE, DONE, RUN, Record, resume_line


def run_without_study(source: str) -> PipelineRun | None:
    """Give the run in a folder that has no study, or none yet; None for a study."""
    folder = Path(source)
    if "://" in source or not (folder / RUN).is_file() or (folder / DATABASE).is_file():
        return None
    record = Record.read(folder)
    return None if record.storage else PipelineRun(Pipeline.from_json(record.pipeline), folder, record.options)


def show_run(run: PipelineRun, as_json: bool) -> None:
    """Print how far a run is, and what came out where it is over."""
    states = {name: (run.out / name / DONE).is_file() for name in run.pipeline.named}
    if as_json:
        stages = [{"name": name, "done": done} for name, done in states.items()]
        facts = {"kind": "run", "out": str(run.out), "recipe": run.pipeline.recipe, "stages": stages}
        print_json(facts | {"result": summary_data(run) if all(states.values()) else None})
        return
    of_recipe = f" of the recipe {run.pipeline.recipe}" if run.pipeline.recipe else ""
    echo(f"{run.out}: {sum(states.values())} of {len(states)} stages{of_recipe} are done\n")
    about = {name: (type(stage).__doc__ or "").partition("\n")[0] for name, stage in run.pipeline.named.items()}
    rows = [(name, "done" if done else "", about[name]) for name, done in states.items()]
    print_table(["stage", "state", "what it does"], rows)
    if all(states.values()):
        print_summaries(run, as_json)
    else:
        echo(resume_line(run.out))
