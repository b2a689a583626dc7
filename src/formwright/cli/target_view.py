"""How models that were delivered for targets are printed: next to their teacher, with what is to be said of them."""

from typing import TYPE_CHECKING, Any

from formwright.cli.cost_columns import size_line
from formwright.cli.output import echo, print_table

if TYPE_CHECKING:
    from formwright.pipeline.delivered import Delivered
    from formwright.pipeline.run_folder import Opened


def remarks_json(opened: "Opened") -> dict[str, list[str]]:
    """Give the remarks on targets, where there are targets."""
    from formwright.pipeline.candidates import remarks

    return {"remarks": remarks(opened)} if opened.deliver.targets else {}


def print_targets(opened: "Opened", models: "list[Delivered]") -> None:
    """Print the models of a study with targets."""
    from formwright.pipeline.candidates import remarks
    from formwright.pipeline.compare import conclusion
    from formwright.pipeline.delivered import reported_split
    from formwright.pipeline.run_folder import REPORT

    metric, split = opened.search.objectives[0].partition(":")[0], reported_split(models[0])
    full = next((model.costs for model in models if model.role == "teacher"), {})
    rows = [_row(model, metric, split, full) for model in models]
    majority = models[0].evidence[split].majority if split in models[0].evidence else None
    if majority is not None:
        rows.append((majority.answer, f"{majority.scores[metric]:.4f}", "", "", "", "", ""))
    heads = ["model", f">{split} {metric}", ">95 % interval", ">parameters", ">MACs", ">ms", "folder"]
    print_table(heads, rows)
    echo(f"the page: {opened.place.folder / REPORT}")
    for line in (size_line(opened, models[0]), *conclusion(opened, models), *remarks(opened)):
        echo(line)


def _row(model: "Delivered", metric: str, split: str, full: Any) -> tuple[str, ...]:
    from formwright.pipeline.conclusion import between
    from formwright.pipeline.delivered import reported

    share = f"{model.costs['macs'] / full['macs']:.0%}" if full.get("macs") else ""
    ms = f"{model.costs['latency_ms']:.2f}" if "latency_ms" in model.costs else ""
    known = model.evidence.get(split)
    interval = "" if known is None else between(known.intervals[metric])
    cells = (f"{model.params:,}", share, ms, model.path)
    return (model.name, f"{reported(model, split)[metric]:.4f}", interval, *cells)
