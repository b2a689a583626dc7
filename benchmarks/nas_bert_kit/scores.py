"""Whether the sum of block losses tells good students from bad ones, rounds drop the right ones, and times add up."""

from __future__ import annotations

import numpy as np

from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.cost import LATENCY
from formwright.nn.latency import quick
from formwright.pipeline.blocks_choose import chosen_chain, least_of
from formwright.search.block_choice import Assembly
from formwright.search.chain_costs import PARAMS, bins
from formwright.space.zoo.chains import Chain, chain_card
from formwright.supernet.blockwise import given
from formwright.supernet.chain_rows import read_rows
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import train
from nas_bert_kit.bench import Bench, Row


def drawn(bench: Bench, number: int) -> Assembly:
    """Draw a whole chain: every part of it equally likely among those of its table."""
    rng = derive(bench.seed, "drawn", number)
    return bench.blocks.assembly([int(rng.integers(len(table))) for table in bench.blocks.tables])


def additive(bench: Bench, number: int) -> Row:
    """Compare the sum of a chain's losses with how far the whole is from the teacher."""
    choice = chosen_chain(drawn(bench, number), bench.parts)
    return {"loss": choice.loss, "distance": choice.distance, "params": choice.costs[PARAMS]}


def timed(bench: Bench, number: int) -> Row:
    """Compare the milliseconds of some chains, added up, with those of whole models, measured like delivered ones.

    All are measured in turns, so that a busy moment of the machine does not fall on one of them alone.
    """
    found = [drawn(bench, one) for one in range(number)]
    measured = least_of(quick(bench.source.longest), [_card(bench, one) for one in found])
    both = zip(found, measured, strict=True)
    return {"times": [{"added": one.costs[LATENCY], "measured": time} for one, time in both]}


def _card(bench: Bench, assembly: Assembly) -> Card:
    blocks = [table[place][0] for table, place in zip(bench.tables, assembly.chosen[1:], strict=True)]
    menu = bench.source.menu
    return chain_card(menu, menu.embeddings[assembly.chosen[0]], blocks)


def pairs(bench: Bench, block: int, number: int) -> list[tuple[Chain, Chain]]:
    """Pair chains that the first round kept with chains that it dropped from the same bin."""
    rows = read_rows(bench.round(block, 1))
    costs = [[bench.parts.costs.chain(chain)[name] for name in (PARAMS, LATENCY)] for chain, _ in rows]
    cells = bins(costs, bench.training.bins)
    found = []
    for cell in np.unique(cells):
        here = [row for row, own in zip(rows, cells, strict=True) if own == cell and len(row[0].operations) > 1]
        stay, gone = ([chain for chain, row in here if row["stays"] is kept] for kept in (True, False))
        found += list(zip(stay, gone, strict=False))
    order = derive(bench.seed, "pairs", block).permutation(len(found))
    return [found[place] for place in order[:number]]


def alone(bench: Bench, block: int, chain: Chain, steps: int) -> Row:
    """Train one chain by itself, from fresh weights, and judge it."""
    source, training = bench.source, bench.training
    network = training.network(source, bench.parts.fitted.bases, block)
    network.alive, network.paths = (chain,), 1
    recipe = Hyperparameters(steps, source.stage.batch, training.learning_rate, decay="cosine", seed=bench.seed)
    train(network, source.stream(bench.seed), given, recipe)
    (loss,) = network.losses([chain], source.held_batches(6))
    return {"loss": loss, "width": chain.width, "operations": list(chain.operations)}
