"""Costs by name: published numbers differ because people count differently, so each way has a name.

Costs that are measured on a device are in the same registry.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.records import Measure, Objective
from formwright.core.registry import Registry
from formwright.cost.authors_counters import autoformer_flops, electra_flops, vitas_flops
from formwright.cost.counts import macs, params, params_attention, params_body, params_with_mlm_head

LATENCY = "latency_ms"


@dataclass(frozen=True)
class Convention:
    """Count one cost of a card exactly; `length` is the number of tokens of a row, where it matters."""

    name: str
    unit: str
    about: str
    count: Callable[[Card, int], int]

    def __call__(self, card: Card, length: int = 128) -> Measure:
        """Return the cost of a card; raise `IllegalInput` if the convention does not apply to the design."""
        _check_length(length)
        return Measure(self.count(card, length), self.unit)


class Meter(Protocol):
    """Tell one measured cost of cards: `decided` measures again before a card is rejected."""

    busy: bool

    def __call__(self, card: Card) -> float: ...
    def decided(self, card: Card, keeps: Callable[[float], bool]) -> float: ...


@dataclass(frozen=True)
class MeasuredCost:
    """A cost that is measured on a device. `maker`, a `module:function`, gives the meter for a length and a device.

    `settings` are given to the maker too, and belong to the name: what is measured in another way is another cost.
    """

    name: str
    unit: str
    about: str
    maker: str
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def meter(self, length: int, device: str = "cpu") -> Meter:
        module, _, function = self.maker.partition(":")
        found: Any = getattr(import_module(module), function)(length, device, **self.settings)
        return found  # type: ignore[no-any-return]


PARAMS = Convention(
    "params",
    "parameters",
    "all parameters of the design: embeddings, layers, pooler, classes, and those that a published model leaves idle",
    lambda card, _: params(card),
)

PARAMS_WITH_MLM_HEAD = Convention(
    "params-with-mlm-head",
    "parameters",
    "params without the pooler, with BERT's masked-language-model head tied to the token table",
    lambda card, _: params_with_mlm_head(card),
)

PARAMS_BODY = Convention(
    "params-body",
    "parameters",
    "layers, projections between them and final norms; no embeddings, no heads (as HAT counts)",
    lambda card, _: params_body(card),
)

PARAMS_ATTENTION = Convention(
    "params-attention",
    "parameters",
    "input maps (query, key, value, ...) of all attentions, without their output maps (AutoBERT-Zero's way)",
    lambda card, _: params_attention(card),
)

MACS = Convention(
    "macs",
    "multiply-accumulates",
    "matrix products and convolutions of one forward pass over one sentence, attention scores included",
    macs,
)

FLOPS = Convention("flops", "operations", "2 x macs", lambda card, length: 2 * macs(card, length))

ELECTRA = Convention(
    "electra",
    "operations",
    "the counter of ELECTRA's authors: multiplications and additions, norms, dropout, dense look-up, a classifier",
    electra_flops,
)


AUTOFORMER = Convention(
    "autoformer",
    "multiply-accumulates",
    "the counter of AutoFormer's authors: macs of a vision transformer with norms, a token more in every layer, and "
    "the classifier at every token",
    lambda card, _: autoformer_flops(card),
)


VITAS = Convention(
    "vitas",
    "multiply-accumulates",
    "the counter of ViTAS's authors: macs of a vision transformer without class token, the classifier at every patch",
    lambda card, _: vitas_flops(card),
)

LATENCY_MS = MeasuredCost(
    LATENCY,
    "milliseconds",
    "median time of one forward pass over one row, measured on one thread of the device of the run",
    "formwright.nn.latency:meter",
)

WRITING_MS = MeasuredCost(
    "writing_30x5_ms",
    "milliseconds",
    "median time to read one row and write 30 tokens with 5 beams, measured on one thread of the device (HAT's way)",
    "formwright.nn.latency:meter",
    {"tokens": 30, "beams": 5, "runs": 10},
)

ONNX_MS = MeasuredCost(
    "onnx_batch8_ms",
    "milliseconds",
    "median time of one forward pass over 8 rows in ONNX Runtime, measured on one thread of the processor",
    "formwright.nn.latency:meter",
    {"runtime": "onnxruntime", "batch": 8},
)

_HERE = "formwright.cost.conventions"

COSTS: Registry[Convention | MeasuredCost] = Registry(
    "cost",
    {
        "params": f"{_HERE}:PARAMS",
        "params-with-mlm-head": f"{_HERE}:PARAMS_WITH_MLM_HEAD",
        "params-body": f"{_HERE}:PARAMS_BODY",
        "params-attention": f"{_HERE}:PARAMS_ATTENTION",
        "macs": f"{_HERE}:MACS",
        "flops": f"{_HERE}:FLOPS",
        "electra": f"{_HERE}:ELECTRA",
        "autoformer": f"{_HERE}:AUTOFORMER",
        "vitas": f"{_HERE}:VITAS",
        LATENCY: f"{_HERE}:LATENCY_MS",
        "writing_30x5_ms": f"{_HERE}:WRITING_MS",
        "onnx_batch8_ms": f"{_HERE}:ONNX_MS",
    },
    "formwright.costs",
    (Convention, MeasuredCost),
)


def is_measured(name: str) -> bool:
    return name in COSTS.names() and isinstance(COSTS.get(name), MeasuredCost)


def counted_costs() -> list[str]:
    return [name for name in COSTS.names() if not is_measured(name)]


def cost(card: Card, name: str, length: int) -> float:
    convention = COSTS.get(name)
    if isinstance(convention, MeasuredCost):
        raise IllegalInput(f"{name} is measured on a device, and cannot be counted from a card")
    return float(convention(card, length).value)


def all_costs(card: Card, length: int = 128) -> dict[str, int]:
    _check_length(length)
    counts = {}
    for name in counted_costs():
        try:
            counts[name] = int(cost(card, name, length))
        except IllegalInput:
            continue  # the convention does not apply to this design
    return counts


def _check_length(length: int) -> None:
    if length < 1:
        raise IllegalInput(f"length must be at least 1, not {length}")


def limit(text: str, length: int = 128) -> tuple[str, Callable[[Card], bool]]:
    """Read a limit such as ``params<=5M`` into a name and a predicate on cards, for `Space.restrict`."""
    objective = Objective.parse(text)
    if objective.bound is None:
        raise IllegalInput(f"{text!r} sets no limit; write, for example, 'params<=5M'")
    COSTS.get(objective.name)
    return text, lambda card: objective.meets(cost(card, objective.name, length))
