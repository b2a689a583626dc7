from collections import Counter
from itertools import count

import pytest
import torch

from formwright.arch.heads import HeadSpec
from formwright.core.rng import derive
from formwright.nn.build import build
from formwright.nn.inherit import Reading
from formwright.space.zoo import load_space
from formwright.supernet.cyclic import CyclicOffsets
from formwright.supernet.hull import find_hull
from formwright.supernet.library import extracted

SPACE = load_space("autoformer-nano")


def visits(starts: dict[int, int], given: int) -> list[int]:
    """Count by how many sizes each thing of a group is read."""
    found = Counter((start + step) % given for wanted, start in starts.items() for step in range(wanted))
    return [found[place] for place in range(given)]


@pytest.mark.parametrize("sizes", [(16, 24, 32), (1, 2, 3, 4), (120, 240, 360, 480, 768), (5, 7, 13)])
def test_all_channels_are_read_equally_often_and_leading_slices_are_not(sizes: tuple[int, ...]) -> None:
    given, offsets = max(sizes), CyclicOffsets((("channels", sizes),))
    cyclic = visits({size: offsets("channels", given, size) for size in sizes}, given)
    leading = visits(dict.fromkeys(sizes, 0), given)
    assert max(cyclic) - min(cyclic) <= 1 < max(leading) - min(leading)
    assert sum(cyclic) == sum(leading) == sum(sizes)


def test_sizes_are_those_of_the_space_and_the_same_every_time() -> None:
    found = CyclicOffsets.of(SPACE)
    assert found == CyclicOffsets.of(SPACE)
    assert hash(found) == hash(CyclicOffsets.of(SPACE))
    widths = {card.encoder.output_width for card in (find_hull(SPACE).largest, find_hull(SPACE).smallest)}
    assert widths <= {size for _, sizes in found.sizes for size in sizes}
    assert found("channels of nobody", 8, 4) == 0


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
