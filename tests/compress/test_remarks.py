"""What is said of delivered models: whose folder they share, what they missed, and how the space was drawn up."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.compress.conftest import Made, placed
from tests.compress.test_trainings import conduct
from tests.compress.tiny import BERT, LENGTH

from formwright.compress.remarks import closeness, remarks
from formwright.compress.trainings import unshown
from formwright.core.records import Budget, Observation, Request
from formwright.cost import macs, params
from formwright.study.delivered import Delivered
from formwright.study.place import Place
from formwright.study.replay import asked_data
from formwright.study.spaces import find_space
from formwright.supernet.automatic import Met

pytestmark = pytest.mark.slow
FULL = float(macs(BERT, LENGTH))


def told(made: Made, measured: float) -> Place:
    """Give a study whose cheapest design is the best, and was delivered for the first target."""
    made[0].super_network(made[1], made[2], conduct(), unshown)
    place = placed(made)
    with place.open() as opened:
        space = find_space(opened.config.space)
        design = space.from_json(opened.config.first[0])
        card = space.card(design)
        metrics = {"accuracy": 0.9, "macs": float(macs(card, LENGTH))}
        opened.log.ask(0, "me", 60, asked_data(Request(card, Budget(), None, design), space, 0))
        opened.log.finish(0, "me", "told", {"observation": Observation(metrics).to_json()})
        facts = (card.digest, "", params(card), 0, metrics, None, 0, {"macs": measured})
        opened.log.append("note", "me", {"model": asdict(Delivered("macs-75pct", "front", *facts))})
    return place


def test_targets_that_share_a_model_say_whose(stages: Callable[..., Made], tmp_path: Path) -> None:
    where = tmp_path / "out" / "models" / "macs-75pct"
    expected = f"macs-50pct is the model macs-75pct, the best within both: it is in {where}"
    assert remarks(told(stages(), 0.0)) == [expected]


def test_a_model_that_was_measured_beyond_its_targets_is_named(stages: Callable[..., Made]) -> None:
    place = told(stages(), 0.8 * FULL)
    _, *missed = remarks(place)
    assert [line.split(":")[0] for line in missed] == ["macs-75pct is missed", "macs-50pct is missed"]
    assert f"macs-75pct was measured at macs {0.8 * FULL:.4g}, above the {0.75 * FULL:.4g} that" in missed[0]
    with place.open() as opened:
        note = next(event.data["model"] for event in opened.log.read() if "model" in event.data)
        opened.log.append("note", "me", {"model": note | {"costs": {"macs": 0.6 * FULL}}})
    assert len(remarks(place)) == 2  # it is within one of them


def test_it_is_said_how_close_the_space_came_to_its_costs() -> None:
    widths = ((1, 16),)
    met = [Met(100.0, 101.0, widths, "macs"), Met(200.0, 200.0, widths, "macs"), Met(8.0, 7.0, widths, "latency_ms")]
    assert closeness(met) == ["drawn up at macs 100 (+1.0 %), 200 (+0.0 %)", "drawn up at latency_ms 8 (-12.5 %)"]
