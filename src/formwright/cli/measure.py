"""`formwright measure`: what a model costs on this machine."""

import os
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formwright.cli import panels
from formwright.cli.named import NamedCard, find, read_card
from formwright.cli.options import AsJson, CardOrFolder
from formwright.cli.output import echo, print_json, print_table
from formwright.core.errors import IllegalInput

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.nn.measure import Latency, Trial

_LENGTH = 128  # tokens in a row of a design that was trained with no length
_FILES = {"model.onnx": "onnxruntime", "model.xml": "openvino"}


class RuntimeName(StrEnum):
    """What can run a model."""

    TORCH = "torch"
    ONNXRUNTIME = "onnxruntime"
    OPENVINO = "openvino"


def measure(
    source: CardOrFolder,
    batch: Annotated[int, typer.Option(min=1, help="Rows in a batch.", rich_help_panel=panels.MEASUREMENT)] = 1,
    length: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Tokens in a row (default: the length that a delivered model was trained with, else 128).",
            rich_help_panel=panels.MEASUREMENT,
        ),
    ] = None,
    threads: Annotated[
        int, typer.Option(min=1, help="Threads used for computing.", rich_help_panel=panels.RUNNING)
    ] = 1,
    runtime: Annotated[
        RuntimeName | None,
        typer.Option(help="Runtime: torch, or the one that an exported folder is for.", rich_help_panel=panels.RUNNING),
    ] = None,
    device: Annotated[
        str, typer.Option(help="Device of torch: cpu, cuda, mps or auto.", rich_help_panel=panels.RUNNING)
    ] = "cpu",
    runs: Annotated[int, typer.Option(min=2, help="Number of timed runs.", rich_help_panel=panels.MEASUREMENT)] = 50,
    as_json: AsJson = False,
) -> None:
    """Measure a model on this machine: latency with its 90 % interval, peak memory, parameters and MACs."""
    from formwright.nn.measure import Trial
    from formwright.train.device import choose_device
    from formwright.train.loop import enough_memory

    length = length or _trained_length(Path(source)) or _LENGTH
    trial = Trial(batch, length, threads, runs, device=choose_device(device).type)
    file = _exported_file(Path(source))
    if trial.device != "cpu" and (file or runtime not in (None, RuntimeName.TORCH)):
        raise IllegalInput(f"--device {device} is for models that run in torch; other runtimes use the processor")
    with enough_memory(f"by a row of {length:,} tokens; measure a shorter one with --length"):
        name, card, latency = _measure_file(file, runtime, trial) if file else _measure_model(source, runtime, trial)
    facts = _facts(name, card, trial, latency)
    if as_json:
        print_json(facts)
    else:
        _print(facts, card)


def _trained_length(folder: Path) -> int | None:
    """Give the length that a delivered folder was trained and judged with; None where it says none."""
    from formwright.nn.hf.beside import read_evaluation

    evaluation = read_evaluation(folder) if os.path.isdir(folder) else None
    found = None if evaluation is None else evaluation.get("length")
    return found if isinstance(found, int) and found > 0 else None


def _exported_file(folder: Path) -> Path | None:
    """Find the file for a runtime in a folder that `formwright export` wrote."""
    return next((folder / name for name in _FILES if os.path.isfile(folder / name)), None)


def _measure_file(file: Path, runtime: RuntimeName | None, trial: "Trial") -> tuple[str, "Card", "Latency"]:
    from formwright.nn.hf.folders import CARD
    from formwright.nn.measure import measure_file

    own = _FILES[file.name]
    if runtime is not None and runtime.value != own:
        raise IllegalInput(f"{file} runs in {own}, not in {runtime.value}; measure the folder it was exported from")
    card = read_card(file.parent / CARD).card
    return file.parent.name, card, measure_file(file, card, trial)


def _measure_model(source: str, runtime: RuntimeName | None, trial: "Trial") -> tuple[str, "Card", "Latency"]:
    from formwright.nn import measure as measuring
    from formwright.nn.build import build
    from formwright.nn.deploy.interface import card_of

    if os.path.isdir(source):  # says no to a name that is too long
        from formwright.nn.hf.load import from_hf

        name, model = Path(source).name, from_hf(Path(source)).model()
    else:
        found = find(source)
        if not isinstance(found, NamedCard):
            raise IllegalInput(f"{source} is a space of designs; measure one of them, or a published card")
        name, model = found.name, build(found.card)
    latency = measuring.measure(model, trial, (runtime or RuntimeName.TORCH).value)
    return name, card_of(model), latency


def _facts(name: str, card: "Card", trial: "Trial", latency: "Latency") -> dict[str, Any]:
    from formwright.cost import macs, params

    return {
        "name": name,
        "family": card.family,
        "digest": card.digest,
        "batch": trial.batch,
        "length": trial.length,
        "params": params(card),
        "macs": macs(card, trial.length),
        **asdict(latency),
    }


def _print(facts: dict[str, Any], card: "Card") -> None:
    from formwright.cost import input_size

    size = input_size(card, facts["length"])
    memory = facts["peak_memory_mb"]
    rows = [
        ("parameters", f"{facts['params']:,}"),
        (f"MACs at {size}", f"{facts['macs']:,}"),
        ("peak memory", "not known on this system" if memory is None else f"{memory:,.1f} MB"),
        ("latency", f"{facts['median_ms']:,.3f} ms"),
        ("90 % of the runs", f"{facts['low_ms']:,.3f} to {facts['high_ms']:,.3f} ms"),
    ]
    print_table([facts["name"], ">measured"], rows)
    threads = "1 thread" if facts["threads"] == 1 else f"{facts['threads']} threads"
    echo(f"{facts['runs']} runs in {facts['runtime']}, each {facts['batch']} x {size}, {threads}, {facts['cpu']}")
    if facts["busy"]:
        waited = f", {facts['waited']:.0%} of the time was spent waiting for a processor" if facts["waited"] else ""
        echo(
            f"the machine is busy with other work{waited}: the latency is that of the quietest of several windows "
            f"(spread {facts['spread']:.0%}); for an exact figure measure again when the machine is idle"
        )
