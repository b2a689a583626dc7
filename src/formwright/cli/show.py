"""`formwright show`: a space's size and samples, a design's drawing and costs, a task's rows, or a run's trials."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from formwright.cli.options import (
    OUTPUT,
    SAMPLES,
    AsJson,
    Data,
    Label,
    OfficialDev,
    Series,
    TaskKind,
    Text,
    argument,
    flag,
)
from formwright.cli.output import echo, large, print_drawing, print_json, print_json_with, print_table, write_file
from formwright.cli.show_run import is_run, run_without_study, show_run, show_study
from formwright.cli.show_task import PREFIX, show_task
from formwright.core.errors import IllegalInput
from formwright.pipeline.designs import NamedCard, find

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.space.space import Space


@dataclass(frozen=True)
class _ShowOptions:
    """What the user asked for in addition to the name."""

    sample: int
    seed: int
    length: int
    svg: Path | None
    as_json: bool


_NAME = "A space, a card or its JSON file, task:NAME_OR_FILE, a run's folder, or a study's DATABASE_URL#NAME."


def show(
    name: Annotated[str, argument(_NAME, "NAME_OR_FILE")],
    sample: Annotated[int, flag("Draw N designs of a space.", SAMPLES, min=0, max=1_000_000)] = 0,
    seed: Annotated[int, flag("Random seed of the samples.", SAMPLES, min=0)] = 0,
    length: Annotated[int, flag("Tokens in a row, for counting operations.", SAMPLES, min=1, max=10**12)] = 128,
    svg: Annotated[Path | None, flag("Also write the drawing to this SVG file.", OUTPUT)] = None,
    data: Data = None,
    official_dev: OfficialDev = False,
    text: Text = "",
    label: Label = "",
    task_kind: TaskKind = "",
    series: Series = "",
    as_json: AsJson = False,
) -> None:
    """Show a space (size, genes, samples), a design (drawing, costs), a task (sizes, examples) or a run (trials)."""
    from formwright.compose import choose_task

    of_task = {"--data": data, "--official-dev": official_dev, "--text": text, "--label": label}
    of_task |= {"--task-kind": task_kind, "--series": series}
    if name.startswith(PREFIX):
        _refuse(name, {"--sample": sample, "--svg": svg})
        task = name.removeprefix(PREFIX)
        choice = choose_task(
            task, data=data, text=text, label=label, task_kind=task_kind, series=series, official_dev=official_dev
        )
        return show_task(choice, as_json)
    _refuse(name, of_task)
    if is_run(name):
        if sample or svg is not None:
            raise IllegalInput(f"--sample and --svg are for spaces and cards only, and {name} is a run")
        run = run_without_study(name)
        return show_study(name, as_json) if run is None else show_run(run, as_json)
    options = _ShowOptions(sample, seed, length, svg, as_json)
    if svg is not None and svg.exists() and Path(name).exists() and svg.samefile(name):
        raise IllegalInput(f"--svg would write its drawing over the card {name}; name another file for it")
    own = Path(name) / "card.json"  # the design of a model, in its folder
    found = find(str(own) if own.is_file() else name)
    if isinstance(found, NamedCard):
        if sample:
            raise IllegalInput(f"{name} is a single design; --sample draws from a space. See `formwright list spaces`.")
        _show_card(found, options)
    else:
        _show_space(found, options)


def _refuse(name: str, options: dict[str, Any]) -> None:
    """Refuse options that are for something else than what is named."""
    given = [option for option, value in options.items() if value]
    if given:
        kind, own = ("tasks", "none") if not name.startswith(PREFIX) else ("spaces and cards", "a task")
        raise IllegalInput(f"{', '.join(given)}: for {kind} only, and {name} is {own}")


def _show_card(named: NamedCard, options: _ShowOptions) -> None:
    from formwright.pipeline.designs import card_facts

    facts = card_facts(named, options.length)
    if options.svg is not None:
        _write_svg(named, options)
    if options.as_json:
        print_json(facts)
    else:
        _print_card(named, facts)


def _print_card(named: NamedCard, facts: dict[str, Any]) -> None:
    from formwright.cost import input_size

    echo(f"{named.name}  ({facts['family']})\n")
    print_drawing(named.card)
    print_table(["cost", ">count"], [(cost, f"{count:,}") for cost, count in facts["costs"].items()])
    echo(f"counted at {input_size(named.card, facts['length'])}")
    echo(f"digest        {facts['digest']}\ngraph digest  {facts['graph_digest']}")


def _show_space(space: "Space", options: _ShowOptions) -> None:
    from formwright.pipeline.designs import card_facts, samples, space_facts

    if options.svg is not None and options.sample != 1:
        raise IllegalInput("--svg holds one drawing; for a space, ask for it with --sample 1")
    drawn: Iterable[tuple[NamedCard, Any]] = samples(space, options.sample, options.seed)
    if options.svg is not None:
        drawn = list(drawn)
        _write_svg(drawn[0][0], options)
    if options.as_json:
        facts = (card_facts(named, options.length) | {"design": design} for named, design in drawn)
        print_json_with(space_facts(space), "samples", facts)
        return
    _print_space(space)
    for named, _ in drawn:
        _print_card(named, card_facts(named, options.length))


def _print_space(space: "Space") -> None:
    from formwright.pipeline.designs import space_facts

    facts = space_facts(space)
    echo(f"{space.name}: {space.about}\n{large(facts['count'])} designs\n")
    rows = []
    for gene in facts["genes"]:
        options = ", ".join(str(option) for option in gene["options"])
        rows.append((gene["where"], " ".join(filter(None, [options, gene["remark"]]))))
    print_table(["gene", "options"], rows)


def _write_svg(named: NamedCard, options: _ShowOptions) -> None:
    from formwright.report.svg import draw_svg

    assert options.svg is not None
    write_file(options.svg, draw_svg(named.card, named.name, costs=_footer(named.card, options.length)))


def _footer(card: "Card", length: int) -> dict[str, str]:
    from formwright.cost import input_size, macs, params

    return {"parameters": f"{params(card):,}", f"MACs at {input_size(card, length)}": f"{macs(card, length):,}"}
