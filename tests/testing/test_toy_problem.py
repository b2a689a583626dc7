import pytest

from formwright.core.protocols import Evaluator
from formwright.core.records import Budget, History, Observation, Request
from formwright.core.rng import derive
from formwright.search.baselines import RandomSearch
from formwright.search.proposals import SpaceExhausted
from formwright.space import Space
from formwright.testing.toy_problem import Toy, accuracy, ask, large, outline, run, run_out, small, tell, tiny, twins

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


def test_a_run_can_be_taken_up_anywhere() -> None:
    whole = run(RandomSearch(small()), Toy(), 10, seed=3)
    begun = History(whole.trials[:6])
    assert ask(RandomSearch(small()), begun, seed=3).trials[6].request == whole.trials[6].request


def test_trials_end_finished_or_failed() -> None:
    history = ask(RandomSearch(small()), ask(RandomSearch(small()), History(), 0), 0)
    history = tell(tell(history, 1, Observation({"accuracy": 1.0})), 0, "no memory")
    assert [trial.state for trial in history.trials] == ["failed", "finished"]
    assert history.trials[0].reason == "no memory"
    assert all(request.design is None for request in outline(history))


def test_running_out_needs_the_promised_end() -> None:
    assert len(run_out(RandomSearch(tiny()), Toy(), 20, SpaceExhausted).trials) == 12
    with pytest.raises(AssertionError, match="went on after 5 requests; SpaceExhausted was due"):
        run_out(RandomSearch(tiny()), Toy(), 5, SpaceExhausted)


@pytest.mark.parametrize(("space", "designs", "cards"), [(tiny(), 12, 12), (small(), 342, 342), (twins(), 24, 12)])
def test_sizes_are_those_promised(space: Space, designs: int, cards: int) -> None:
    listed = list(space.enumerate())
    assert len(listed) == space.count() == designs
    assert len({space.card(design).digest for design in listed}) == cards


def test_the_large_space_is_too_large_to_list() -> None:
    assert large().count() > 10**12
