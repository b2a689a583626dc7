"""Libraries of weights: what they hold, how designs read them, and that files give back what they were given."""

from pathlib import Path
from typing import Any

import pytest
import torch

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, LightweightConvolution, Relative
from formwright.arch.tensors import Factor, Tensor
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.build import build
from formwright.nn.settings import Settings
from formwright.space.combinators import Choice, Record
from formwright.space.repeat import Repeat
from formwright.space.space import Space
from formwright.space.zoo import load_space
from formwright.supernet.hull import find_hull, with_raised
from formwright.supernet.library import (
    LIBRARY,
    LOOKED_AT,
    Library,
    LibraryWeights,
    _Gathered,
    count_held,
    extracted,
    library_of,
    take_over,
    views_of,
)

NANO = load_space("flexibert-nano")
HEAD = HeadSpec("sequence-classification", 3)


def drawn(name: str, number: int, seed: int = 1) -> list[Card]:
    space = load_space(name)
    both = ("design", "gene")
    return [space.card(space.sample(derive(seed, "drawn", turn), both[turn % 2])) for turn in range(number)]


@pytest.fixture(scope="module")
def nano() -> LibraryWeights:
    return LibraryWeights.fresh(library_of(NANO, HEAD), HEAD, Settings(dropout=0.0), 3, "width").eval()


@pytest.mark.parametrize("name", ["autoformer-nano", "elastic", "autotinybert", "hat-nano"])
def test_the_library_of_ordered_choices_is_the_largest_design(name: str) -> None:
    largest = find_hull(load_space(name)).largest
    found = Library.of([largest, *drawn(name, 10)])
    assert len(found.tensors) == len(tensors_of(largest))
    if name != "hat-nano":  # whose heads are divided anew, not sliced
        assert found.tensors == tensors_of(largest)


def test_kinds_do_not_share_and_sizes_do() -> None:
    library = library_of(NANO)
    mixers = {stored for stored in library.tensors if stored.startswith("encoder.layers.0.mixer.output.weight@")}
    for kind in ("attention/sdp", "attention/wma", "transform/dft", "transform/dct", "dynamic-convolution/5"):
        assert any(kind in stored for stored in mixers), mixers
    name = "encoder.layers.0.feed_forward.maps.0.weight"
    sizes = {stored: library.tensors[stored].shape for stored in library.tensors if stored.startswith(name)}
    assert set(sizes.values()) == {(128, 64)}
    assert len(sizes) == 2  # stacks of one and of three


def test_kernels_share_numbers_where_they_have_a_common_centre() -> None:
    kernels = [{"kernel": Tensor("kernel", ((Factor(6),), (Factor(size, cut="centred"),)))} for size in (3, 4, 5)]
    library = Library.holding(kernels)
    assert sorted(tensor.shape for tensor in library.tensors.values()) == [(6, 4), (6, 5)]
    assert all(library.holds(one) for one in kernels)


def test_every_place_has_a_projection_where_widths_may_change() -> None:
    seldom = NANO.restrict("one width at the top", lambda card: len({x.width for x in card.encoder.layers[-2:]}) == 1)
    found = {stored.split(".")[2] for stored in library_of(seldom).tensors if ".projections." in stored}
    depth = len(find_hull(NANO).largest.encoder.layers)
    assert found == {str(place) for place in range(1, depth)}


def test_upper_layers_have_tensors_as_large_as_lower_ones() -> None:
    """Samples show the largest tensors of upper layers hardly ever, as only deep designs have them."""
    gathered = _Gathered()

    def part(stack: str, layer: int, size: int, kind: str) -> Tensor:
        path = f"{stack}.layers.{layer}.mixer"
        return Tensor(f"{path}.weight", ((Factor(size),), (Factor(8),)), path, (kind,))

    for one in (part("encoder", 0, 6, "a"), part("encoder", 1, 4, "a"), part("encoder", 1, 9, "b")):
        gathered.add({one.name: one})
    gathered.add({"decoder.layers.1.mixer.weight": part("decoder", 1, 5, "a")})
    gathered.join_places()
    found = gathered.library()
    assert found.holds({"encoder.layers.1.mixer.weight": part("encoder", 1, 6, "a")})
    assert {stored: tensor.shape for stored, tensor in found.tensors.items()} == {
        "encoder.layers.0.mixer.weight": (6, 8),
        "encoder.layers.1.mixer.weight@a": (6, 8),
        "encoder.layers.1.mixer.weight@b": (9, 8),
        "decoder.layers.1.mixer.weight": (5, 8),
    }


def test_projections_of_several_kinds_are_kept_apart() -> None:
    gathered = _Gathered()
    block = Tensor("encoder.layers.3.norm.weight", ((Factor(6),),), "encoder.layers.3")
    axes = [((Factor(size),), (Factor(8),)) for size in (6, 4)]
    for index, (own, kind) in enumerate(zip(axes, ("plain", "gated"), strict=True), start=1):
        part = f"encoder.projections.{index}"
        gathered.add({f"{part}.weight": Tensor(f"{part}.weight", own, part, (kind,)), block.name: block})
    gathered.join_places()
    found = gathered.library()
    for index in (1, 2, 3):
        part = f"encoder.projections.{index}"
        for own, kind in zip(axes, ("plain", "gated"), strict=True):
            wanted = Tensor(f"{part}.weight", own, part, (kind,))
            assert found.holds({wanted.name: wanted})
            assert found.tensors[f"{part}.weight@{kind}"].shape == wanted.shape


def test_designs_that_are_held_are_counted() -> None:
    library = library_of(NANO)
    assert count_held(library, NANO) == LOOKED_AT
    few = Library.of(drawn("flexibert-nano", 30))
    by = ("design", "gene")
    cards = [NANO.card(NANO.sample(derive(0, "held", turn), by[turn % 2])) for turn in range(LOOKED_AT)]
    held = sum(few.holds(tensors_of(card)) for card in cards)
    assert count_held(few, NANO) == held
    assert 0 < held < LOOKED_AT


def test_designs_are_views_through_which_gradients_flow(nano: LibraryWeights) -> None:
    card = drawn("flexibert-nano", 1)[0]
    found = views_of(nano, card)
    memory = {weight.untyped_storage().data_ptr() for weight in nano.parameters()}
    assert found.weights.keys() == dict(build(card, head=HEAD).named_parameters()).keys()
    shared = [view.untyped_storage().data_ptr() in memory for view in found.weights.values()]
    assert sum(shared) > 0.6 * len(shared)  # narrower heads are copies
    sum(view.sum() for view in found.weights.values()).backward()
    reached = {name for name, weight in nano.named_parameters() if weight.grad is not None}
    assert reached == set(nano.library.stored(tensors_of(card, HEAD)).values())
    nano.zero_grad()


def test_an_extracted_design_has_what_it_read(nano: LibraryWeights) -> None:
    for card in drawn("flexibert-nano", 5):
        own, views = dict(extracted(nano, card).named_parameters()), views_of(nano, card).weights
        assert all(torch.equal(own[name], view) for name, view in views.items())


def test_fresh_weights_follow_from_the_seed(nano: LibraryWeights) -> None:
    again, other = (LibraryWeights.fresh(nano.library, HEAD, None, seed, "width") for seed in (3, 4))
    weights = dict(nano.named_parameters())
    assert all(torch.equal(weight, weights[name]) for name, weight in again.named_parameters())
    assert any(not torch.equal(weight, weights[name]) for name, weight in other.named_parameters())
    for name, weight in weights.items():
        if "norm" in name:
            assert weight.unique().tolist() == [1.0 if "weight" in name else 0.0]


def test_a_file_gives_back_what_was_saved(nano: LibraryWeights, tmp_path: Path) -> None:
    nano.save(tmp_path / LIBRARY)
    found = LibraryWeights.load(tmp_path / LIBRARY, HEAD, nano.settings)
    assert found.library.tensors == nano.library.tensors
    assert found.settings == nano.settings != Settings()
    card = drawn("flexibert-nano", 1)[0]
    tokens = torch.randint(1000, (3, 7), generator=torch.Generator().manual_seed(0))
    assert torch.equal(extracted(found, card)(tokens), extracted(nano, card)(tokens))


@pytest.mark.parametrize("content", [b"", b"no tensors", None])
def test_damaged_files_are_refused(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / LIBRARY).write_bytes(content)
    with pytest.raises(IllegalInput, match=LIBRARY):
        LibraryWeights.load(tmp_path / LIBRARY, HEAD, None)


def test_any_design_that_a_library_took_over_answers_as_before(nano: LibraryWeights) -> None:
    tokens = torch.randint(1000, (3, 7), generator=torch.Generator().manual_seed(0))
    for card in drawn("flexibert-nano", 5):
        known = build(card, head=HEAD, seed=8).eval()
        mine = LibraryWeights.fresh(nano.library, HEAD, None, 3, "width")
        assert mine.start_from(dict(known.named_parameters()), tensors_of(card, HEAD)) == len(
            dict(known.named_parameters())
        )
        assert torch.equal(extracted(mine, card)(tokens), known(tokens))


def test_of_a_larger_tensor_the_part_that_both_have_is_taken_over() -> None:
    nano = load_space("autoformer-nano")
    largest, smallest = (tensors_of(card) for card in (find_hull(nano).largest, find_hull(nano).smallest))
    known = {name: torch.rand(tensor.shape) for name, tensor in largest.items()}
    own = {name: torch.zeros(tensor.shape) for name, tensor in smallest.items()}
    assert take_over(own, smallest, known, largest) == len(own)
    wanted = Library(largest).read(known, smallest).weights
    assert all(torch.equal(own[name], view) for name, view in wanted.items())


def test_what_a_library_lacks_is_said() -> None:
    cards = drawn("flexibert-nano", 30)
    small = Library.of(cards[:1], HEAD)
    missing = [card for card in cards if not small.holds(tensors_of(card, HEAD))]
    assert missing
    weights = LibraryWeights.fresh(small, HEAD, None, 0, "width")
    with pytest.raises(IllegalInput, match="lacks"):
        extracted(weights, missing[0])


def test_every_look_is_at_a_design_and_at_its_largest_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formwright.supernet.library._MOST", 1)
    found = library_of.__wrapped__(NANO)
    both = list(with_raised(NANO, NANO.sample(derive(0, "hull", 0), "gene")))
    assert len(set(both)) == 2
    assert all(found.holds(tensors_of(card)) for card in both)


@pytest.mark.parametrize(
    ("mixer", "taken"),
    [
        (Attention(4, 8), True),
        (Attention(4, 8, relative=Relative(15)), True),
        (Attention(4, 8, score="wma"), False),
        (Attention(4, 8, bias=False), False),
    ],
)
def test_maps_are_taken_over_without_an_addition_but_not_from_another_kind(mixer: Attention, taken: bool) -> None:
    table = TokenEmbedding(50, 32, length=16)
    own, other = (
        Card(encoder=Stack(table, (Block(32, one, (64,)),))) for one in (Attention(4, 8, relative=Relative(15)), mixer)
    )
    mine, known = (dict(build(one, seed=seed).named_parameters()) for seed, one in enumerate((own, other)))
    take_over(mine, tensors_of(own), known, tensors_of(other), without_additions=True)
    for name in ("encoder.layers.0.mixer.query_key_value.weight", "encoder.layers.0.mixer.output.weight"):
        assert torch.equal(mine[name], known[name]) == taken


def test_a_kind_that_the_smallest_design_alone_has_is_held() -> None:
    """Eight of 8^8 designs have a convolution: their only layer is the narrowest one."""
    words, rare = TokenEmbedding(50, 16, length=8), Block(16, LightweightConvolution(3, 2), (8,))
    layers = {"none": ()} | {f"wide-{times}": (Block(16, Attention(2, 8), (8 * times,)),) for times in range(1, 8)}

    def build_card(design: Any) -> Card:
        found = tuple(layer for name in design.names for layer in layers[name])
        return Card(encoder=Stack(words, (rare,) if found == layers["wide-1"] else found))

    space = Space("rare", Record.of(names=Repeat(Choice(tuple(layers)), 8)), build_card)
    smallest = find_hull(space).smallest
    assert smallest.encoder.layers == (rare,)
    assert library_of(space).holds(tensors_of(smallest))
