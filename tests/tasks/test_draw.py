from collections import Counter

from formwright.core.rng import derive
from formwright.tasks.draw import Draw, shuffled


def test_draws_depend_on_the_generator_alone() -> None:
    first, second = ([Draw(derive(seed)).below(1000) for _ in range(3)] for seed in (0, 0))
    assert first == second


def test_other_items_are_never_the_taken_ones() -> None:
    draw = Draw(derive(0))
    assert {draw.other("abcd", "a", "c") for _ in range(50)} == {"b", "d"}


def test_some_items_are_different_and_come_in_every_order() -> None:
    draw = Draw(derive(0))
    assert {tuple(draw.some("abc", 2)) for _ in range(100)} == {(a, b) for a in "abc" for b in "abc" if a != b}


def test_chance_is_a_percentage() -> None:
    draw = Draw(derive(0))
    assert Counter(draw.chance(0) for _ in range(100)) == {False: 100}
    assert Counter(draw.chance(100) for _ in range(100)) == {True: 100}
    assert 250 < sum(draw.chance(30) for _ in range(1000)) < 350


def test_shuffled_is_a_permutation() -> None:
    order = shuffled(derive(0), 100)
    assert sorted(order) == list(range(100)) != order
