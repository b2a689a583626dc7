"""A compression is gone on with as a study by one process at a time, and not before it is trained."""

from pathlib import Path

import pytest

from formwright.compress.folders import RECORD, Folders
from formwright.compress.resumed import alone_if_compressed, refuse_untrained
from formwright.core.errors import IllegalInput
from formwright.study.place import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, str(tmp_path / "study.db"), "mine")


def test_other_studies_bear_several_at_once(place: Place) -> None:
    with alone_if_compressed(place), alone_if_compressed(place):
        refuse_untrained(place.folder)
    assert not list(place.folder.iterdir())


def test_a_compression_is_held_by_one(place: Place) -> None:
    (place.folder / RECORD).touch()
    Folders(place.folder).network.mkdir()
    with (
        alone_if_compressed(place),
        pytest.raises(IllegalInput, match="another process works in"),
        alone_if_compressed(place),
    ):
        pytest.fail("two hold it")
    with alone_if_compressed(place):
        refuse_untrained(place.folder)


def test_a_compression_without_its_super_network_is_refused_and_let_go(place: Place) -> None:
    (place.folder / RECORD).touch()
    for _ in range(2):
        refused = pytest.raises(IllegalInput, match="not trained yet: go on with the `formwright compress` line")
        with refused, alone_if_compressed(place):
            pytest.fail("it cannot be searched")
