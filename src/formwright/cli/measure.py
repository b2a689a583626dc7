"""`formwright measure`: latency, memory and size of a model on this machine."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from formwright.cli.options import MEASUREMENT, RUNNING, AsJson, CardOrFolder, flag
from formwright.cli.output import echo, print_json, print_table

if TYPE_CHECKING:
    from formwright.arch.card import Card


RuntimeName = StrEnum("RuntimeName", ["torch", "onnxruntime", "openvino"])
_LENGTH = "Tokens in a row (default: the length that a delivered model was trained with, else 128)."
_TOKENS = "Tokens to write after a row is read, as a translation model does (default: one forward pass)."
_RUNTIME = "Runtime: torch, or the one that an exported folder is for."


def measure(
    source: CardOrFolder,
    batch: Annotated[int, flag("Rows in a batch.", MEASUREMENT, min=1)] = 1,
    length: Annotated[int | None, flag(_LENGTH, MEASUREMENT, min=1)] = None,
    threads: Annotated[int, flag("Threads used for computing.", RUNNING, min=1)] = 1,
    runtime: Annotated[RuntimeName | None, flag(_RUNTIME, RUNNING)] = None,
    device: Annotated[str, flag("Device of torch: cpu, cuda, mps or auto.", RUNNING)] = "cpu",
    tokens: Annotated[int, flag(_TOKENS, MEASUREMENT, min=0)] = 0,
    beams: Annotated[int, flag("Beams of the text that is written.", MEASUREMENT, min=1)] = 1,
    runs: Annotated[int, flag("Number of timed runs.", MEASUREMENT, min=2)] = 50,
    as_json: AsJson = False,
) -> None:
    """Measure a model on this machine: latency with its 90 % interval, peak memory, parameters and MACs."""
    from formwright.nn.measurement import TimingSettings
    from formwright.pipeline.named_model import USUAL_LENGTH, measure_model, trained_length
    from formwright.train.device import choose_device

    read = length or trained_length(source) or USUAL_LENGTH
    chosen = choose_device(device).type
    trial = TimingSettings(batch, read, threads, runs, device=chosen, tokens=tokens, beams=beams)
    card, facts = measure_model(source, trial, None if runtime is None else runtime.value)
    if as_json:
        print_json(facts)
    else:
        _print(facts, card)


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
    written = f" and writing {facts['tokens']} tokens with beam {facts['beams']}" if facts["tokens"] else ""
    each = f"{facts['batch']} x {size}{written}"
    threads = "1 thread" if facts["threads"] == 1 else f"{facts['threads']} threads"
    echo(f"{facts['runs']} runs in {facts['runtime']}, each {each}, {threads}, {facts['cpu']}")
    if facts["busy"]:
        waited = f", {facts['waited']:.0%} of the time was spent waiting for a processor" if facts["waited"] else ""
        echo(
            f"the machine is busy with other work{waited}: the latency is that of the quietest of several windows "
            f"(spread {facts['spread']:.0%}); for an exact figure measure again when the machine is idle"
        )
