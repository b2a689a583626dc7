"""Scores out of a table."""

from contextlib import suppress
from dataclasses import fields, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evaluate.fake_table import MARKS, fake_benchmark, fake_table

from formwright.core.errors import EvaluationFailed, IllegalInput, UnknownName
from formwright.core.records import Budget, Objective, Request, Spent
from formwright.core.rng import derive
from formwright.cost import params
from formwright.evaluate import benchmark
from formwright.evaluate.benchmark import Benchmark, ScoreTable, load_flexibench, prefix, read_score_table
from formwright.evaluate.context import Context
from formwright.space.zoo import load_card
from formwright.testing.toy_problem import small, tiny

BENCHMARK = fake_benchmark()
CARDS = [BENCHMARK.space.card(design) for design in BENCHMARK.space.enumerate()]
TABULATED = [CARDS[number] for number in BENCHMARK.table.index]


def changed(**arrays: Any) -> Benchmark:
    return Benchmark(replace(BENCHMARK.table, **arrays), BENCHMARK.space)


def test_the_designs_of_the_table_are_legal_and_found_by_their_cards() -> None:
    assert {card.digest for card in CARDS if BENCHMARK.legal(card)} == {card.digest for card in TABULATED}
    assert [BENCHMARK.row(card) for card in TABULATED] == list(range(200))
    with pytest.raises(IllegalInput, match="the table of 200 designs has none with the digest"):
        BENCHMARK.row(load_card("bert-tiny"))


@pytest.mark.parametrize("split", ["validation", "test"])
@pytest.mark.parametrize(("steps", "column"), [(5, 0), (10, 1), (20, 2), (None, 2)])
def test_scores_and_costs_are_looked_up(split: Any, steps: int | None, column: int) -> None:
    found = BENCHMARK.evaluator(split).evaluate(Request(TABULATED[7], Budget(steps)), Context())
    score = float(getattr(BENCHMARK.table, split)[7, column])
    assert found.metrics == {
        "accuracy": score,
        "params": params(TABULATED[7]),
        "macs": float(BENCHMARK.table.macs[7]),
        "latency_ms": 2.5,
    }
    assert found.spent == Spent(4.0 * MARKS[column] / 20, MARKS[column])


def test_steps_and_splits_that_are_not_there_are_refused() -> None:
    with pytest.raises(IllegalInput, match="after 5, 10, 20 steps, not after 7"):
        BENCHMARK.evaluator().evaluate(Request(TABULATED[0], Budget(7)), Context())
    with pytest.raises(IllegalInput, match="validation and test, not 'train'"):
        BENCHMARK.evaluator("train")  # type: ignore[arg-type]


def test_a_training_that_failed_fails_again_and_comes_last() -> None:
    scores = BENCHMARK.table.validation.copy()
    scores[3] = np.nan
    failed = changed(validation=scores)
    with pytest.raises(EvaluationFailed, match="failed when the table was made"):
        failed.evaluator().evaluate(Request(TABULATED[3]), Context())
    assert failed.ranks[3] == 200
    assert sorted(failed.ranks)[:3] == [1, 2, 3]


def test_costs_that_were_measured_and_ranks_by_validation_scores() -> None:
    unmeasured = changed(latency_ms=np.full(200, np.nan, np.float32))
    assert set(unmeasured.costs(0)) == {"params", "macs"}
    scores = np.zeros((200, 3), np.float32)
    scores[:4, -1] = (0.5, 0.75, 0.75, 1.0)
    assert changed(validation=scores).ranks[:5].tolist() == [4, 2, 2, 1, 5]
    assert BENCHMARK.ranks[int(BENCHMARK.scores().argmax())] == 1
    table = fake_table(small(), 50, objective="loss:min")
    benchmark = Benchmark(table, small())
    assert benchmark.objective == Objective("loss", "min")
    assert benchmark.ranks[int(benchmark.scores().argmin())] == 1


def test_noise_is_what_seeds_add() -> None:
    rng = np.random.default_rng(0)
    true = rng.normal(0.7, 0.05, size=(200, 1, 1))
    seeds = (true + rng.normal(0, 0.02, size=(200, 3, 1))).repeat(3, axis=2).astype(np.float32)
    rows = np.arange(200, dtype=np.uint32)
    noise = changed(validation=seeds[:, 0], noise_rows=rows, noise_validation=seeds[:, 1:], noise_test=seeds[:, 1:])
    found = noise.noise()
    assert (found.designs, found.seeds) == (200, 3)
    assert found.between_seeds == pytest.approx(0.02, rel=0.1)
    assert found.between_designs == pytest.approx(0.05, rel=0.15)


def test_without_seeds_there_is_no_noise_to_tell() -> None:
    nothing = np.empty((0, 2, 3), np.float32)
    single = changed(noise_rows=np.empty(0, np.uint32), noise_validation=nothing, noise_test=nothing)
    with pytest.raises(IllegalInput, match="no designs that were trained with several seeds"):
        single.noise()


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
    monkeypatch.setattr(benchmark, "_FILE", "absent.npz")
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
