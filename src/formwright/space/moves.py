"""Moves that change exactly one gene, written once for every space.

A move picks an active gene and gives it another of its options. Genes above and beside it keep their values; genes
below it may appear or disappear, because only active genes exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.random import Generator

from formwright.core.errors import IllegalInput
from formwright.space.draw import below
from formwright.space.part import Part


def mutate(part: Part[Any], value: Any, rng: Generator) -> Any:
    """Change one gene: each gene that has another option is equally likely, and so is each other option.

    Genes that the change makes active are drawn uniformly over their designs.
    """
    genes = list(part.genes(value))
    # the first of a random order that can change is uniform among those that can, and asks few genes for their options
    for index in rng.permutation(len(genes)):
        gene = genes[index]
        others = [option for option in gene.options if option != gene.value]
        if others:
            option = others[below(rng, len(others))]
            return part.put(value, gene.path, option, lambda appeared, kept: appeared.sample(rng))
    raise IllegalInput("this design cannot be mutated: none of its genes has another option")


def neighbours(part: Part[Any], value: Any) -> Iterator[Any]:
    """List every design one gene away, each once, always in the same order.

    Genes that a change makes active take their first option; members that a longer repetition adds copy the last one.
    """
    for gene in part.genes(value):
        for option in gene.options:
            if option != gene.value:
                yield part.put(value, gene.path, option, _predictable)


def _predictable(part: Part[Any], kept: tuple[Any, ...]) -> Any:
    return kept[-1] if kept else next(part.enumerate())
