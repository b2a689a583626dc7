from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pytest
from tests.evaluate.fake_table import fake_table

from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.rng import derive
from formwright.cost import params
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


def test_the_table_of_the_package_is_a_fair_sample_of_its_space() -> None:
    found = load_flexibench()
    table = found.table
    with as_file(files("formwright.evaluate") / "tables" / "flexibench.npz") as path:
        assert path.stat().st_size < 5_000_000
    designs = list(found.space.enumerate())
    assert (found.space.name, len(designs), table.facts["designs"]) == ("flexibert-nano", 9_312, 9_312)
    # whatever is in it was taken from the head of one fixed random order
    first = derive(0, "flexibench", "order").permutation(len(designs))[: len(table)]
    assert len(table) >= 2_000
    assert table.index.tolist() == sorted(first.tolist())
    for row in range(0, len(table), 50):
        card = found.space.card(designs[table.index[row]])
        assert found.row(card) == row
        assert found.costs(row)["params"] == params(card)


def test_the_noise_of_the_package_is_what_the_documentation_says() -> None:
    found = load_flexibench()
    scores = found.scores()
    assert 0.45 < np.nanmin(scores) < 0.6 < np.nanmedian(scores) < np.nanmax(scores) <= 0.96
    assert np.corrcoef(scores, found.scores("test"))[0, 1] > 0.99
    noise = found.noise()
    assert noise.designs >= 40
    assert noise.seeds == 5
    # one training says more of a design than of its seed, but not by much
    assert noise.between_seeds == pytest.approx(0.046, abs=5e-4)
    assert noise.between_designs == pytest.approx(0.060, abs=5e-4)
