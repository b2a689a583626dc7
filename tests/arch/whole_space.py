"""What the distances of all pairs of FlexiBERT's designs take."""

import time

from formwright.arch.distance import Distance
from formwright.space.zoo import load_space


def seconds_for_all_pairs(kind: type[Distance]) -> float:
    """Compute the distances of all pairs of the 9,312 designs, and return the processor time of that."""
    space = load_space("flexibert")
    cards = [space.card(design) for design in space.enumerate()]
    started = time.process_time()
    assert kind.of(cards).between(cards, cards).shape == (9312, 9312)
    return time.process_time() - started
