from collections import Counter

from formwright.core.rng import derive
from formwright.tasks.draw import Draw, shuffled


def test_draws_depend_on_the_generator_alone_and_are_different() -> None:
    first, second = ([Draw(derive(seed)).below(1000) for _ in range(3)] for seed in (0, 0))
    assert first == second
    draw = Draw(derive(0))
    assert {draw.other("abcd", "a", "c") for _ in range(50)} == {"b", "d"}
    draw = Draw(derive(0))
    assert {tuple(draw.some("abc", 2)) for _ in range(100)} == {(a, b) for a in "abc" for b in "abc" if a != b}


def test_chances_are_percentages_and_shuffles_permutations() -> None:
    draw = Draw(derive(0))
    assert Counter(draw.chance(0) for _ in range(100)) == {False: 100}
    assert Counter(draw.chance(100) for _ in range(100)) == {True: 100}
    assert 250 < sum(draw.chance(30) for _ in range(1000)) < 350
    order = shuffled(derive(0), 100)
    assert sorted(order) == list(range(100)) != order
