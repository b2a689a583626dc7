"""The stages in their order, up to the study that searches."""

from collections.abc import Callable

import pytest
from tests.compress.conftest import PLAN, Made, placed
from tests.compress.test_trainings import conduct
from tests.compress.tiny import BERT, LENGTH

from formwright.compress.trainings import unshown
from formwright.cost import macs
from formwright.study.place import CONFIG, DATABASE
from formwright.study.spaces import find_space
from formwright.study.store import Store

pytestmark = pytest.mark.slow


def test_the_study_begins_with_the_sub_networks_that_drew_up_the_space(stages: Callable[..., Made]) -> None:
    made = stages()
    place = placed(made)
    with place.open() as opened:
        config = opened.config
    space = find_space(config.space)
    cards = [space.card(space.from_json(design)) for design in config.first]
    assert [float(macs(card, LENGTH)) for card in cards] == [met.cost for met in made[3]]
    assert BERT in cards
    assert config.stop.trials == PLAN.evaluations
    assert placed(made) == place


def test_a_study_that_was_killed_before_it_was_described_is_gone_on_with(stages: Callable[..., Made]) -> None:
    made = stages()
    place = placed(made)
    with place.open() as opened:
        opened.log.append("note", "me", {"mine": True})
    (place.folder / CONFIG).unlink()
    found = placed(made)
    with found.open() as opened:
        assert [event.data for event in opened.log.read()] == [{"mine": True}]


def test_a_study_that_was_killed_before_it_was_begun_is_begun(stages: Callable[..., Made]) -> None:
    made = stages()
    Store.open(made[0].folders.out / DATABASE, create=True).close()
    with placed(made).open() as opened:
        assert opened.config.evaluator == "shared"


def test_the_super_network_is_there_when_the_stages_are_over(stages: Callable[..., Made]) -> None:
    made = stages()
    made[0].super_network(made[1], made[2], conduct(), unshown)
    assert made[0].folders.network.is_dir()
