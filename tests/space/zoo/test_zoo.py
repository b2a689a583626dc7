"""What every published space and design must do, whichever it is."""

import json
from itertools import islice
from typing import Any

import pytest
from numpy.random import default_rng

import formwright
from formwright.arch.card import Card
from formwright.arch.graph import graph_digest
from formwright.core.errors import UnknownName
from formwright.cost import params
from formwright.space import Space
from formwright.space.zoo import CARDS, SPACES, load_card, load_space

NAMED_CARDS = [
    "autobert-zero-layer-12", "autobert-zero-layer-2", "autoformer-b", "autoformer-s", "autoformer-supernet-t",
    "autoformer-t", "autotinybert-s1", "bert-base", "bert-large", "bert-medium", "bert-mini", "bert-small",
    "bert-tiny", "eftnas-s1-cola", "eftnas-s1-mnli", "eftnas-s1-mrpc", "eftnas-s1-qnli", "eftnas-s1-qqp",
    "eftnas-s1-rte", "eftnas-s1-sst2", "evolved-transformer-base", "evolved-transformer-big",
    "evolved-transformer-tiny", "evolved-transformer-writer-tiny", "flexibert-bert-2-256", "flexibert-bert-4-128",
    "flexibert-bert-mini", "flexibert-bert-tiny", "flexibert-convbert-2-256", "flexibert-convbert-4-128",
    "flexibert-convbert-mini", "flexibert-convbert-tiny", "flexibert-fnet-2-256", "flexibert-fnet-4-128",
    "flexibert-fnet-mini", "flexibert-fnet-tiny", "flexibert-large", "flexibert-mini",
    "flexibert-mini-without-heteroscedastic", "flexibert-mini-without-second-order", "frames-nano", "lts-13m",
    "lts-19m", "lts-1m",
    "lts-25m", "lts-30m", "lts-33m", "lts-3m", "lts-4m", "lts-50m", "lts-6m", "lts-7m", "lts-9m", "supershaper-37m",
    "supershaper-47m", "supershaper-56m", "supershaper-61m", "supershaper-87m", "supershaper-91m", "tf-tas-b",
    "tf-tas-s", "tf-tas-t", "transformer-base", "transformer-big", "transformer-tiny", "transformer-writer-tiny",
    "vit-nano-28", "vit-nano-32", "vit-nano-8", "vitas-a", "vitas-b", "vitas-c", "vitas-e", "vitas-f",
]  # fmt: skip
NAMED_SPACES = [
    "autobert-zero", "autobert-zero-nano", "autoformer-base", "autoformer-nano", "autoformer-nano-28",
    "autoformer-nano-32", "autoformer-small", "autoformer-tiny", "autotinybert", "autotinybert-kd",
    "autotinybert-kd-nano", "autotinybert-nano", "dynabert", "elastic", "evolved-transformer",
    "evolved-transformer-nano", "fast-bert-nano", "flexibert", "flexibert-nano", "flexibert-nano-s1",
    "flexibert-nano-s1star", "flexibert-s1", "flexibert-s1star", "gpt-nano", "hat", "hat-nano", "lighthubert-base",
    "lighthubert-nano", "lighthubert-small", "lts", "lts-nano", "magic-nano", "nas-bert", "supershaper",
    "supershaper-nano",
]  # fmt: skip


PUBLISHED_COUNTS = {
    "flexibert": 9_312, "flexibert-s1": 84_943_872, "flexibert-s1star": 3_317_817_600,
    "flexibert-nano": 9_312, "flexibert-nano-s1": 84_943_872, "flexibert-nano-s1star": 3_317_817_600,
    "supershaper": 7**12, "autotinybert": 366_048, "autotinybert-kd": 1_525_200, "lts": 5_880,
    "lighthubert-small": 951_892_141_473, "lighthubert-base": 6_530_347_008, "hat": 417_846_678_672_384,
    "autoformer-tiny": 1_056_964_608, "autoformer-small": 77_103_263_459_313, "autoformer-base": 10_108_977_168_384,
}  # fmt: skip
PUBLISHED_PARAMETERS = {
    "bert-tiny": 4_385_920, "bert-mini": 11_170_560, "bert-small": 28_763_648, "bert-medium": 41_373_184,
    "bert-base": 109_482_240, "bert-large": 335_141_888,
    "autoformer-t": 5_867_944, "autoformer-s": 22_891_432, "autoformer-b": 53_691_688,
    "autoformer-supernet-t": 11_669_224,
    "flexibert-mini": 16_159_040, "flexibert-mini-without-second-order": 7_227_584,
    "flexibert-mini-without-heteroscedastic": 20_457_408, "flexibert-bert-tiny": 7_036_288,
    "flexibert-bert-mini": 16_438_528, "autotinybert-s1": 29_573_882,
    "tf-tas-t": 6_200_776, "tf-tas-s": 23_935_336, "tf-tas-b": 56_470_792,
    "vitas-a": 3_679_478, "vitas-b": 4_400_248, "vitas-c": 6_048_414,
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED_COUNTS)
def test_published_counts(name: str) -> None:
    assert load_space(name).count() == PUBLISHED_COUNTS[name]


@pytest.mark.parametrize("name", PUBLISHED_PARAMETERS)
def test_published_parameters(name: str) -> None:
    assert params(load_card(name)) == PUBLISHED_PARAMETERS[name]


@pytest.fixture(scope="module", params=NAMED_SPACES)
def space(request: pytest.FixtureRequest) -> Space:
    return load_space(request.param)


@pytest.fixture(scope="module")
def designs(space: Space) -> list[Any]:
    """Draw half of the designs uniformly and half gene by gene, where simple ones are common."""
    rng = default_rng(17)
    return [space.sample(rng) for _ in range(25)] + [space.sample(rng, by="gene") for _ in range(25)]


def test_sampled_designs_are_legal_and_survive(space: Space, designs: list[Any]) -> None:
    for design in designs:
        assert space.contains(design)
        card = space.card(design)  # an illegal card cannot be made
        assert Card.loads(card.canonical) == card
    rng = default_rng(17)
    assert [space.sample(rng) for _ in range(5)] == designs[:5]
    for design in designs:
        assert space.from_json(json.loads(json.dumps(space.to_json(design)))) == design
    for design in designs:
        vector = space.encode(design)
        assert (vector.shape, space.decode(vector)) == ((space.width,), design)


def test_operators_stay_inside(space: Space, designs: list[Any]) -> None:
    rng = default_rng(3)
    for design in designs:
        child = space.mutate(design, rng)
        assert space.contains(child)
        assert space.card(child).stacks
        assert len(_changed(space, design, child)) == 1
    rng = default_rng(4)
    for first, second in zip(designs, reversed(designs), strict=True):
        child = space.crossover(first, second, rng)
        assert space.contains(child)
        assert space.card(child).stacks
    for design in [*islice(space.neighbours(designs[0]), 10), *islice(space.enumerate(), 10)]:
        assert space.contains(design)
        assert space.card(design).stacks


@pytest.mark.parametrize("name", [name for name in NAMED_SPACES if "-nano" in name])
def test_nano_spaces_hold_nothing_large(name: str) -> None:
    space, rng = load_space(name), default_rng(0)
    assert max(params(space.card(space.sample(rng))) for _ in range(50)) < 2_100_000


@pytest.mark.parametrize("name", NAMED_CARDS)
def test_named_cards_survive_json(name: str) -> None:
    card = load_card(name)
    assert Card.from_json(json.loads(json.dumps(card.to_json()))) == card
    assert Card.loads(card.canonical).digest == card.digest


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (load_space, r"no space called 'flexbert'. Nearest: 'flexibert'. All \d+: `formwright list spaces`"),
        (load_card, r"no card called 'flexbert'. Nearest: 'flexibert-.*All \d+: `formwright list cards`"),
    ],
)
def test_unknown_names_have_a_nearest_one(load: Any, message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        load("flexbert")


def test_named_spaces_and_cards_load_and_differ() -> None:
    assert SPACES.names() == NAMED_SPACES
    spaces = [load_space(name) for name in NAMED_SPACES]
    assert [space.name for space in spaces] == NAMED_SPACES
    assert all(space.about and not space.where for space in spaces)
    assert CARDS.names() == NAMED_CARDS
    assert all(isinstance(load_card(name), Card) for name in NAMED_CARDS)
    cards = [load_card(name) for name in NAMED_CARDS]
    assert len({card.digest for card in cards}) == len(NAMED_CARDS)
    assert len({graph_digest(card) for card in cards}) == len(NAMED_CARDS)
    assert formwright.load_card("bert-base") is load_card("bert-base")
    assert formwright.load_space("hat") is load_space("hat")


def _changed(space: Space, before: Any, after: Any) -> list[str]:
    """List the genes that differ, without the genes below another one that differs."""
    old = {gene.path: gene.value for gene in space.genes(before)}
    new = {gene.path: gene.value for gene in space.genes(after)}
    differing = [path for path in old.keys() | new.keys() if old.get(path, "absent") != new.get(path, "absent")]
    highest = [path for path in differing if not any(path != top and path[: len(top)] == top for top in differing)]
    return [str(path) for path in highest]
