"""The contract finds rules that break it: one broken rule for each promise."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from formwright.core.rng import derive
from formwright.space.zoo import load_space
from formwright.supernet.hull import Hull, find_hull
from formwright.supernet.rules import Draw, Rule
from formwright.testing.rule_contract import RuleContract


@dataclass(frozen=True)
class Broken(Rule):
    NAME: ClassVar[str] = "broken"


class Silent(Broken):
    def bind(self, hull: Hull, steps: int, seed: int = 0) -> Draw:
        return lambda rng, step: []


class Foreign(Broken):
    """Draw designs of another space, whose layers are of the same class."""

    def bind(self, hull: Hull, steps: int, seed: int = 0) -> Draw:
        other = load_space("autoformer-nano-28")
        return lambda rng, step: [other.card(other.sample(rng))]


class Wider(Broken):
    """Build a card of a design that the space does not have."""

    def bind(self, hull: Hull, steps: int, seed: int = 0) -> Draw:
        other = load_space("autoformer-nano-28")
        return lambda rng, step: [hull.space.card(other.sample(rng))]


class Remembers(Broken):
    def bind(self, hull: Hull, steps: int, seed: int = 0) -> Draw:
        drawn = [0]

        def draw(rng: Any, step: int) -> Any:
            drawn[0] += 1
            return [hull.space.card(hull.space.sample(derive(drawn[0]), "gene"))]

        return draw


class LargestLast(Broken):
    LARGEST_FIRST: ClassVar[bool] = True

    def bind(self, hull: Hull, steps: int, seed: int = 0) -> Draw:
        return lambda rng, step: [hull.smallest, hull.largest]


def contract(rule: Rule) -> RuleContract:
    class Of(RuleContract):
        def examples(self) -> list[Rule]:
            return [rule]

    return Of()


@pytest.mark.parametrize("rule", [Silent(), Foreign(), Wider()], ids=lambda rule: type(rule).__name__)
def test_what_is_no_design_of_the_space_is_found(rule: Rule) -> None:
    with pytest.raises(AssertionError):
        contract(rule).test_each_step_has_designs_of_the_space("autoformer-nano")


def test_a_rule_with_a_memory_is_found() -> None:
    with pytest.raises(AssertionError):
        contract(Remembers()).test_designs_follow_from_seed_and_step_alone()


def test_a_largest_design_that_does_not_come_first_is_found() -> None:
    contract(LargestLast()).test_each_step_has_designs_of_the_space("autoformer-nano")
    assert find_hull(load_space("autoformer-nano")).largest != find_hull(load_space("autoformer-nano")).smallest
    with pytest.raises(AssertionError):
        contract(LargestLast()).test_largest_first_means_what_it_says()
