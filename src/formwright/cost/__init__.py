"""What a design costs, from its card alone: parameters and operations in closed form, counted as the papers count."""

from formwright.cost.authors_counters import electra_flops
from formwright.cost.conventions import (
    COSTS,
    LATENCY,
    Convention,
    MeasuredCost,
    Meter,
    all_costs,
    cost,
    counted_costs,
    is_measured,
    limit,
)
from formwright.cost.counts import (
    input_size,
    macs,
    params,
    params_attention,
    params_body,
    params_with_mlm_head,
)

__all__ = [
    "COSTS", "LATENCY", "Convention", "MeasuredCost", "Meter", "all_costs", "cost", "counted_costs", "electra_flops",
    "input_size", "is_measured", "limit", "macs", "params", "params_attention", "params_body", "params_with_mlm_head",
]  # fmt: skip
