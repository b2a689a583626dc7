"""Measure operations on this machine, one by one, so that the latency of any chain of them can be added up."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.cost.operation_times import OperationTimes
from formwright.space.zoo.chains import REAL, Menu, candidate

Measured = Callable[[Card], float]
_ROUNDS = 3  # each in every round, so that a busy moment of the machine does not fall on one of them alone
_COPIES = 6  # of an operation in the model that is measured: one alone is lost in the noise
_FILLER = "separable-3"  # stands between joints: layers that do nothing cannot change the width
_WORDS = 1_000  # looking up a token takes as long in any table


def measured_operations(
    menu: Menu, *, measured: Measured, after: Callable[[int], None] | None = None
) -> OperationTimes:
    """Measure every operation at every width, every width of the token table, and every joint of two widths.

    `after` is told the number of each measurement, from 0 to below `measurements`. A time is what a model takes more
    with the part than without it, and never below 0.
    """
    cards = _cards(menu)
    times = dict.fromkeys(cards, np.inf)
    for turn in range(_ROUNDS):
        for number, (key, card) in enumerate(cards.items()):
            times[key] = min(times[key], measured(card))
            if after is not None:
                after(turn * len(cards) + number)
    bare = {width: float(times["bare", width, 0]) for width in menu.sizes}
    each = {
        (name, width): max(float(times[name, width, 0]) - bare[width], 0.0) / _COPIES
        for name, width, _ in cards
        if name in REAL
    }
    joints = {
        (low, high): _joint(float(times["joint", low, high]) - bare[low], each[_FILLER, low], each[_FILLER, high])
        for name, low, high in cards
        if name == "joint"
    }
    operations = {(name, width): time for (name, width), time in each.items() if width in menu.widths}
    return OperationTimes({width: bare[width] for width in menu.embeddings}, operations, joints)


def _joint(all_layers: float, low: float, high: float) -> float:
    """Give what one joint takes in a model of alternating widths that begins and ends with the lower one."""
    turns = _COPIES // 2
    return max(all_layers - (turns + 1) * low - turns * high, 0.0) / _COPIES


def measurements(menu: Menu) -> int:
    """Count the measurements that a menu takes."""
    return _ROUNDS * len(_cards(menu))


def _cards(menu: Menu) -> dict[tuple[str, int, int], Card]:
    cards = {("bare", width, 0): _card(menu, [candidate("identity", width)]) for width in menu.sizes}
    for width in menu.sizes:
        for name in REAL if width in menu.widths else (_FILLER,):
            cards[name, width, 0] = _card(menu, [candidate(name, width, menu.head)] * _COPIES)
    for low, high in combinations(menu.sizes, 2):
        turns = [candidate(_FILLER, high if number % 2 else low) for number in range(_COPIES + 1)]
        cards["joint", low, high] = _card(menu, turns)
    return cards


def _card(menu: Menu, layers: list[Block]) -> Card:
    words = min(_WORDS, menu.tokens.vocabulary)
    table: TokenEmbedding = replace(menu.tokens, vocabulary=words, width=layers[0].width, factorised=None)
    return Card(encoder=Stack(table, tuple(layers)))
