"""The teacher as Torch-Pruning cuts it: in one shot, hidden size, heads and channels by the same ratio."""

from __future__ import annotations

import copy
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from compress_kit.bench import Bench
from formwright.nn.hf.stock import export_stock
from formwright.train.fit import task_stream

_HALVINGS, _MOST = 8, 0.95  # of the interval of ratios, and its upper end
_BATCHES = 8  # whose gradients Taylor scores weights by


class Stock(nn.Module):
    """A model of transformers that reads what our models read."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor, mask: Tensor | None = None, types: Tensor | None = None, *_: Any) -> Tensor:
        mask = torch.ones_like(inputs) if mask is None else mask.long()
        return self.model(input_ids=inputs, attention_mask=mask, token_type_ids=types).logits  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Pruned:
    """A pruned model, the ratio it was pruned by, and the share of the MACs that is left."""

    model: Stock
    ratio: float
    share: float


def pruned_to(bench: Bench, kind: str, share: float) -> Pruned:
    """Prune the teacher by the lowest ratio that leaves at most a share of the MACs."""
    ratio = bench.kept(f"ratio-{share:.0%}", lambda: {"ratio": _ratio(bench, share)})["ratio"]
    stock = _stock(bench)
    full, length = stock_macs(stock, bench.length), bench.length
    gradients = _gradients(bench, stock) if kind == "taylor" else {}
    for name, parameter in stock.named_parameters():
        parameter.grad = gradients.get(name)
    _prune(bench, stock, kind, ratio)
    return Pruned(Stock(stock), ratio, stock_macs(stock, length) / full)


def _ratio(bench: Bench, share: float) -> float:
    """Find the ratio by bisection: every layer loses the same one, so that what is left is the same for every kind."""
    stock, length = _stock(bench), bench.length
    wanted = share * stock_macs(stock, length)
    low, high = 0.0, _MOST
    for _ in range(_HALVINGS):
        ratio, model = (low + high) / 2, copy.deepcopy(stock)
        _prune(bench, model, "magnitude", ratio)
        low, high = (ratio, high) if stock_macs(model, length) > wanted else (low, ratio)
    assert high < _MOST, f"no ratio leaves {share:.0%} of the MACs"
    return high  # the last one that left no more


def _stock(bench: Bench) -> Any:
    from transformers import AutoModelForSequenceClassification

    with tempfile.TemporaryDirectory() as folder:
        path = export_stock(copy.deepcopy(bench.teacher), Path(folder) / "model")
        return AutoModelForSequenceClassification.from_pretrained(path, attn_implementation="eager").eval()


def _prune(bench: Bench, model: Any, kind: str, ratio: float) -> None:
    import torch_pruning as pruning

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
    tokens = task_stream(bench.prepared, bench.recipe(1)).batch(0).inputs[:2]
    pruner = pruning.pruner.BasePruner(
        model,
        {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)},
        importance=kinds[kind](),
        pruning_ratio=ratio,
        ignored_layers=[model.classifier],
        num_heads=heads,
        prune_num_heads=True,
        prune_head_dims=False,
        head_pruning_ratio=ratio,
        output_transform=lambda out: out.logits.sum(),
    )
    pruner.step()
    for layer in layers:
        attention = layer.attention.self
        attention.num_attention_heads = pruner.num_heads[attention.query]
        attention.all_head_size = attention.query.out_features
        assert attention.all_head_size == attention.num_attention_heads * attention.attention_head_size
    model.zero_grad()


def _gradients(bench: Bench, model: Any) -> dict[str, Tensor]:
    """Sum up gradients of the task's loss over some batches."""
    stream = task_stream(bench.prepared, bench.recipe(1))
    for step in range(_BATCHES):
        batch = stream.batch(step)
        scores = Stock(model)(batch.inputs, batch.mask, batch.types)
        torch.nn.functional.cross_entropy(scores, batch.labels).backward()
    found = {name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None}
    model.zero_grad()
    return found


def stock_macs(model: Any, length: int) -> float:
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
