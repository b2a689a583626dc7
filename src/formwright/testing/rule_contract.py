"""What every sampling rule of shared training promises. Inherit `RuleContract`, and pytest checks your rule."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from formwright.arch.card import Card
from formwright.core.options import PartReader, PartWriter
from formwright.core.rng import derive
from formwright.space.zoo import load_space
from formwright.supernet.hull import Hull, find_hull
from formwright.supernet.rules import Rule

_STEPS = 40


def _recorded(hull: Hull) -> tuple[Hull, dict[Card, Any]]:
    """Give the hull of a space that notes the design of each card that it builds, and these notes."""
    built: dict[Card, Any] = {}

    def build(design: Any) -> Card:
        card = hull.space.build(design)
        built[card] = design
        return card

    return replace(hull, space=replace(hull.space, build=build)), built


class RuleContract(ABC):
    """Say which rules to check: `examples` gives some with different options."""

    @abstractmethod
    def examples(self) -> Sequence[Rule]:
        """Give rules with different options."""

    def _drawn(self, rule: Rule, steps: Sequence[int]) -> list[list[Card]]:
        draw = rule.bind(find_hull(load_space("autoformer-nano")), _STEPS)
        return [list(draw(derive(0, "step", step), step)) for step in steps]

    @pytest.mark.parametrize("space", ["autoformer-nano", "flexibert-nano"])
    def test_each_step_has_designs_of_the_space(self, space: str) -> None:
        """Ask for the ends of the hull, and for cards that the space builds out of its own designs."""
        hull, built = _recorded(find_hull(load_space(space)))
        # early phases of a rule may break constraints of the space, but for those without which there are no weights
        free = replace(hull.space, where=tuple(one for one in hull.space.where if one.lasting))
        for rule in self.examples():
            draw = rule.bind(hull, _STEPS)
            for step in range(_STEPS):
                cards = list(draw(derive(0, "step", step), step))
                assert cards, "a step without designs learns nothing"
                others = [card for card in cards if card not in (hull.largest, hull.smallest)]
                assert all(card in built for card in others), "a card that the space did not build"
                assert all(free.contains(built[card]) for card in others), "a card of a design outside the space"

    def test_designs_follow_from_seed_and_step_alone(self) -> None:
        order = [*range(_STEPS)]
        for rule in self.examples():
            whole = self._drawn(rule, order)
            assert self._drawn(rule, order) == whole
            assert self._drawn(rule, order[::-1])[::-1] == whole, "what is drawn depends on what was drawn before"
            assert self._drawn(rule, [17]) == [whole[17]], "a training that is resumed draws something else"

    def test_largest_first_means_what_it_says(self) -> None:
        largest = find_hull(load_space("autoformer-nano")).largest
        for rule in self.examples():
            first = [cards[0] == largest for cards in self._drawn(rule, range(_STEPS))]
            assert all(first) or not rule.LARGEST_FIRST

    def test_options_are_plain_json(self) -> None:
        for rule in self.examples():
            reader = PartReader()
            assert reader.finished(reader.read(Rule, PartWriter().value(rule)), "rule") == rule

    def test_work_is_a_positive_number(self) -> None:
        for rule in self.examples():
            assert 0 < rule.work(0.5, 0.1) < float("inf")
