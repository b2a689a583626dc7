"""What every sampling rule of shared training promises. Inherit `RuleContract`, and pytest checks your rule."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pytest

from formwright.arch.card import Card
from formwright.core.options import PartReader, PartWriter
from formwright.core.rng import derive
from formwright.space.zoo import load_space
from formwright.supernet.hull import find_hull
from formwright.supernet.rules import Rule

_STEPS = 40


class RuleContract(ABC):
    """Say which rules to check: `examples` gives some with different options."""

    @abstractmethod
    def examples(self) -> Sequence[Rule]:
        """Give rules with different options."""

    def _drawn(
        self, rule: Rule, steps: Sequence[int], seed: int = 0, space: str = "autoformer-nano"
    ) -> list[list[Card]]:
        draw = rule.bind(find_hull(load_space(space)), _STEPS, seed)
        return [list(draw(derive(seed, "step", step), step)) for step in steps]

    @pytest.mark.parametrize("space", ["autoformer-nano", "flexibert-nano"])
    def test_each_step_has_designs_of_the_space(self, space: str) -> None:
        hull = find_hull(load_space(space))
        kinds = {type(layer) for layer in hull.largest.stacks[0].layers}
        for rule in self.examples():
            for cards in self._drawn(rule, range(_STEPS), space=space):
                assert cards, "a step without designs learns nothing"
                assert all(isinstance(card, Card) and type(card.stacks[0].layers[0]) in kinds for card in cards)

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
