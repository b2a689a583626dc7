from formwright.core.protocols import Evaluator
from formwright.core.records import Budget, Request
from formwright.core.rng import derive
from formwright.testing.objective import Toy, accuracy
from formwright.testing.spaces import large, small

BEST = [{"attention": "wma"}, {"convolution": 5}, {"transform": {}}]


def test_the_best_design_is_known() -> None:
    space = large()
    layers = [{"mixer": BEST[index % 3], "feed_forward": 64} for index in range(12)]
    best = space.card(space.from_json({"layers": layers}))
    assert accuracy(best) == 1.0
    others = [accuracy(space.card(space.sample(derive(seed), "gene"))) for seed in range(300)]
    assert max(others) < 0.8


def test_the_best_of_the_small_space_follows_the_pattern() -> None:
    space = small()
    best = max(space.enumerate(), key=lambda design: accuracy(space.card(design)))
    assert space.to_json(best) == {"layers": [{"mixer": mixer, "feed_forward": 64} for mixer in BEST[:2]]}


def test_evaluations_repeat_themselves_and_grow_more_telling() -> None:
    assert isinstance(Toy(), Evaluator)
    space = small()
    card = space.card(space.sample(derive(0)))
    full = Toy().evaluate(Request(card))
    assert full == Toy().evaluate(Request(card))
    assert full.metrics["accuracy"] == accuracy(card)
    gaps = [
        abs(Toy().evaluate(Request(card, Budget(steps))).metrics["accuracy"] - accuracy(card))
        for steps in (1, 10, 1000)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 0.02


def test_short_evaluations_are_sometimes_wrong() -> None:
    space = small()
    cards = [space.card(design) for design in space.enumerate()]
    short = [Toy().evaluate(Request(card, Budget(1))).metrics["accuracy"] for card in cards]
    full = [accuracy(card) for card in cards]
    assert sorted(range(342), key=short.__getitem__) != sorted(range(342), key=full.__getitem__)
