"""What is chosen for each size: within its limits, and the nearest to the teacher of the best few."""

import json

import pytest

from formwright.compress.blockwise.choices import Choice, Selection
from formwright.compress.blockwise.costs import blocks_of
from formwright.compress.blockwise.sizes import PARAMS
from formwright.cost import params
from formwright.space.zoo.chains import chain_card

pytestmark = pytest.mark.slow


def test_choices_keep_their_sizes(whole: Selection, chosen: dict[str, Choice]) -> None:
    for size in whole.started.sizes:
        choice = chosen[size.name]
        card = chain_card(whole.started.menu, choice.table, choice.blocks)
        assert params(card) == choice.costs[PARAMS] <= size.limits[PARAMS]


def test_the_nearest_of_the_best_few_is_chosen(whole: Selection, chosen: dict[str, Choice]) -> None:
    compared = json.loads(whole.folders.choices.read_text(encoding="utf-8"))
    for name, choices in compared.items():
        assert len(choices) == whole.started.job.method.checked
        distances = [one["distance"] for one in choices]
        assert distances == sorted(distances)
        assert Choice.from_json(choices[0]) == chosen[name]


def test_the_sum_of_losses_is_the_least_of_all(whole: Selection, chosen: dict[str, Choice]) -> None:
    blocks = blocks_of(whole.costs, whole.prepared.losses, whole.tables())
    for size in whole.started.sizes:
        best = blocks.best(size.limits)[0]
        compared = json.loads(whole.folders.choices.read_text(encoding="utf-8"))[size.name]
        assert best.loss == pytest.approx(min(one["loss"] for one in compared))
        assert chosen[size.name].loss >= best.loss - 1e-9


def test_what_was_chosen_is_not_chosen_again(
    whole: Selection, chosen: dict[str, Choice], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Selection, "networks", lambda _: pytest.fail("it was chosen before"))
    assert whole.choose() == chosen
