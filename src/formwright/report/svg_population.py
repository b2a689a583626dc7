"""The population of an evolution over time: a line for each design that was among the best, as long as it was."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formwright.report.evenly import evenly
from formwright.report.figures import figure
from formwright.report.population import Life, Population
from formwright.report.svg_canvas import element, inline, path, plain, point, text

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 1160.0, 350.0, 66.0, 14.0, 26.0, 44.0
_MOST_OTHERS, _LOWEST = 1_500, 0.05  # dots of trials that never lived, and the share of scores below the figure


@dataclass(frozen=True)
class _Scale:
    """Where numbers of trials and scores stand; what is beyond the ends stands on the edge."""

    last: int
    low: float
    high: float

    def x(self, number: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * number / max(1, self.last)

    def y(self, score: float) -> float:
        share = (score - self.low) / (self.high - self.low) if self.high != self.low else 0.5
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * min(1.0, max(0.0, share))


def draw_population(found: Population, goal: str, *, larger_is_better: bool) -> str:
    """Draw the lives over the trials, with a line up or down to each child, and dots for all other trials."""
    scale = _scale(found, larger_is_better)
    shown = [found.others[place] for place in evenly(len(found.others), _MOST_OTHERS)]
    dots = [_dot(scale, number, score, goal, "other", 2.5) for number, score in shown]
    scores = {life.number: life.score for life in found.lives} | dict(found.others)
    births = [_birth(scale, life, scores[life.parent]) for life in found.lives if life.parent in scores]
    lives = [_life(scale, life, goal) for life in found.lives]
    label = f"{goal} of {len(scores):,} trials in the order of their numbers; {len(found.lives):,} were among the best."
    return inline(_WIDTH, _HEIGHT, label, [*_axes(scale, goal), *dots, *births, *lives])


def _scale(found: Population, larger_is_better: bool) -> _Scale:
    scores = [life.score for life in found.lives] + [score for _, score in found.others]
    ends = (_LOWEST, 1.0) if larger_is_better else (0.0, 1.0 - _LOWEST)
    low, high = np.quantile(scores, ends).tolist()
    lived = [life.score for life in found.lives]
    return _Scale(found.last, min(low, *lived), max(high, *lived))


def _axes(scale: _Scale, goal: str) -> list[str]:
    rows = [(scale.y(value), f"{value:g}") for value in _ticks(scale.low, scale.high)]
    lines = [path(f"M{point(_LEFT, y)}H{_WIDTH - _RIGHT:.1f}", "none", class_="rule") for y, _ in rows]
    words = [text(_LEFT - 10, y + 4, one, class_="quiet", text_anchor="end") for y, one in rows]
    low = _HEIGHT - _BOTTOM
    numbers = [
        text(scale.x(value), low + 18, f"{value:,g}", class_="quiet", text_anchor="middle")
        for value in _ticks(0, max(1, scale.last))
        if value == int(value)
    ]
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    names = [text(middle, low + 36, "trial", class_="quiet", text_anchor="middle"), text(0, 10, goal, class_="quiet")]
    return [*lines, *words, *numbers, *names]


def _ticks(low: float, high: float) -> Sequence[float]:
    """Choose round numbers between two ends, five to ten of them."""
    if low == high:
        return [low]
    size = 10.0 ** np.floor(np.log10((high - low) / 5))
    step = next(size * times for times in (1, 2, 5, 10) if (high - low) / (size * times) <= 10)
    found = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
    return [float(f"{value:.10g}") for value in found]


def _dot(scale: _Scale, number: int, score: float, goal: str, kind: str, radius: float) -> str:
    title = element("title", plain(f"Trial {number:,}: {goal} {figure(score, goal)}"))
    return element(
        "circle", title, cx=scale.x(number), cy=scale.y(score), r=radius, class_=kind, data_trial=str(number)
    )


def _birth(scale: _Scale, life: Life, parent: float) -> str:
    x = scale.x(life.number)
    return path(f"M{point(x, scale.y(parent))}V{scale.y(life.score):.1f}", "none", class_="birth")


def _life(scale: _Scale, life: Life, goal: str) -> str:
    end = scale.last if life.ends is None else life.ends
    kind = "life" if life.ends is not None else "life alive"
    words = f"trial {life.ends:,} took its place" if life.ends is not None else "among the best to the end"
    title = element("title", plain(f"Trial {life.number:,}: {goal} {figure(life.score, goal)}, {words}"))
    x, y = scale.x(life.number), scale.y(life.score)
    line = path(f"M{point(x, y)}H{scale.x(end):.1f}", "none")
    dot = element("circle", cx=x, cy=y, r=4)
    return element("g", title + line + dot, class_=kind, data_trial=str(life.number))
