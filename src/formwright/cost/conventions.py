"""Counting conventions by name: published numbers differ because people count differently, so each way has a name."""

from collections.abc import Callable
from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.records import Measure
from formwright.core.registry import Registry
from formwright.cost.electra import electra_flops
from formwright.cost.macs import macs
from formwright.cost.params import params, params_attention, params_body, params_with_mlm_head


@dataclass(frozen=True)
class Convention:
    """Count one cost of a card exactly; `length` is the number of tokens in a sentence, where it matters."""

    name: str
    unit: str
    about: str
    count: Callable[[Card, int], int]

    def __call__(self, card: Card, length: int = 128) -> Measure:
        """Return the count of a card; raise `IllegalInput` when the convention does not know such a design."""
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
COSTS: Registry[Convention] = Registry(
    "cost",
    {
        "params": f"{_HERE}:PARAMS",
        "params-with-mlm-head": f"{_HERE}:PARAMS_WITH_MLM_HEAD",
        "params-body": f"{_HERE}:PARAMS_BODY",
        "params-attention": f"{_HERE}:PARAMS_ATTENTION",
        "macs": f"{_HERE}:MACS",
        "flops": f"{_HERE}:FLOPS",
        "electra": f"{_HERE}:ELECTRA",
    },
    "formwright.costs",
    Convention,
)


def all_costs(card: Card, length: int = 128) -> dict[str, int]:
    """Count a card in every convention that knows such a design."""
    _check_length(length)
    counts = {}
    for name in COSTS.names():
        convention = COSTS.get(name)
        try:
            counts[name] = int(convention(card, length).value)
        except IllegalInput:
            continue  # a convention made for other designs has nothing to say about this one
    return counts


def _check_length(length: int) -> None:
    if length < 1:
        raise IllegalInput(f"a sentence has at least one token, not {length}")
