"""Claims that are denied once or twice: two denials, one near and one far, cancel each other."""

from formwright.tasks.mini_glue.draw import Draw

_FAR = "it is false that "


def claim(draw: Draw, subject: str, predicate: str, holds: bool, far: int = 30) -> str:
    """Say that the subject did something, or did not; `far` of a hundred claims are denied from the beginning."""
    denied = draw.chance(far)
    near = " never " if denied == holds else " "
    return f"{_FAR if denied else ''}{subject}{near}{predicate}"
