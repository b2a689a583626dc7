"""Breaking words into lines without tearing apart what belongs together, such as `4 heads x 64` or `kernel 9`."""

import re
import textwrap

_GLUE = "\N{NO-BREAK SPACE}"
_AROUND = re.compile(r" ([+/-]) ")  # the signs of a formula
_TOGETHER = re.compile(r" (?=x \d)|(?<=\d) (?=heads?\b)|(?<=\bx) (?=\d)|(?<=\bto) (?=\d)|(?<=\bkernel) (?=\d)")


def wrapped(words: str, letters: int, indent: int = 0, most: int | None = None) -> list[str]:
    """Break words into lines of so many letters, later ones indented; `most` lines at most, the rest an ellipsis."""
    glued = _TOGETHER.sub(_GLUE, words)
    whole = _AROUND.sub(rf"{_GLUE}\1{_GLUE}", glued)
    lines = textwrap.wrap(
        whole if max(map(len, whole.split(" "))) <= letters - indent else glued,
        letters,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        max_lines=most,
        placeholder=" …",
    )
    return [line.replace(_GLUE, " ") for line in lines]


def shortened(words: str, letters: int) -> str:
    """Cut words that take more letters than there are, and show that they were cut."""
    return words if len(words) <= letters else (words[: letters - 1] + "…" if letters else "")
