"""What a user would pick instead: Torch-Pruning, or a model with fewer layers, distilled as the super-network is.

Rivals train all their weights, the embedding too, which the super-network leaves as it is: where that helps, it helps
them. Layers are whole, so that fewer of them often cost less than the share allows: of six, a quarter is one (17 %).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from compress_kit.bench import SHARES, Bench, Row
from compress_kit.pruned import pruned_to
from formwright.nn.build import build
from formwright.nn.task_model import TaskModel
from formwright.train.device import threads
from formwright.train.distil import ScoreStudent, distilled
from formwright.train.fit import task_stream
from formwright.train.loop import train

HALF = 0.5
Smaller = Callable[[Bench, float], tuple[nn.Module, Row]]  # gives a model within a share of the MACs, yet to be trained


def rival(bench: Bench, name: str, share: float, steps: int) -> Row:
    """Make a rival within a share of the MACs, train it for some steps, and judge it."""
    began, label = time.perf_counter(), f"{name}-{share:.0%}-{steps}"
    model, facts = RIVALS[name](bench, share)
    assert facts["macs"] <= 1.01 * share, f"{name} has {facts['macs']:.1%} of the MACs, not {share:.0%}"
    _distil(bench, model, label, steps)
    found = bench.judged(model.eval(), label) | facts | {"steps": steps, "seconds": time.perf_counter() - began}
    shutil.rmtree(bench.checkpoints(label), ignore_errors=True)
    return found


def rival_front(bench: Bench, name: str) -> Row:
    """Make a rival for each share of the MACs; all of them together have the steps of the super-network."""
    steps = max(1, bench.steps() // len(SHARES))
    at = {}
    for share in SHARES:
        arm = f"{name}-{share:.0%}-{steps}"
        at[f"{share:.0%}"] = bench.kept(arm, lambda share=share: rival(bench, name, share, steps))  # type: ignore[misc]
    return {"at": at, "hypervolume": bench.volumes(at)}


def _distil(bench: Bench, model: nn.Module, name: str, steps: int) -> None:
    """Train a model with the mix and the recipe of the super-network."""
    recipe = bench.recipe(steps)
    prepared, student = bench.prepared, ScoreStudent(model, bench.heard)
    with bench.conduct(name, bench.checkpoints(name), steps) as run, threads(bench.setting.threads):
        loss = distilled(prepared.task.kind, bench.mix)
        train(student, task_stream(prepared, recipe), loss, recipe, run.saving, run.after_step)


def _fewer_layers(bench: Bench, share: float) -> tuple[nn.Module, Row]:
    """Keep layers of the teacher at equal distances, as DistilBERT does: as many as the share allows."""
    card, known = bench.card, bench.teacher
    assert card.encoder is not None
    layers = card.encoder.layers
    number = max(1, int(share * len(layers) + 1e-9))
    kept = [round(index) for index in torch.linspace(0, len(layers) - 1, number).tolist()]
    smaller = replace(card, encoder=replace(card.encoder, layers=tuple(layers[index] for index in kept)))
    model = build(smaller, known.transformer.settings, known.spec, 0)
    assert isinstance(model, TaskModel)
    model.load_state_dict(_moved(known.state_dict(), kept))
    return model, {"macs": bench.share(smaller), "params": _params(model)}


def _moved(weights: dict[str, Tensor], kept: list[int]) -> dict[str, Tensor]:
    """Name the tensors of the kept layers by their new places."""
    places = {
        f"transformer.encoder.layers.{old}.": f"transformer.encoder.layers.{new}." for new, old in enumerate(kept)
    }
    found = {}
    for name, tensor in weights.items():
        prefix = next((old for old in places if name.startswith(old)), None)
        if prefix is not None:
            found[places[prefix] + name.removeprefix(prefix)] = tensor
        elif ".encoder.layers." not in name:
            found[name] = tensor
    return found


def _torch_pruning(kind: str) -> Smaller:
    def smaller(bench: Bench, share: float) -> tuple[nn.Module, Row]:
        found = pruned_to(bench, kind, share)
        untrained = bench.validated(found.model)
        facts = {"macs": found.share, "ratio": found.ratio, "untrained": untrained, "params": _params(found.model)}
        return found.model, facts

    return smaller


def _params(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


RIVALS: dict[str, Smaller] = {
    "torch-pruning-magnitude": _torch_pruning("magnitude"),
    "torch-pruning-taylor": _torch_pruning("taylor"),
    "fewer-layers": _fewer_layers,
}
NEED_PRUNING = ("torch-pruning-magnitude", "torch-pruning-taylor")
