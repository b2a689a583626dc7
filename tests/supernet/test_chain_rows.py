"""Files of chains: read as they were written, and known for damaged where they are."""

import json
from math import inf, nan
from pathlib import Path

import pytest

from formwright.core.errors import IllegalInput
from formwright.core.files import write_json
from formwright.space.zoo.chains import Chain
from formwright.supernet.chain_rows import plain_row, read_rows, rows_or_none

CHAIN = Chain(8, ("attention", "separable-3"))


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_json(tmp_path / "rows.json", [{**plain_row(CHAIN, 0.5), "stays": True}])
    ((chain, row),) = read_rows(tmp_path / "rows.json")
    assert chain == CHAIN
    assert (row["loss"], row["stays"]) == (0.5, True)


@pytest.mark.parametrize("loss", [nan, inf])
def test_a_loss_that_is_no_number_is_nothing_in_json(loss: float) -> None:
    assert json.loads(json.dumps(plain_row(CHAIN, loss), allow_nan=False))["loss"] is None


@pytest.mark.parametrize("content", [None, "[{", "[{}]", "[]", "{}", "3", '[{"width": 8}]'])
def test_what_is_missing_or_damaged_has_no_rows(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "rows.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert rows_or_none(path) is None
    with pytest.raises(IllegalInput, match="its stage runs again"):
        read_rows(path)
