"""Sizes that are asked for, and what the parts of a chain cost: parameters counted, milliseconds added up."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.limit_syntax import Amount, WrittenLimit
from formwright.cost import LATENCY, params, params_body
from formwright.cost.latency_tables import OperationTimes
from formwright.search.block_choice import BlockCandidate, Blocks, Floats, Indices
from formwright.space.zoo.chains import REAL, Chain, Menu, candidate

PARAMS = "params"
_FORMS = "5M, 800k, 8ms, or 10M@8ms for both"
_MILLION = 1e6


@dataclass(frozen=True)
class Size:
    """The most that a model may have: parameters, milliseconds, or both; `name` is that of the delivered model.

    A name reads as the same size again.
    """

    name: str
    limits: Mapping[str, float]

    @classmethod
    def parse(cls, text: str) -> Size:
        """Read `5M`, `8ms`, `10M@8ms`, `params<=10M@latency_ms<=8`, or a name such as `10m-8ms`."""
        limits: dict[str, float] = {}
        for part in re.split("[@-]", text.strip()):
            cost, value = _limit(part, text)
            if cost in limits:
                raise IllegalInput(f"the size {text!r} limits {cost} twice; write {_FORMS}")
            limits[cost] = value
        shown = re.sub("params<?=", "", re.sub(r"\s", "", text.lower()))
        return cls(re.sub(r"latency_ms<?=([^@]*?)(ms)?(?=@|$)", r"\1ms", shown).replace("@", "-"), limits)


def _limit(part: str, size: str) -> tuple[str, float]:
    """Read one limit of a size: in full, or without the name that its unit gives away."""
    limit, amount = WrittenLimit.read(part), Amount.read(part)
    if amount is not None:
        limit = WrittenLimit(LATENCY if amount.is_ms else PARAMS, "<=", amount.value, amount.is_share)
    if limit is None or limit.is_share or limit.relation == ">=" or limit.amount <= 0:
        raise IllegalInput(f"cannot read the size {size!r}; write {_FORMS}")
    if limit.name not in (PARAMS, LATENCY):
        raise UnknownName("limit of a size", limit.name, [PARAMS, LATENCY])
    return limit.name, limit.amount


def parse_sizes(texts: Sequence[str]) -> tuple[Size, ...]:
    sizes = tuple(Size.parse(text) for text in texts)
    if not sizes:
        raise IllegalInput("name the sizes of the models, such as --sizes 5M,10M,15M")
    asked = {frozenset(size.limits.items()) for size in sizes}  # 5M and 5000k are one size
    if len(asked) < len(sizes):
        raise IllegalInput(f"the sizes name one size twice: {', '.join(texts)}")
    return sizes


def exceeded(size: Size, costs: Mapping[str, float]) -> list[str]:
    """Name the limits of a size that are not kept; what is not known is not counted."""
    return [name for name, limit in size.limits.items() if costs.get(name, limit) > limit]


def check_range(sizes: Sequence[Size], cost: str, least: float, most: float) -> None:
    """Refuse sizes that no chain can meet, or that all keep, and give the range that can be asked for."""
    for size in sizes:
        limit = size.limits.get(cost)
        if limit is not None and not least <= limit <= most:
            raise IllegalInput(
                f"the size {size.name} cannot be met: with this model, sizes reach from {amount(cost, least, up=True)} "
                f"to {amount(cost, most)}"
            )


def amount(cost: str, value: float, *, up: bool = False) -> str:
    """Write an amount as a size is written, rounded down or up to what can be asked for."""
    factor, unit = (1.0, "ms") if cost == LATENCY else (1e6, "M") if value >= _MILLION else (1e3, "k")
    hundredths = -(-100 * value // factor) if up else 100 * value // factor
    return f"{hundredths / 100:g}{unit}"


Costs = Mapping[str, float]


@dataclass(frozen=True)
class PartCosts:
    """Give the costs of embeddings, of chains, and of joints between two widths."""

    menu: Menu
    times: OperationTimes

    def embedding(self, width: int) -> Costs:
        return {PARAMS: _tables(self.menu.tokens, width), LATENCY: self.times.embeddings[width]}

    def chain(self, chain: Chain) -> Costs:
        layers = [candidate(operation, chain.width, self.menu.head) for operation in chain.operations]
        time = self.times.of_chain(chain.width, chain.operations)
        return {PARAMS: sum(map(_layer, layers)), LATENCY: time}

    def joint(self, _: int, below: int, above: int) -> Costs:
        """Count what joins two widths; nothing is needed where they are the same."""
        if below == above:
            return {PARAMS: 0, LATENCY: 0.0}
        return {PARAMS: (below + 1) * above, LATENCY: self.times.of_joint(below, above)}

    def embeddings(self, losses: Mapping[int, float]) -> tuple[BlockCandidate, ...]:
        """Give the embeddings as the candidates of the lowest block."""
        return tuple(BlockCandidate(loss, self.embedding(width), width) for width, loss in losses.items())

    @property
    def shortest(self) -> list[tuple[Chain, float]]:
        """List the chains of one operation, which no round of shrinking drops, with no loss."""
        return [(Chain(width, (operation,)), 0.0) for width in self.menu.widths for operation in REAL]

    @property
    def ends(self) -> list[tuple[Chain, float]]:
        """List the shortest and the longest chains of one kind of operation, between which all others cost."""
        longest = [(Chain(one.width, one.operations * self.menu.layers), loss) for one, loss in self.shortest]
        return self.shortest if self.menu.layers == 1 else self.shortest + longest

    def extremes(self, cost: str) -> tuple[float, float]:
        """Give the least and the most that a whole chain may cost."""
        return self._extreme(cost, 1), self._extreme(cost, -1)

    def _extreme(self, cost: str, sign: int) -> float:
        """Find the least, or for a sign of -1 the most, by dynamic programming over the width of the last block."""
        lengths = (1, self.menu.layers)
        own = {
            width: min(sign * self.chain(Chain(width, (one,) * length))[cost] for one in REAL for length in lengths)
            for width in self.menu.widths
        }
        best = {width: sign * self.embedding(width)[cost] for width in self.menu.embeddings}
        for number in range(1, self.menu.blocks + 1):
            best = {
                above: min(value + sign * self.joint(number, below, above)[cost] for below, value in best.items())
                + more
                for above, more in own.items()
            }
        return sign * min(best.values())


def untimed(menu: Menu) -> PartCosts:
    """Give costs in which nothing takes any time, for counting parameters before anything is measured."""
    operations = {(operation, width): 0.0 for operation in REAL for width in menu.widths}
    joints = dict.fromkeys(combinations(menu.sizes, 2), 0.0)
    return PartCosts(menu, OperationTimes(dict.fromkeys(menu.embeddings, 0.0), operations, joints))


def blocks_of(
    costs: PartCosts, embeddings: Mapping[int, float], tables: Sequence[Sequence[tuple[Chain, float]]]
) -> Blocks:
    """Give the tables that a whole chain is chosen from; the embedding is the lowest block."""
    candidates = [
        tuple(BlockCandidate(loss, costs.chain(chain), chain.width) for chain, loss in table) for table in tables
    ]
    return Blocks((costs.embeddings(embeddings), *candidates), costs.joint)


def refuse_sizes(sizes: Sequence[Size], teacher: Card, menu: Menu, times: OperationTimes | None = None) -> None:
    """Refuse sizes that no chain has, or that exceed the teacher's own; milliseconds where times are known."""
    least, most = untimed(menu).extremes(PARAMS)
    check_range(sizes, PARAMS, least, min(most, params(teacher)))
    if times is None:
        return
    costs = PartCosts(menu, times)
    check_range(sizes, LATENCY, *costs.extremes(LATENCY))
    ends = blocks_of(costs, dict.fromkeys(menu.embeddings, 0.0), [costs.ends] * menu.blocks)
    for size in sizes:
        ends.refuse(size.limits)


Mask = NDArray[np.bool_]

# NAS-BERT (Xu et al., 2021) halves every bin of similar costs until ten candidates are left in each of ten bins; bins
# by size and latency, and halving by validation loss, are known second-hand. Decided here: a bin is a cell of a grid
# whose axes are cut into equal parts; candidates that were not evaluated stay; of an odd number the middle one stays.
BINS, LEAST = 10, 10


def bins(costs: ArrayLike, parts: int = BINS) -> Indices:
    """Return the bin of each candidate, numbered from 0; `costs` has a row for each, such as its size and latency.

    Candidates that share a bin are alike in every cost. Bins without candidates have no number.
    """
    table: Floats = np.asarray(costs, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise IllegalInput(f"bins need a row of finite costs for each candidate, not an array of shape {table.shape}.")
    if parts < 1:
        raise IllegalInput(f"parts is {parts}; an axis has at least one.")
    if not len(table):
        return np.zeros(0, dtype=np.intp)
    low, extent = table.min(axis=0), np.ptp(table, axis=0)
    shares = np.divide(table - low, extent, out=np.zeros_like(table), where=extent > 0)
    cells = np.minimum((shares * parts).astype(np.intp), parts - 1)  # the largest belongs to the last part
    cell_numbers = np.ravel_multi_index(tuple(cells.T), (parts,) * cells.shape[1])
    return np.unique(cell_numbers, return_inverse=True)[1]


def survivors(losses: ArrayLike, bin_of: ArrayLike, least: int = LEAST) -> Mask:
    """Return who stays after a round: the better half of those judged in each bin, and all who were not judged (NaN).

    No bin falls below `least` candidates because of a round; one that has no more keeps all. Of equals the first stays.
    """
    values: Floats = np.asarray(losses, dtype=np.float64)
    bin_numbers: Indices = np.asarray(bin_of, dtype=np.intp)
    if values.shape != bin_numbers.shape or values.ndim != 1:
        raise IllegalInput(f"there are losses of shape {values.shape} for bins of shape {bin_numbers.shape}.")
    judged = ~np.isnan(values)
    size, known = np.bincount(bin_numbers), np.bincount(bin_numbers, judged)
    drop = np.minimum(known // 2, np.maximum(size - least, 0)).astype(np.intp)
    order = np.lexsort((values, ~judged, bin_numbers))  # bin by bin, best first, who was not judged last
    first = np.concatenate([[0], np.cumsum(size)])[bin_numbers[order]]
    place = np.arange(len(order)) - first
    stays = np.empty(len(values), dtype=bool)
    stays[order] = (place < known[bin_numbers[order]] - drop[bin_numbers[order]]) | ~judged[order]
    return stays


def shortest_stay(costs: PartCosts, parts: int, least: int, alive: Sequence[Chain], losses: Sequence[float]) -> Mask:
    """Tell which chains stay after a round: the better half of each bin of size and latency, and the shortest.

    The shortest stay, so that a size that could be met in the beginning still can.
    """
    table = np.array([[costs.chain(chain)[name] for name in (PARAMS, LATENCY)] for chain in alive])
    stays = survivors(losses, bins(table, parts), least)
    found: Mask = stays | np.array([len(chain.operations) == 1 for chain in alive])
    return found


@cache
def _layer(layer: Block) -> int:
    return params_body(Card(encoder=Stack(TokenEmbedding(2, layer.width), (layer,))))


@cache
def _tables(tokens: TokenEmbedding, width: int) -> int:
    table = replace(tokens, width=width, factorised=None)
    return params(Card(encoder=Stack(table, (candidate("identity", width),))))
