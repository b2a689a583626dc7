from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evaluate.fake_table import MARKS, fake_table

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.evaluate.score_table import ScoreTable, prefix, read_score_table
from formwright.testing.spaces import small

TABLE = fake_table(small(), 50, about="ä")


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    TABLE.write(path)
    found = read_score_table(path)
    assert found.facts == {**TABLE.facts, "marks": list(MARKS), "seeds": [0, 1, 2]}
    for field in fields(ScoreTable)[1:]:
        before, after = getattr(TABLE, field.name), getattr(found, field.name)
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)
    assert (len(found), found.marks, found.digest) == (50, MARKS, TABLE.digest)


def test_the_same_table_has_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        TABLE.write(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_digest_depends_on_scores_and_facts() -> None:
    others = [replace(TABLE, test=TABLE.test + 1), replace(TABLE, facts={**TABLE.facts, "task": "another"})]
    assert len({TABLE.digest, *(other.digest for other in others)}) == 3


@pytest.mark.parametrize("name", ["digests", "validation", "test", "params", "latency_ms", "noise_validation"])
def test_arrays_of_another_size_are_refused(name: str) -> None:
    changed: Any = {name: getattr(TABLE, name)[1:]}
    with pytest.raises(IllegalInput, match=f"the array {name} has the shape"):
        replace(TABLE, **changed)


def test_facts_that_are_needed_are_asked_for() -> None:
    with pytest.raises(IllegalInput, match="lack task, objective"):
        replace(TABLE, facts={key: TABLE.facts[key] for key in ("space", "marks", "seeds")})


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    with pytest.raises(IllegalInput, match=r"cannot read the table of scores .*table\.npz"):
        read_score_table(path)
    TABLE.write(path)
    whole = path.read_bytes()
    for content in (b"", b"no table", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(IllegalInput, match="cannot read the table of scores"):
            read_score_table(path)


def test_a_damaged_table_is_refused_wherever_the_damage_is(tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    TABLE.write(path)
    whole, rng = path.read_bytes(), derive(0, "damage")
    for begin in rng.integers(len(whole) - 8, size=100):
        path.write_bytes(whole[:begin] + rng.bytes(8) + whole[begin + 8 :])
        with suppress(IllegalInput):  # a date may be damaged, and nobody is hurt
            read_score_table(path)
    path.write_bytes(whole.replace(b"\x08\x00", b"\x63\x00"))  # an unknown way to compress
    with pytest.raises(IllegalInput, match="it is damaged"):
        read_score_table(path)


class Touching:
    """Make a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    path, mark = tmp_path / "table.npz", tmp_path / "was here"
    np.savez(path, facts=np.array([Touching(mark)], object))
    with pytest.raises(IllegalInput, match="not a table written by"):
        read_score_table(path)
    assert not mark.exists()
    np.load(path, allow_pickle=True)["facts"]  # which this would
    assert mark.exists()


def test_prefixes_are_those_of_the_digits() -> None:
    assert prefix("00000000000000ff" + "a" * 48) == 255
    assert prefix("f" * 64) == 2**64 - 1
