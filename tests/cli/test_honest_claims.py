"""What the commands say of a model that has learnt nothing: no more than that."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.training import QUICK, card_file

from formwright.core.rng import derive

_SHARE = 0.7  # of the majority class


def noise(folder: Path, rows: int = 300) -> Path:
    """Write rows whose labels nothing in the text tells."""
    rng = derive(0, "noise")
    lines = ["words,verdict"]
    for number in range(rows):
        letters = " ".join("abcdefgh"[index] for index in rng.integers(8, size=6))
        lines.append(f"{number} {letters},{'common' if rng.random() < _SHARE else 'rare'}")
    path = folder / "noise.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_train_says_that_a_model_is_no_better_than_the_majority_class(run: Run, tmp_path: Path) -> None:
    words = ("train", card_file(tmp_path), "--task", noise(tmp_path), "--text", "words", "--label", "verdict")
    words = (*words, *QUICK, "--steps", 20, "--test", "--out", tmp_path / "out")
    found = run(*words, "--json").data
    for split in ("validation", "test"):
        evidence = found["evidence"][split]
        assert "'common'" in evidence["majority"]["answer"]
        low, high = evidence["intervals"]["accuracy"]
        assert low <= (found["test"] if split == "test" else found["metrics"])["accuracy"] <= high
    guess = found["evidence"]["test"]["majority"]
    assert guess["differences"]["accuracy"]["outcome"] != "better"
    assert "guessing" in found["conclusion"][0]
    text = run(*words).out
    assert found["conclusion"][0] in text
    card = (tmp_path / "out" / "model" / "README.md").read_text(encoding="utf-8")
    for told in (text, card):
        assert f"{guess['scores']['accuracy']:.4f}" in told
        assert "'common'" in told


@pytest.mark.long
@pytest.mark.slow
def test_search_claims_no_win_where_nothing_can_be_learnt(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from formwright.testing.spaces import small\n\nspace = small()\n")
    own = ("--task", noise(tmp_path), "--text", "words", "--label", "verdict", "--out", tmp_path / "study")
    few = ("--trials", 2, "--steps", 8, "--final-steps", 12, "--batch", 8, "--length", 16, "--workers", 1)
    found = run("search", f"{tmp_path / 'mine.py'}:space", *own, *few, "--json").data
    best = found["models"][0]
    guess = best["evidence"]["test"]["majority"]
    assert guess["scores"]["accuracy"] > 0.5
    assert "guessing" in found["conclusion"][0]
    assert not any(" is better " in line for line in found["conclusion"])
    assert found["comparisons"][0]["other"] == "baseline"
    shown = f"{guess['scores']['accuracy']:.4f}"
    assert shown in Path(found["report"]).read_text(encoding="utf-8")
    card = (Path(best["path"]) / "README.md").read_text(encoding="utf-8")
    assert shown in card
    assert "baseline" in card
    assert " is better " not in card
    text = run("resume", tmp_path / "study", "--trials", 2).out
    assert "guessing" in next(line for line in text.splitlines() if line)
    assert shown in text
