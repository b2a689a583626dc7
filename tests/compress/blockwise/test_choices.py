"""What is chosen for each size: within its limits, and the nearest to the teacher of the best few."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.compress.blockwise.small import pretended

from formwright.arch.card import Card
from formwright.compress.blockwise.choices import Choice, Selection
from formwright.compress.blockwise.costs import blocks_of
from formwright.compress.blockwise.folders import Folders
from formwright.compress.blockwise.sizes import PARAMS, parse_sizes
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
    assert whole.choose(pretended) == chosen


def other_sizes(whole: Selection, sizes: str, folder: Path) -> Selection:
    """Give the same trained blocks to choose others from."""
    shutil.copytree(whole.folders.out, folder)
    started = replace(whole.started, job=replace(whole.started.job, sizes=sizes), sizes=parse_sizes(sizes))
    return replace(whole, started=started, folders=Folders(folder))


def test_further_sizes_are_chosen_beside_those_before(
    whole: Selection, chosen: dict[str, Choice], tmp_path: Path
) -> None:
    later = other_sizes(whole, "4k,6k", tmp_path / "out")
    found = later.choose(pretended)
    assert list(found) == ["4k", "6k"]
    assert found["6k"] == chosen["6k"]
    assert chosen["3k"].costs[PARAMS] < found["4k"].costs[PARAMS] <= 4000
    assert set(json.loads(later.folders.choices.read_text(encoding="utf-8"))) == {"3k", "4k", "6k"}


@pytest.mark.parametrize("content", ["{", "[]", '{"3k": []}', '{"3k": null}', '{"3k": [{}]}'])
def test_a_damaged_choice_is_made_again(
    whole: Selection, chosen: dict[str, Choice], tmp_path: Path, content: str
) -> None:
    later = other_sizes(whole, whole.started.job.sizes, tmp_path / "out")
    later.folders.choices.write_text(content, encoding="utf-8")
    assert later.choose(pretended) == chosen


def test_those_that_keep_their_milliseconds_as_measured_come_first(
    whole: Selection, chosen: dict[str, Choice], tmp_path: Path
) -> None:
    later = other_sizes(whole, "6k@1ms", tmp_path / "out")
    seen: list[str] = []

    def slow_at_first(card: Card) -> float:
        """Let the first design that is measured be slower than the sum of its parts."""
        seen.append(card.digest)
        return 2.0 if card.digest == seen[0] else pretended(card)

    (best,) = later.choose(slow_at_first).values()
    compared = [Choice.from_json(one) for one in json.loads(later.folders.choices.read_bytes())["6k-1ms"]]
    assert compared[0] == best
    assert [one.measured_ms <= 1 for one in compared if one.measured_ms is not None] == [True, False]
    assert len(seen) == 3 * len(compared)
    assert all(choice.measured_ms is None for choice in chosen.values())
