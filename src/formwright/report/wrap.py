"""Breaking words into lines without tearing apart what belongs together, such as `4 heads x 64` or `kernel 9`."""

import re
import textwrap

_GLUE = "\N{NO-BREAK SPACE}"
_AROUND = re.compile(r" ([+/-]) ")  # the signs of a formula
_INSIDE = re.compile(r"(?<=[(·])")  # where a formula that is too long may be broken
_TOGETHER = re.compile(r" (?=x \d)|(?<=\d) (?=heads?\b)|(?<=\bx) (?=\d)|(?<=\bto) (?=\d)|(?<=\bkernel) (?=\d)")


def wrapped(words: str, letters: int, indent: int = 0, most: int | None = None) -> list[str]:
    """Break words into lines of so many letters, later ones indented; `most` lines at most, the rest an ellipsis."""
    glued = _TOGETHER.sub(_GLUE, words)
    whole = _with_operands(_AROUND.sub(rf"{_GLUE}\1{_GLUE}", glued))
    wrapper = _Wrapper(
        letters, subsequent_indent=" " * indent, break_on_hyphens=False, max_lines=most, placeholder=" …"
    )
    lines = wrapper.wrap(whole if max(map(len, whole.split(" "))) <= letters - indent else glued)
    return [line.replace(_GLUE, " ") for line in lines]


def _with_operands(words: str) -> str:
    """Glue together what stands in brackets, such as the two operands of a distance."""
    depth, letters = 0, []
    for letter in words:
        depth += (letter == "(") - (letter == ")")
        letters.append(_GLUE if letter == " " and depth > 0 else letter)
    return "".join(letters)


class _Wrapper(textwrap.TextWrapper):
    def _split(self, text: str) -> list[str]:
        """Break what fits on no line behind a bracket or a product, before it would be broken anywhere."""
        room = self.width - len(self.subsequent_indent)
        chunks = super()._split(text)
        return [part for chunk in chunks for part in (_INSIDE.split(chunk) if len(chunk) > room else [chunk]) if part]


def shortened(words: str, letters: int) -> str:
    """Cut words that take more letters than there are, and show that they were cut."""
    return words if len(words) <= letters else (words[: letters - 1] + "…" if letters else "")
