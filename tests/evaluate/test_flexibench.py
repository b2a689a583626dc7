from pathlib import Path

import pytest
from tests.evaluate.fake_table import fake_table

from formwright.core.errors import IllegalInput, UnknownName
from formwright.evaluate import flexibench
from formwright.evaluate.flexibench import load_flexibench
from formwright.testing.spaces import tiny


def test_a_file_of_ones_own_is_read_with_its_space(tmp_path: Path) -> None:
    table = fake_table(tiny(), 12, space="flexibert-nano")
    table.write(tmp_path / "mine.npz")
    found = load_flexibench(tmp_path / "mine.npz")
    assert (found.space.name, found.table.digest) == ("flexibert-nano", table.digest)


def test_a_table_of_an_unknown_space_is_refused(tmp_path: Path) -> None:
    fake_table(tiny(), 12).write(tmp_path / "mine.npz")
    with pytest.raises(UnknownName, match="no space called 'tiny'"):
        load_flexibench(tmp_path / "mine.npz")


def test_where_the_table_is_missing_it_is_said_how_to_make_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flexibench, "_FILE", "absent.npz")
    with pytest.raises(IllegalInput, match=r"lacks absent\.npz; make one with benchmarks/flexibench\.py --pack"):
        load_flexibench()
