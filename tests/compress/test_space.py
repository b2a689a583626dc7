"""The space that a model draws up: from below the lowest target of every cost, and only once."""

from pathlib import Path

import numpy as np
import pytest
from tests.compress.tiny import BERT, LENGTH, bert, job

from formwright.compress.folders import Folders, read_importance, write_importance
from formwright.compress.job import Started
from formwright.compress.space import low_end, search_space, space_scores
from formwright.cost import macs, params
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.supernet.automatic import Met, sub_network
from formwright.supernet.importance import Importance


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """Give a folder with scores, as a teacher leaves them."""
    found, rng = Folders(tmp_path / "out"), np.random.default_rng(3)
    found.out.mkdir()
    write_importance(found.importance, Importance(tuple(rng.random(size) for size in (4, 64) * 2)))
    return found


def drawn(started: Started, folders: Folders) -> tuple[ElasticChoices, list[Met]]:
    return search_space(BERT, started.reaches(started.costs(None)), started.method, folders)


def test_the_space_is_drawn_up_once_from_below_the_lowest_target(folders: Folders, tmp_path: Path) -> None:
    started = job(tmp_path).started()
    (reach,) = started.reaches(started.costs(None))
    choices, met = drawn(started, folders)
    assert [one.target for one in met] == pytest.approx(np.linspace(reach.low, reach.high, 3).tolist())
    assert {one.measure for one in met} == {"macs"}
    assert choices.largest == BERT
    assert macs(choices.smallest, LENGTH) <= met[0].cost < 0.5 * macs(BERT, LENGTH)
    content = folders.space.read_bytes()
    assert drawn(started, folders) == (choices, met)
    assert folders.space.read_bytes() == content


def test_the_most_important_parts_of_every_layer_come_first_however_large_its_gradients_are(
    folders: Folders, tmp_path: Path
) -> None:
    raw = read_importance(folders.importance)
    write_importance(folders.importance, Importance((*raw.scores[:2], *(100 * scores for scores in raw.scores[2:]))))
    found = space_scores(job(tmp_path).started().method, folders)
    assert [order.tolist() for order in found.orders()] == [order.tolist() for order in raw.orders()]
    means = [scores.mean() for scores in found.scores]
    assert 1.0 < means[2] / means[0] < 10.0  # layers are compared, but by far less than their gradients differ


def test_a_smaller_space_ends_at_the_highest_target(folders: Folders, tmp_path: Path) -> None:
    choices, _ = drawn(job(tmp_path, whole=False).started(), folders)
    assert macs(choices.largest, LENGTH) < 0.9 * macs(BERT, LENGTH)


def test_the_lowest_target_of_a_further_cost_is_met_too(folders: Folders, tmp_path: Path) -> None:
    """Whichever cost is named first."""
    least = params(sub_network(BERT, ((1, 16),) * 2))
    low = f"params={least + 0.1 * (params(BERT) - least):.0f}"
    model = bert(tmp_path)
    for targets in (("macs=80%", low), (low, "macs=80%")):
        folders.space.unlink(missing_ok=True)
        started = job(tmp_path, model=model, targets=targets).started()
        bound = started.targets[targets.index(low)].amount
        choices, met = drawn(started, folders)
        cards = [choices.space.card(choices.design(one.widths)) for one in met]
        assert any(params(card) <= bound for card in cards), targets  # which the search begins with
        assert {one.measure for one in met} == {"macs", "params"}
    without, _ = drawn(job(tmp_path, model=model, targets=("macs=80%",)).started(), Folders(_copied(folders, tmp_path)))
    assert params(without.smallest) > bound  # nobody would have met it


def _copied(folders: Folders, tmp_path: Path) -> Path:
    other = Folders(tmp_path / "other")
    other.out.mkdir()
    other.importance.write_bytes(folders.importance.read_bytes())
    return other.out


def test_a_space_begins_below_the_target_and_leaves_a_model() -> None:
    assert low_end(10.0, 60.0) == 50.0
    assert low_end(0.0, 60.0) == pytest.approx(48.0)
    assert low_end(60.0, 40.0) == pytest.approx(32.0)  # a narrower hidden size makes up for it
