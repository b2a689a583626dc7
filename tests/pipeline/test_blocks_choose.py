"""What is chosen for each size: within its limits, and the nearest to the teacher of the best few."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.block_runs import copied, finished, here, pretended, stage

from formwright.arch.card import Card
from formwright.cost import params
from formwright.pipeline.blocks_choose import CHOICES, Choice, ChooseChains
from formwright.search.model_sizes import PARAMS
from formwright.space.zoo.chains import chain_card

pytestmark = pytest.mark.slow


def chosen() -> dict[str, Choice]:
    found: dict[str, Choice] = finished().artifact(stage(finished(), "choices"))
    return found


def compared(run: Any = None) -> dict[str, list[Choice]]:
    run = run or finished()
    read = json.loads((here(run, "choices").folder / CHOICES).read_bytes())
    return {name: [Choice.from_json(one) for one in choices] for name, choices in read.items()}


def choose(run: Any) -> dict[str, Choice]:
    stage(run, "choices").make(here(run, "choices"))
    found: dict[str, Choice] = stage(run, "choices").load(here(run, "choices"))
    return found


def test_choices_keep_their_sizes() -> None:
    run = finished()
    for size in stage(run, "choices").asked:
        choice = chosen()[size.name]
        card = chain_card(run.artifact(stage(run, "source")).menu, choice.table, choice.blocks)
        assert params(card) == choice.costs[PARAMS] <= size.limits[PARAMS]


def test_the_nearest_of_the_best_few_is_chosen() -> None:
    for name, choices in compared().items():
        assert len(choices) == stage(finished(), "choices").checked
        distances = [one.distance for one in choices]
        assert distances == sorted(distances)
        assert choices[0] == chosen()[name]


def test_the_sum_of_losses_is_the_least_of_all() -> None:
    choices = stage(finished(), "choices")
    table = choices.parts(here(finished(), "choices")).table
    for size in choices.asked:
        best = table.best(size.limits)[0]
        assert best.loss == pytest.approx(min(one.loss for one in compared()[size.name]))
        assert chosen()[size.name].loss >= best.loss - 1e-9


def test_what_was_chosen_is_not_chosen_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChooseChains, "compared", lambda *_: pytest.fail("it was chosen before"))
    assert choose(finished()) == chosen()


def test_further_sizes_are_chosen_beside_those_before(tmp_path: Path) -> None:
    later = copied(tmp_path, sizes="4k,6k")
    assert not stage(later, "choices").reaches(here(later, "choices"))
    found = choose(later)
    assert list(found) == ["4k", "6k"]
    assert found["6k"] == chosen()["6k"]
    assert chosen()["3k"].costs[PARAMS] < found["4k"].costs[PARAMS] <= 4000
    assert set(compared(later)) == {"3k", "4k", "6k"}
    assert stage(later, "choices").reaches(here(later, "choices"))


@pytest.mark.parametrize("content", ["{", "[]", '{"3k": []}', '{"3k": null}', '{"3k": [{}]}'])
def test_a_damaged_choice_is_made_again(tmp_path: Path, content: str) -> None:
    later = copied(tmp_path)
    (here(later, "choices").folder / CHOICES).write_text(content, encoding="utf-8")
    assert not stage(later, "choices").reaches(here(later, "choices"))
    assert choose(later) == chosen()


def test_those_that_keep_their_milliseconds_as_measured_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def slow_at_first(card: Card) -> float:
        """Let the first design that is measured be slower than the sum of its parts."""
        seen.append(card.digest)
        return 2.0 if card.digest == seen[0] else pretended(card)

    monkeypatch.setattr("formwright.nn.part_latency.quick", lambda *_: slow_at_first)
    later = copied(tmp_path, sizes="6k@1ms")
    (best,) = choose(later).values()
    found = compared(later)["6k-1ms"]
    assert found[0] == best
    assert [one.measured_ms <= 1 for one in found if one.measured_ms is not None] == [True, False]
    assert len(seen) == 3 * len(found)
    assert all(choice.measured_ms is None for choice in chosen().values())
