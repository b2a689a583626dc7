"""A table whose rows have several labels, or none: which of three letters are in a sentence."""

from pathlib import Path

from formwright.arch.heads import HeadSpec
from formwright.core.rng import derive

LETTERS = ("a", "b", "c")
SEVERAL = HeadSpec("sequence-classification", 3, multi_label=True)


def table(folder: Path, rows: int = 200) -> Path:
    """Write sentences of letters, with those of a, b and c that are among them."""
    rng = derive(1, "letters")
    lines = ["words;letters"]
    for number in range(rows):
        letters = [*(f"{number:03d}"), *("abcdefgh"[index] for index in rng.integers(8, size=4))]
        lines.append(f"{' '.join(letters)};{'|'.join(letter for letter in LETTERS if letter in letters)}")
    path = folder / "letters.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def options(path: Path) -> tuple[object, ...]:
    return ("--task", path, "--text", "words", "--label", "letters", "--task-kind", "multi-label")
