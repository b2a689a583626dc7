"""Fewer of many: what a figure shows of a study with more trials than anyone can see."""

import numpy as np


def evenly(count: int, most: int) -> list[int]:
    """Choose at most so many of the places from 0 to `count`, evenly spaced, the first and the last among them."""
    return list(range(count)) if count <= most else np.linspace(0, count - 1, most).round().astype(int).tolist()
