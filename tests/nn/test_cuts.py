"""Cuts, against explicit lists of places and the gradients that autograd gives for them."""

from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
import torch

from formwright.arch.tensors import MEMORY, STREAM, Factor, Tensor
from formwright.core.rng import derive
from formwright.nn.cuts import Start, cut_between, cuts


def packed(heads: int, width: int, stream: int, maps: int = 3) -> Tensor:
    """Queries, keys and values of an attention, head by head."""
    rows = (Factor(heads, "heads"), Factor(maps, cut="whole"), Factor(width, "head width"))
    return Tensor("qkv", (rows, (Factor(stream, STREAM),)), "mixer")


def output(heads: int, width: int, stream: int) -> Tensor:
    return Tensor("out", ((Factor(stream, STREAM),), (Factor(heads, "heads"), Factor(width, "head width"))), "mixer")


def rows_of(source: Tensor, target: Tensor) -> list[int]:
    """List the rows of a packed map that a smaller one has, by the definition of the two ways."""
    (heads, maps, width), (fewer, _, narrower) = (
        [factor.size for factor in tensor.axes[0]] for tensor in (source, target)
    )
    found = []
    for head, part, channel in product(range(fewer), range(maps), range(narrower)):
        if fewer <= heads and narrower <= width:
            old, place = head, channel
        else:
            old, place = divmod(head * narrower + channel, width)
        found.append((old * maps + part) * width + place)
    return found


def weight(tensor: Tensor) -> torch.Tensor:
    return torch.randn(tensor.shape, generator=torch.Generator().manual_seed(0)).requires_grad_()


def is_view(part: torch.Tensor, whole: torch.Tensor) -> bool:
    return part.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()


@pytest.mark.parametrize(
    ("heads", "width", "view"),
    [(8, 16, True), (5, 16, True), (8, 9, False), (3, 7, False), (4, 32, False), (2, 50, False), (16, 8, False)],
)
def test_heads_and_their_widths_are_sliced_or_divided_anew(heads: int, width: int, view: bool) -> None:
    source, target = packed(8, 16, 24), packed(heads, width, 20)
    whole, cut = weight(source), cut_between(source, target)
    assert cut is not None
    part = cut(whole)
    assert part.shape == target.shape
    assert is_view(part, whole) == view
    rows = rows_of(source, target)
    assert torch.equal(part, whole[rows][:, :20])
    outer = torch.randn(part.shape)
    (found,) = torch.autograd.grad(part, whole, outer)
    (expected,) = torch.autograd.grad(whole[rows][:, :20], whole, outer)
    assert torch.equal(found, expected)


@pytest.mark.parametrize(("heads", "width"), [(8, 16), (5, 16), (8, 9), (3, 7), (4, 32), (16, 8)])
def test_numbers_are_written_where_they_are_read(heads: int, width: int) -> None:
    source, target = packed(8, 16, 24), packed(heads, width, 20)
    whole, cut = weight(source), cut_between(source, target)
    assert cut is not None
    part = torch.randn(target.shape)
    expected = whole.detach().clone()
    expected[rows_of(source, target), :20] = part
    cut.write(whole, part)
    assert torch.equal(cut(whole), part)
    assert torch.equal(whole, expected)  # all others stay


@pytest.mark.parametrize(("heads", "width"), [(4, 32), (16, 8), (2, 50), (5, 16)])
def test_the_output_map_reads_the_channels_that_the_packed_map_writes(heads: int, width: int) -> None:
    """The function of a part with other heads depends on no order: all three maps take the same channels."""
    channels = torch.arange(8 * 16.0)
    values = channels.view(8, 1, 16).expand(8, 3, 16).reshape(-1, 1)  # each row of q, k and v carries its channel
    up = cut_between(packed(8, 16, 1), packed(heads, width, 1))
    down = cut_between(output(8, 16, 1), output(heads, width, 1))
    assert up is not None
    assert down is not None
    read = up(values).view(heads, 3, width)
    assert all(torch.equal(read[:, part].flatten(), down(channels[None])[0]) for part in range(3))
    assert is_view(down(channels[None]), channels)


@pytest.mark.parametrize(
    "target",
    [packed(3, 50, 24), packed(9, 16, 24), packed(8, 16, 25), packed(8, 16, 24, maps=2), output(8, 16, 24)],
    ids=["too many channels", "more heads", "wider", "other maps", "other factors"],
)
def test_what_a_tensor_does_not_hold_is_not_found(target: Tensor) -> None:
    assert cut_between(packed(8, 16, 24), target) is None


def test_tensors_of_another_kind_are_not_found() -> None:
    one = packed(8, 16, 24)
    assert cut_between(one._replace(kind=("wma",)), one) is None
    assert cut_between(one._replace(kind=("sdp",)), one._replace(kind=("sdp",))) is not None


def test_kernels_and_tables_are_cut_around_their_centre() -> None:
    large, small, even = (Tensor("kernel", ((Factor(6),), (Factor(size, cut="centred"),))) for size in (7, 3, 4))
    cut, whole = cut_between(large, small), weight(large)
    assert cut is not None
    assert torch.equal(cut(whole), whole[:, 2:5])
    assert is_view(cut(whole), whole)
    assert cut_between(large, even) is None  # no common centre
    assert cut_between(even, even._replace(axes=((Factor(2),), even.axes[1]))) is not None


def test_a_tensor_that_belongs_to_single_heads_is_not_cut_when_heads_are_divided_anew() -> None:
    def part(heads: int, width: int) -> dict[str, Tensor]:
        table = Tensor("table", ((Factor(9, cut="centred"),), (Factor(width, "head width"),)), "mixer")
        other = Tensor("other", ((Factor(width, "head width"),),), "cross")
        return {tensor.name: tensor for tensor in (packed(heads, width, 24), output(heads, width, 24), table, other)}

    large = part(8, 16)
    names = {name: name for name in large}
    assert set(cuts(large, part(6, 12), names)) == {"qkv", "out", "table", "other"}
    assert set(cuts(large, part(16, 8), names)) == {"qkv", "out", "other"}  # each half of a head is another head
    assert set(cuts(large, part(4, 32), names)) == {"qkv", "out"}


def test_names_say_which_tensor_is_read() -> None:
    large = {"layers.4": packed(8, 16, 24)}
    small = {"layers.2": packed(4, 16, 24), "layers.3": packed(4, 16, 24)}
    assert set(cuts(large, small, {"layers.2": "layers.4", "layers.3": "layers.6"})) == {"layers.2"}


@pytest.mark.parametrize(("first", "view"), [(0, True), (3, True), (5, False), (-1, False), (13, False)])
def test_a_start_may_lie_anywhere_and_things_go_round(first: int, view: bool) -> None:
    asked = []

    def start(group: str, given: int, wanted: int) -> int:
        asked.append((group, given, wanted))
        return first if group == "heads" else 0

    source, target = packed(8, 4, 6), packed(5, 4, 6)
    cut, whole = cut_between(source, target, start), weight(source)
    assert cut is not None
    assert asked == [("heads", 8, 5)]  # what is whole is in its own order
    rows = [head % 8 * 12 + row for head in range(first, first + 5) for row in range(12)]
    assert torch.equal(cut(whole), whole[rows])
    assert is_view(cut(whole), whole) == view
    outer = torch.randn(target.shape)
    (found,), (expected,) = (torch.autograd.grad(one, whole, outer) for one in (cut(whole), whole[rows]))
    assert torch.equal(found, expected)


def test_a_decoder_reads_the_numbers_that_its_encoder_gives() -> None:
    start: Start = lambda group, given, wanted: {STREAM: 7}.get(group, 0)  # noqa: E731
    writes, reads = (
        [Tensor("map", ((Factor(5),), (Factor(size, group),))) for size in (9, 4)] for group in (STREAM, MEMORY)
    )
    assert cut_between(*writes, start) == replace(cut_between(*reads, start), resized=frozenset({STREAM}))


def test_every_channel_is_read_as_often_with_starts_that_go_round() -> None:
    """Leading slices visit the first channels in every design; evenly spread starts visit all alike (ViTAS)."""
    options, whole = (2, 4, 6), torch.arange(12)
    visits = torch.zeros(12)
    for turn in range(12):
        for size in options:
            tensors = (Tensor("row", ((Factor(number, "channels"),),)) for number in (12, size))
            cut = cut_between(*tensors, lambda *_, turn=turn: turn)
            assert cut is not None
            visits[cut(whole)] += 1
    assert visits.unique().tolist() == [sum(options)]


def places(given: tuple[Factor, ...], wanted: tuple[Factor, ...]) -> list[int] | None:
    """List the places of an axis one by one, by the definition of cuts; None where there are none."""
    sizes, smaller = [factor.size for factor in given], [factor.size for factor in wanted]
    free = [place for place, factor in enumerate(given) if factor.cut == "leading"]
    spare = [one - other for one, other in zip(sizes, smaller, strict=True)]
    regrouped = min(spare) < 0
    if any(
        more and (regrouped or one.cut == "whole" or more % 2)
        for more, one in zip(spare, given, strict=True)
        if one.cut != "leading"
    ):
        return None
    if regrouped and prod(smaller[place] for place in free) > prod(sizes[place] for place in free):
        return None
    found = []
    for index in np.ndindex(*smaller):
        old = [
            at + (more // 2 if one.cut == "centred" else 0) for at, more, one in zip(index, spare, given, strict=True)
        ]
        if regrouped:
            flat = np.ravel_multi_index([index[place] for place in free], [smaller[place] for place in free])
            for place, at in zip(free, np.unravel_index(flat, [sizes[place] for place in free]), strict=True):
                old[place] = int(at)
        found.append(int(np.ravel_multi_index(old, sizes)))
    return found


def test_random_axes_are_cut_as_defined() -> None:
    """Up to three axes of up to three factors each, of any kind and in any order."""
    complete = regrouped = 0
    for turn in range(1_500):
        rng = derive(turn, "random axes")
        axes = [
            [
                Factor(
                    int(rng.integers(1, 6)), f"group {place}", rng.choice(["leading", "leading", "centred", "whole"])
                )
                for place in range(rng.integers(1, 4))
            ]
            for _ in range(rng.integers(1, 4))
        ]
        smaller = [
            [one._replace(size=one.size if rng.random() < 0.4 else int(rng.integers(1, 6))) for one in axis]
            for axis in axes
        ]
        source, target = (Tensor("one", tuple(map(tuple, sizes))) for sizes in (axes, smaller))
        expected = [places(*pair) for pair in zip(source.axes, target.axes, strict=True)]
        cut = cut_between(source, target)
        assert (cut is None) == (None in expected)
        if cut is not None:
            whole = torch.arange(source.size).view(source.shape)
            assert torch.equal(cut(whole), whole[torch.meshgrid(*map(torch.tensor, expected), indexing="ij")])
            complete += 1
            regrouped += bool(cut.regrouped)
    assert complete > 100
    assert regrouped > 10
