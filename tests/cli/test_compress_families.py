"""Whole compressions of other families than BERT, and of pairs of texts."""

from pathlib import Path

import pytest
from tests.cli.compressing import line
from tests.cli.conftest import Run
from tests.cli.test_compress import check
from tests.compress.families import FAMILIES, family

from formwright.core.rng import derive

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.usefixtures("one_process")]


def pairs(folder: Path) -> tuple[object, ...]:
    """Write pairs of letters that are alike or not, and give the options that name them."""
    rng, lines = derive(0, "pairs"), ["first,second,alike"]
    for _ in range(100):
        first, second = ("abcdef"[index] for index in rng.integers(6, size=2))
        lines.append(f"{first} a {first},{second} b,{'yes' if first == second else 'no'}")
    path = folder / "pairs.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ("--task", path, "--text", "first,second", "--label", "alike")


@pytest.mark.parametrize("name", FAMILIES)
def test_other_families_are_compressed(name: str, run: Run, tmp_path: Path) -> None:
    check(run(*line(tmp_path, "--json", model=family(name, tmp_path))).data, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", ["bert", "roberta"])  # which tell two texts apart by types, or by separators alone
def test_pairs_of_texts_are_compressed(name: str, run: Run, tmp_path: Path) -> None:
    model = None if name == "bert" else family(name, tmp_path)
    facts = run(*line(tmp_path, "--json", model=model, task=pairs(tmp_path))).data
    check(facts, tmp_path)
