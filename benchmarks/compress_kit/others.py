"""What a user would pick instead: Torch-Pruning, or a model with fewer layers, both distilled as long."""

from __future__ import annotations

import copy
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from compress_kit.bench import Bench, Row
from formwright.compress.trainings import network_recipe
from formwright.nn.build import build
from formwright.nn.hf.stock import export_stock
from formwright.nn.task_model import TaskModel
from formwright.train.batch import Batch
from formwright.train.device import threads
from formwright.train.distil import Answers, distilled
from formwright.train.fit import task_stream
from formwright.train.judge import judge
from formwright.train.loop import train


class Distilled(nn.Module):
    """A model that is shown the teacher's answers; any module that reads what our models read."""

    def __init__(self, model: nn.Module, teacher: TaskModel) -> None:
        super().__init__()
        self.model = model
        self._teacher = (teacher.eval(),)

    def forward(self, *inputs: Any) -> Answers:
        with torch.no_grad():
            wanted = self._teacher[0](*inputs)
        nothing = wanted.new_zeros(())
        return Answers(self.model(*inputs), wanted, nothing, nothing)


def distil(bench: Bench, model: nn.Module, name: str) -> None:
    """Train a model with the mix, the recipe and the steps of the super-network."""
    recipe = network_recipe(bench.method.training.recipe, bench.plan.network_steps, bench.method)
    prepared = bench.started.begun.prepared
    with bench.conduct(name, bench.folders.checkpoints(name), recipe.steps) as run, threads(bench.setting.threads):
        loss = distilled(prepared.task.kind, bench.method.mix)
        train(Distilled(model, bench.teacher), task_stream(prepared, recipe), loss, recipe, run.saving, run.after_step)


def fewer_layers(bench: Bench, share: float) -> Row:
    """Keep every other layer of the teacher, as DistilBERT does, and distil."""
    began = time.perf_counter()
    card, known = bench.card, bench.teacher
    assert card.encoder is not None
    layers = card.encoder.layers
    kept = [round(index) for index in torch.linspace(0, len(layers) - 1, max(1, round(share * len(layers)))).tolist()]
    smaller = replace(card, encoder=replace(card.encoder, layers=tuple(layers[index] for index in kept)))
    model = build(smaller, known.transformer.settings, known.spec, 0)
    assert isinstance(model, TaskModel)
    model.load_state_dict(_moved(known.state_dict(), kept))
    distil(bench, model, f"fewer-layers-{share:.0%}")
    return bench.judged(model.eval(), f"fewer-layers-{share:.0%}") | {"seconds": time.perf_counter() - began}


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


class Stock(nn.Module):
    """A model of transformers that reads what our models read."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor, mask: Tensor | None = None, types: Tensor | None = None, *_: Any) -> Tensor:
        mask = torch.ones_like(inputs) if mask is None else mask.long()
        return self.model(input_ids=inputs, attention_mask=mask, token_type_ids=types).logits  # type: ignore[no-any-return]


def torch_pruning(bench: Bench, kind: str, share: float) -> Row:
    """Prune the teacher once with Torch-Pruning to a share of the MACs, and distil."""
    began = time.perf_counter()
    ratio, model = _ratio_for(bench, kind, share)
    found = _macs(model, bench.setting.length)
    stock = Stock(model)
    before = judge(stock, bench.started.begun.prepared, bench.started.begun.prepared.validation)
    distil(bench, stock, f"torch-pruning-{kind}-{share:.0%}")
    prepared = bench.started.begun.prepared
    scores = judge(stock, prepared, prepared.validation)
    from formwright.tasks.test_split import open_test  # the benchmark's own look at the test rows

    tested = judge(stock, prepared, prepared.part(open_test(prepared.task))) if prepared.task.has_test else {}
    metric = prepared.task.metric
    return {
        "validation": scores[metric],
        "test": tested.get(metric),
        "macs": found / _macs(_stock(bench), bench.setting.length),
        "untrained": before[metric],
        "ratio": ratio,
        "seconds": time.perf_counter() - began,
    }


def _stock(bench: Bench) -> Any:
    from transformers import AutoModelForSequenceClassification

    with tempfile.TemporaryDirectory() as folder:
        path = export_stock(copy.deepcopy(bench.teacher), Path(folder) / "model")
        return AutoModelForSequenceClassification.from_pretrained(path, attn_implementation="eager")


def _ratio_for(bench: Bench, kind: str, share: float) -> tuple[float, Any]:
    """Find by bisection the pruning ratio that leaves a share of the MACs."""
    full = _macs(_stock(bench), bench.setting.length)
    low, high, best = 0.0, 0.9, None
    for _ in range(7):
        ratio = (low + high) / 2
        model = _pruned(bench, kind, ratio)
        left = _macs(model, bench.setting.length) / full
        if left <= share and (best is None or left > best[2]):
            best = (ratio, model, left)
        low, high = (ratio, high) if left > share else (low, ratio)
    assert best is not None
    return best[0], best[1]


def _pruned(bench: Bench, kind: str, ratio: float) -> Any:
    import torch_pruning as pruning

    model = _stock(bench).eval()
    batch = _batch(bench)
    example = {"input_ids": batch.inputs[:2], "attention_mask": torch.ones_like(batch.inputs[:2])}
    layers = model.bert.encoder.layer
    heads = {
        one: model.config.num_attention_heads
        for layer in layers
        for one in (layer.attention.self.query, layer.attention.self.key, layer.attention.self.value)
    }
    kinds = {
        "magnitude": pruning.importance.GroupMagnitudeImportance,
        "taylor": pruning.importance.GroupTaylorImportance,
    }
    pruner = pruning.pruner.BasePruner(
        model,
        example,
        importance=kinds[kind](),
        pruning_ratio=ratio,
        ignored_layers=[model.classifier],
        num_heads=heads,
        prune_num_heads=True,
        prune_head_dims=False,
        head_pruning_ratio=ratio,
        output_transform=lambda out: out.logits.sum(),
    )
    if kind == "taylor":
        _gradients(bench, model)
    pruner.step()
    for layer in layers:
        attention = layer.attention.self
        attention.num_attention_heads = pruner.num_heads[attention.query]
        attention.attention_head_size = attention.query.out_features // attention.num_attention_heads
        attention.all_head_size = attention.query.out_features
    model.zero_grad()
    return model


def _gradients(bench: Bench, model: Any, batches: int = 8) -> None:
    """Sum up gradients of the task's loss over some batches, by which Taylor scores weights."""
    stream = task_stream(bench.started.begun.prepared, bench.method.training.recipe)
    stock = Stock(model).eval()
    for step in range(batches):
        batch = stream.batch(step)
        scores = stock(batch.inputs, batch.mask, batch.types)
        torch.nn.functional.cross_entropy(scores, batch.labels).backward()


def _batch(bench: Bench) -> Batch:
    return task_stream(bench.started.begun.prepared, bench.method.training.recipe).batch(0)


def _macs(model: Any, length: int) -> float:
    """Count multiply-accumulates of a BERT of transformers, whatever sizes its maps have, as our convention does."""
    total = 0.0
    for layer in model.bert.encoder.layer:
        attention = layer.attention
        maps = (attention.self.query, attention.self.key, attention.self.value, attention.output.dense)
        for one in (*maps, layer.intermediate.dense, layer.output.dense):
            total += length * one.in_features * one.out_features
        total += 2 * length * length * attention.self.value.out_features
    pooler = model.bert.pooler.dense
    return total + pooler.in_features * pooler.out_features
