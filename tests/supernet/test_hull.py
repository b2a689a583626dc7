import pytest
import torch

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.build import build
from formwright.nn.inherit import extract, inherit
from formwright.nn.task_model import HeadSpec
from formwright.space.combinators import Choice, Record
from formwright.space.narrow import narrowed
from formwright.space.repeat import Row
from formwright.space.space import Space
from formwright.space.zoo import load_space
from formwright.space.zoo.bert import TINY
from formwright.space.zoo.elastic import ElasticChoices
from formwright.supernet.hull import check_readable, choices_of, hull, opened

NANO = load_space("autoformer-nano")
HEAD = HeadSpec("sequence-classification", 10)


@pytest.mark.parametrize(
    "name", ["autoformer-nano", "autoformer-tiny", "lighthubert-small", "lighthubert-base", "autotinybert", "elastic"]
)
def test_the_largest_design_holds_all_others(name: str) -> None:
    space = load_space(name)
    ends = hull(space)
    check_readable(space, ends.largest, samples=5)
    assert ends.largest != ends.smallest
    with pytest.raises(IllegalInput, match="share the weights"):
        check_readable(space, ends.smallest, samples=5)


@pytest.mark.parametrize("name", ["hat", "supershaper"])
def test_spaces_whose_designs_are_no_slices_are_refused(name: str) -> None:
    space = load_space(name)
    with pytest.raises(IllegalInput, match="cannot share"):
        check_readable(space, hull(space).largest)


@pytest.mark.parametrize("name", ["flexibert-nano", "nas-bert", "autobert-zero-nano", "evolved-transformer-nano"])
def test_spaces_that_choose_between_kinds_have_no_largest_design(name: str) -> None:
    with pytest.raises(IllegalInput, match=r"largest") as error:
        hull(load_space(name))
    assert name in str(error.value)


def test_members_of_one_group_have_one_value_at_both_ends() -> None:
    row = Row((Choice((2, 1)), Choice((30, 40))), (4, 3), tied=2)
    ends = hull(Space("tied", row, list))
    assert (ends.largest.to_json(), ends.smallest.to_json()) == ([2, 2, 40, 40], [1, 1, 30])


def test_elastic_and_narrower_spaces_have_ends_too() -> None:
    choices = ElasticChoices(TINY, ((0, 1, 2), (2, 1)), ((16, 512), (0, 32)), (64, 128))
    ends = hull(choices.space)
    assert (ends.largest, ends.smallest) == (choices.largest, choices.smallest)
    designs = [NANO.sample(derive(0, turn)) for turn in range(3)]
    ends = hull(narrowed(NANO, "some", {}, designs))
    assert len(ends.largest.stacks[0].layers) == max(len(design.layers) for design in designs)


@pytest.mark.parametrize(
    ("options", "largest"), [(((1, 2), (2, 1)), None), (((1, 2), (2, 2)), (2, 2)), ((None,), None)]
)
def test_tuples_have_an_end_where_one_is_largest_everywhere(options: tuple, largest: tuple | None) -> None:
    seen = []
    space = Space("own", Record.of(sizes=Choice(options)), lambda design: seen.append(design.sizes) or TINY)
    if largest is None and len(options) > 1:
        with pytest.raises(IllegalInput, match="sizes"):
            hull(space)
    else:
        hull(space)
        assert seen[0] == (largest or options[0])


def test_choices_are_named_by_field_and_open_from_the_largest() -> None:
    assert list(choices_of(NANO.root)) == [("width", 3), ("length", 4), ("heads", 3), ("ratio", 3)]
    assert opened(NANO.root, {}).count() == 1
    assert opened(NANO.root, {"length": 2}).count() == 2
    assert opened(NANO.root, dict(choices_of(NANO.root))).count() == NANO.count()


def cards() -> list[Card]:
    return [hull(NANO).smallest, *(NANO.card(NANO.sample(derive(1, turn), "gene")) for turn in range(6))]


def test_a_sub_network_equals_a_model_of_its_own_with_the_sliced_weights() -> None:
    whole_card = hull(NANO).largest
    whole = build(whole_card, head=HEAD, seed=3)
    generator = torch.Generator().manual_seed(0)
    for weight in whole.parameters():  # fresh biases, and what starts at one, would hide a wrong slice
        weight.data.add_(0.1 * torch.randn(weight.shape, generator=generator))
    pictures = torch.rand(4, 1, 8, 8, generator=generator)
    weights = dict(whole.named_parameters())
    for card in cards():
        views = inherit(weights, whole_card, card, head=HEAD)
        model = build(card, head=HEAD, seed=9)
        for name, weight in model.named_parameters():
            # heads are packed one after another, and all tables have the same rows: every slice is a leading one
            weight.data.copy_(weights[name][tuple(map(slice, weight.shape))])
        assert torch.equal(model.eval()(pictures), extract(views, card, head=HEAD).eval()(pictures))
        first, wide = card.stacks[0].layers[0], whole_card.stacks[0].layers[0]
        mixer = "transformer.encoder.layers.0.mixer"
        kept = {name: tuple(weight.shape) for name, weight in views.weights.items() if name.startswith(mixer)}
        assert any(shape[0] == 3 * 8 * first.mixer.heads for shape in kept.values())  # queries, keys and values
        assert any(shape == (2, 10, 8) for shape in kept.values())  # positions, which the heads share
        assert wide.mixer.relative == first.mixer.relative
