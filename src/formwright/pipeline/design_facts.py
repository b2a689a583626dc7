"""Designs and spaces as plain JSON facts, for the command line and for other programs."""

from collections.abc import Iterator
from typing import Any

from formwright.arch.graph import graph_digest
from formwright.core.rng import derive
from formwright.cost import all_costs
from formwright.pipeline.designs import NamedCard
from formwright.space.outline import outline
from formwright.space.space import Space


def card_facts(named: NamedCard, length: int) -> dict[str, Any]:
    """Give a design with its digests and its costs at so many tokens in a row."""
    costs = all_costs(named.card, length)
    return {
        "kind": "card",
        "name": named.name,
        "family": named.card.family,
        "digest": named.card.digest,
        "graph_digest": graph_digest(named.card),
        "length": length,
        "params": costs["params"],
        "macs": costs["macs"],
        "costs": costs,
        "card": named.card.to_json(),
    }


def space_facts(space: Space) -> dict[str, Any]:
    """Give the size of a space, and its genes with their options."""
    genes = [
        {"where": line.where, "options": list(line.options), "remark": line.remark} for line in outline(space.root)
    ]
    return {"kind": "space", "name": space.name, "count": space.count(), "about": space.about, "genes": genes}


def samples(space: Space, number: int, seed: int) -> Iterator[tuple[NamedCard, Any]]:
    """Draw designs one at a time, so that any number of them fits into memory, each with its JSON."""
    rng = derive(seed, "show", space.name)
    for index in range(number):
        design = space.sample(rng)
        yield NamedCard(f"{space.name}, sample {index} of seed {seed}", space.card(design)), space.to_json(design)
