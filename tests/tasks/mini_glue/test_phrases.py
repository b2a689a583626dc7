from collections import Counter

from tests.tasks.mini_glue.solvers import affirmed, plain

from formwright.core.rng import derive
from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.phrases import aside, claim


def test_asides_add_words_and_take_none_away() -> None:
    draw = Draw(derive(0))
    told = {aside(draw, 50, "the cook sang") for _ in range(300)}
    assert len(told) == 1 + 2 * 6
    assert {plain(text) for text in told} == {"the cook sang"}


def test_claims_hold_as_wanted_in_both_ways() -> None:
    draw = Draw(derive(0))
    for holds in (True, False):
        forms = Counter(claim(draw, "the cook", "sang", holds) for _ in range(1000))
        assert {affirmed(form) for form in forms} == {("the cook sang", holds)}
        assert len(forms) == 2
        assert 250 < min(forms.values()) < 350
