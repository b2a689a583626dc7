"""Counting conventions by name: published numbers differ because people count differently, so each way has a name."""

from collections.abc import Callable
from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.core.records import Measure, Objective
from formwright.core.registry import Registry
from formwright.cost.macs import macs
from formwright.cost.measured import MeasuredCost
from formwright.cost.params import params, params_attention, params_body, params_with_mlm_head

_DROPOUT = 4
_NORM = 5
_ACTIVATION = 8
_SOFTMAX = 5


def electra_flops(card: Card, length: int = 128) -> int:
    """Count the FLOPs of inference on a classification task the way ELECTRA's authors do.

    The counter knows encoders made of self-attention and one feed-forward layer; any other design is refused.
    """
    if card.family != "encoder" or card.encoder is None or not isinstance(card.encoder.embedding, TokenEmbedding):
        raise IllegalInput(
            f"ELECTRA's counter supports text encoders only; this is a {card.family} design. Use macs or flops."
        )
    if card.encoder.projections:
        raise IllegalInput(
            "ELECTRA's counter supports layers of one width only; this design has several. Use macs or flops."
        )
    width = card.output_width
    blocks = sum(_electra_block(layer, length) for layer in card.encoder.layers)
    classifier = 2 * width**2 + width + _ACTIVATION * width + 2 * width
    return length * (blocks + _electra_embedding(card.encoder.embedding, length) + classifier)


def _electra_block(layer: Layer, length: int) -> int:
    if not isinstance(layer, Block) or not isinstance(layer.mixer, Attention) or len(layer.feed_forward) != 1:
        raise IllegalInput(
            "ELECTRA's counter supports self-attention with one feed-forward layer only. Use macs or flops."
        )
    if layer.mixer.score != "sdp" or layer.mixer.relative is not None:
        raise IllegalInput(
            "ELECTRA's counter supports scaled dot products without relative positions only. Use macs or flops."
        )
    width, heads, inner, hidden = (
        layer.width,
        layer.mixer.heads,
        layer.mixer.heads * layer.mixer.head_width,
        layer.feed_forward[0],
    )
    attention = 3 * (2 * width * inner + inner) + 2 * inner * length + (_SOFTMAX + _DROPOUT + 1) * length * heads
    attention += 2 * width * length + 2 * width**2 + width + (_DROPOUT + 1) * width + _NORM
    feed_forward = 4 * width * hidden + (_ACTIVATION + 1) * hidden + width + (_DROPOUT + 1 + _NORM) * width
    return attention + feed_forward


def _electra_embedding(embedding: TokenEmbedding, length: int) -> int:
    table = embedding.table_width
    lookup = 2 * table * embedding.vocabulary + 2 * table * (length + 2) + 2 * table + (_NORM + _DROPOUT) * table
    return lookup + (2 * embedding.width * table + embedding.width if embedding.factorised else 0)


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
        "latency_ms": "formwright.cost.measured:LATENCY_MS",
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
