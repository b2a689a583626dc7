from collections import Counter
from itertools import count, product

import pytest
import torch

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.heads import HeadSpec
from formwright.arch.tensors import MEMORY
from formwright.core.rng import derive
from formwright.nn.build import build
from formwright.nn.inherit import Reading
from formwright.space.space import Space
from formwright.space.zoo import load_space
from formwright.supernet.cyclic import CyclicOffsets, group_sizes, placed
from formwright.supernet.hull import find_hull
from formwright.supernet.library import extracted

SPACE = load_space("autoformer-nano")
TINY = load_space("autoformer-tiny")


def visits(starts: dict[int, int], given: int, counts: dict[int, int]) -> list[int]:
    """Count how often each thing of a group is read."""
    found: Counter[int] = Counter()
    for size, start in starts.items():
        for step in range(size):
            found[(start + step) % given] += counts[size]
    return [found[place] for place in range(given)]


@pytest.mark.parametrize("sizes", [(16, 24, 32), (1, 2, 3, 4), (120, 240, 360, 480, 768), (5, 7, 13)])
def test_all_channels_are_read_equally_often_and_leading_slices_are_not(sizes: tuple[int, ...]) -> None:
    given, counts = max(sizes), dict.fromkeys(sizes, 1)
    cyclic = visits({**dict(placed(given, counts)), given: 0}, given, counts)
    leading = visits(dict.fromkeys(sizes, 0), given, counts)
    assert max(cyclic) - min(cyclic) <= 1 < max(leading) - min(leading)
    assert sum(cyclic) == sum(leading) == sum(sizes)


@pytest.mark.parametrize(
    ("counts", "most"),
    [
        (
            {1: 300, 2: 100, 3: 100, 4: 10},
            200,
        ),  # where each size counts once, one head is read by 300 more than another
        ({3: 50, 4: 50}, 50),  # nothing can be done: one of four heads is left out by all designs of three
        ({8: 10, 16: 500, 24: 10, 32: 10}, 500),
    ],
)
def test_sizes_that_are_drawn_often_weigh_more(counts: dict[int, int], most: int) -> None:
    given = max(counts)
    found = visits({**dict(placed(given, counts)), given: 0}, given, counts)
    assert max(found) - min(found) <= most
    best = min(  # all starts may be shifted alike, so that the first one may be 0
        max(one) - min(one)
        for starts in product(range(given), repeat=len(counts) - 2)
        for one in [visits(dict(zip(sorted(counts), (0, *starts, 0), strict=True)), given, counts)]
    )
    assert max(found) - min(found) == best


def spread(space: Space, offsets: CyclicOffsets | None) -> dict[str, float]:
    """Say how much oftener than the least read thing of a group the most read one is, over drawn designs."""
    largest, found = find_hull(space).largest, dict[str, Counter[int]]()
    for turn in range(100):
        for _, group, given, size in group_sizes(space.card(space.sample(derive(5, turn), "gene")), largest):
            start = 0 if offsets is None or size == given else offsets(group, given, size)
            found.setdefault(group, Counter()).update((start + step) % given for step in range(size))
    return {group: max(counts.values()) / min(counts.values()) for group, counts in found.items()}


def test_designs_that_are_drawn_read_channels_more_equally_than_with_leading_slices() -> None:
    cyclic, leading = spread(TINY, CyclicOffsets.of(TINY)), spread(TINY, None)
    assert cyclic["stream"] < 1.7  # sizes 192, 216 and 240
    assert leading["stream"] > 2.5
    assert cyclic["channels 0"] < 1.5
    assert leading["channels 0"] > 4
    assert cyclic["heads"] == leading["heads"]  # three or four of four


def test_sizes_that_hardly_any_design_has_do_not_move_the_others() -> None:
    """Deep designs have 16 or 32 of 64 channels here; laid end to end, with the other sizes between, these overlap."""

    def common(card: Card) -> bool:
        layers = card.encoder.layers
        return len(layers) == 1 or all(layer.feed_forward[0] in (16, 32) for layer in layers)

    space = SPACE.restrict("mostly 16 and 32", common)
    assert spread(space, CyclicOffsets.of(space))["channels 0"] < 4
    assert spread(space, None)["channels 0"] > 10


def test_a_decoder_reads_the_channels_of_its_encoder() -> None:
    space = load_space("hat-nano")
    largest, smallest = find_hull(space).largest, find_hull(space).smallest
    assert any(
        factor.group == MEMORY for tensor in tensors_of(smallest).values() for axis in tensor.axes for factor in axis
    )
    assert MEMORY not in {group for _, group, _, _ in group_sizes(smallest, largest)}
    assert MEMORY not in {group for (group, _), _ in CyclicOffsets.of(space).starts}


def test_sizes_are_those_of_the_space_and_the_same_every_time() -> None:
    found = CyclicOffsets.of(SPACE)
    assert found == CyclicOffsets.of(SPACE)
    assert hash(found) == hash(CyclicOffsets.of(SPACE))
    assert [size for size, _ in dict(found.starts)["stream", 32]] == [16, 24]
    assert found("channels of nobody", 8, 4) == 0
    assert found("stream", 32, 20) == found("stream", 32, 24)  # a size that no design has


def test_the_largest_design_is_the_model_and_a_smaller_one_reads_other_channels() -> None:
    hull, reading = find_hull(SPACE), Reading(start=CyclicOffsets.of(SPACE))
    model = build(hull.largest, head=HeadSpec("sequence-classification", 10), seed=1).eval()
    whole = extracted(model, hull.largest, reading).state_dict()
    assert all(torch.equal(weight, whole[name]) for name, weight in model.state_dict().items())
    cards = (SPACE.card(SPACE.sample(derive(0, turn))) for turn in count())
    middle = next(card for card in cards if card.encoder.output_width == 24)  # of 16, 24 and 32
    name = "transformer.encoder.embedding.class_token"
    found = extracted(model, middle, reading).state_dict()[name]
    assert torch.equal(found, torch.cat((model.state_dict()[name][:, 16:], model.state_dict()[name][:, :8]), 1))


def test_a_group_of_a_part_counts_once_whatever_its_tensors() -> None:
    hull = find_hull(SPACE)
    found, tensors = group_sizes(hull.smallest, hull.largest), tensors_of(hull.smallest)
    assert {part for part, *_ in found} == {one.part for one in tensors.values()}
    sizes = [(given, size) for _, group, given, size in found if group == "channels 0"]
    whole, small = (card.encoder.layers[0].feed_forward[0] for card in (hull.largest, hull.smallest))
    assert sizes == [(whole, small)] * len(hull.smallest.encoder.layers)
