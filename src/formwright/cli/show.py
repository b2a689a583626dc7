"""`formwright show`: a space's size and samples, a design's drawing and costs, a task's rows, or a study's trials."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formwright.cli import panels
from formwright.cli.named import NamedCard, find
from formwright.cli.options import AsJson, Data, OfficialDev
from formwright.cli.output import echo, large, print_drawing, print_json, print_json_with, print_table
from formwright.cli.show_study import is_study, show_study
from formwright.cli.show_task import PREFIX, TaskWishes, show_task
from formwright.cli.task_options import LabelOption, TaskKindOption
from formwright.core.errors import IllegalInput
from formwright.core.files import write_whole

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.space.space import Space


@dataclass(frozen=True)
class _Wishes:
    """What the user asked for beside the name."""

    sample: int
    seed: int
    length: int
    svg: Path | None
    as_json: bool


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME_OR_FILE",
            help="A space, a card or its JSON file, task:NAME_OR_FILE, or a study's folder or DATABASE_URL#NAME.",
        ),
    ],
    sample: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="Draw N designs of a space.", rich_help_panel=panels.SAMPLES)
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the samples.", rich_help_panel=panels.SAMPLES)] = 0,
    length: Annotated[
        int,
        typer.Option(
            min=1, max=10**12, help="Tokens in a row, for counting operations.", rich_help_panel=panels.SAMPLES
        ),
    ] = 128,
    svg: Annotated[
        Path | None, typer.Option(help="Also write the drawing to this SVG file.", rich_help_panel=panels.OUTPUT)
    ] = None,
    data: Data = None,
    official_dev: OfficialDev = False,
    text: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN[,COLUMN]",
            help="Text columns of your own file, separated by commas.",
            rich_help_panel=panels.DATA,
        ),
    ] = None,
    label: LabelOption = "",
    task_kind: TaskKindOption = "",
    as_json: AsJson = False,
) -> None:
    """Show a space (size, genes, samples), a design (drawing, costs), a task (sizes, examples) or a study (trials)."""
    of_task = TaskWishes(data, official_dev, text, label, task_kind)
    if name.startswith(PREFIX):
        _refuse(name, ["--sample"] * bool(sample) + ["--svg"] * bool(svg))
        return show_task(name.removeprefix(PREFIX), of_task, as_json)
    _refuse(name, of_task.given())
    if is_study(name):
        if sample or svg is not None:
            raise IllegalInput(f"--sample and --svg are for spaces and cards only, and {name} is a study")
        return show_study(name, as_json)
    wishes = _Wishes(sample, seed, length, svg, as_json)
    if svg is not None and svg.exists() and Path(name).exists() and svg.samefile(name):
        raise IllegalInput(f"--svg would write its drawing over the card {name}; name another file for it")
    found = find(name)
    if isinstance(found, NamedCard):
        if sample:
            raise IllegalInput(f"{name} is a single design; --sample draws from a space. See `formwright list spaces`.")
        _show_card(found, wishes)
    else:
        _show_space(found, wishes)


def _refuse(name: str, options: list[str]) -> None:
    if options:
        kind, own = ("tasks", "none") if not name.startswith(PREFIX) else ("spaces and cards", "a task")
        raise IllegalInput(f"{', '.join(options)}: for {kind} only, and {name} is {own}")


def _show_card(named: NamedCard, wishes: _Wishes) -> None:
    facts = _facts(named, wishes.length)
    if wishes.svg is not None:
        _write_svg(named, wishes)
    if wishes.as_json:
        print_json(facts)
    else:
        _print_card(named, facts)


def _facts(named: NamedCard, length: int) -> dict[str, Any]:
    from formwright.arch.graph import graph_digest
    from formwright.cost import all_costs

    costs = all_costs(named.card, length)
    return {
        "kind": "card",
        "name": named.name,
        "family": named.card.family,
        "digest": named.card.digest,
        "graph_digest": graph_digest(named.card),
        "length": length,
        "params": costs["params"],
        "macs": costs["macs"],
        "costs": costs,
        "card": named.card.to_json(),
    }


def _print_card(named: NamedCard, facts: dict[str, Any]) -> None:
    from formwright.cost import input_size

    echo(f"{named.name}  ({facts['family']})\n")
    print_drawing(named.card)
    print_table(["cost", ">count"], [(cost, f"{count:,}") for cost, count in facts["costs"].items()])
    echo(f"counted at {input_size(named.card, facts['length'])}")
    echo(f"digest        {facts['digest']}\ngraph digest  {facts['graph_digest']}")


def _show_space(space: "Space", wishes: _Wishes) -> None:
    if wishes.svg is not None and wishes.sample != 1:
        raise IllegalInput("--svg holds one drawing; for a space, ask for it with --sample 1")
    samples: Iterable[tuple[NamedCard, Any]] = _samples(space, wishes)
    if wishes.svg is not None:
        samples = list(samples)
        _write_svg(samples[0][0], wishes)
    if wishes.as_json:
        facts = (_facts(named, wishes.length) | {"design": design} for named, design in samples)
        print_json_with(_space_facts(space), "samples", facts)
        return
    _print_space(space)
    for named, _ in samples:
        _print_card(named, _facts(named, wishes.length))


def _samples(space: "Space", wishes: _Wishes) -> Iterator[tuple[NamedCard, Any]]:
    """Draw designs one at a time, so that any number of them fits into memory, each with its JSON."""
    from formwright.core.rng import derive

    rng = derive(wishes.seed, "show", space.name)
    for index in range(wishes.sample):
        design = space.sample(rng)
        named = NamedCard(f"{space.name}, sample {index} of seed {wishes.seed}", space.card(design))
        yield named, space.to_json(design)


def _space_facts(space: "Space") -> dict[str, Any]:
    from formwright.space.outline import outline

    genes = [
        {"where": line.where, "options": list(line.options), "remark": line.remark} for line in outline(space.root)
    ]
    return {"kind": "space", "name": space.name, "count": space.count(), "about": space.about, "genes": genes}


def _print_space(space: "Space") -> None:
    facts = _space_facts(space)
    echo(f"{space.name}: {space.about}\n{large(facts['count'])} designs\n")
    rows = []
    for gene in facts["genes"]:
        options = ", ".join(str(option) for option in gene["options"])
        rows.append((gene["where"], " ".join(filter(None, [options, gene["remark"]]))))
    print_table(["gene", "options"], rows)


def _write_svg(named: NamedCard, wishes: _Wishes) -> None:
    from formwright.report.svg import draw_svg

    assert wishes.svg is not None
    try:
        write_whole(wishes.svg, draw_svg(named.card, named.name, costs=_footer(named.card, wishes.length)))
    except OSError as error:
        raise IllegalInput(f"cannot write {wishes.svg}: {error.strerror or error}") from None


def _footer(card: "Card", length: int) -> dict[str, str]:
    from formwright.cost import input_size, macs, params

    return {"parameters": f"{params(card):,}", f"MACs at {input_size(card, length)}": f"{macs(card, length):,}"}
