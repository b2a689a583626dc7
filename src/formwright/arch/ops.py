"""The vocabulary: the operations that come with the package by name, and the places where any operation may stand."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated

from formwright.arch.discover import all_operations
from formwright.arch.operations.attention import Attention, CrossAttention
from formwright.arch.operations.base import Heads, Operation, Place, Relative, Swatch
from formwright.arch.operations.convolution import (
    Convolution,
    DynamicConvolution,
    GatedLinearUnit,
    LightweightConvolution,
    SeparableConvolution,
)
from formwright.arch.operations.identity import Identity
from formwright.arch.operations.op_graph import OpGraph
from formwright.arch.operations.transform import RelativeAttention, Transform
from formwright.core.codec import OpenUnion


@lru_cache(maxsize=8)
def operations_at(place: Place) -> Mapping[str, type[Operation]]:
    """Return the operations, ours and those of installed packages, that may stand at a place, by type."""
    return {name: kind for name, kind in all_operations().items() if place in kind.PLACES}


Mixer = Annotated[Operation, OpenUnion(lambda: operations_at("mixer"))]
BranchOperation = Annotated[Operation, OpenUnion(lambda: operations_at("branch"))]
CrossOperation = Annotated[Operation, OpenUnion(lambda: operations_at("cross"))]

__all__ = [
    "Attention", "BranchOperation", "Convolution", "CrossAttention", "CrossOperation", "DynamicConvolution",
    "GatedLinearUnit", "Heads", "Identity", "LightweightConvolution", "Mixer", "OpGraph", "Operation", "Place",
    "Relative", "RelativeAttention", "SeparableConvolution", "Swatch", "Transform", "all_operations", "operations_at",
]  # fmt: skip
