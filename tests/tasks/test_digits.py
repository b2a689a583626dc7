import numpy as np

from formwright.tasks.digits import DIGITS, digits_splits
from formwright.tasks.test_split import open_test

PINNED = ("d3ebc352", "2346ec26", "da85c1e4")


def test_all_images_are_dealt_once_and_every_digit_is_everywhere() -> None:
    parts = [DIGITS.search_view().train, DIGITS.search_view().validation, open_test(DIGITS)]
    assert [len(rows) for rows in parts] == [1197, 300, 300]
    images = [image.tobytes() for rows in parts for image in rows.pixels]
    assert len(set(images)) == len(images) == 1797
    for rows in parts:
        assert rows.pixels.shape[1:] == (1, 8, 8)
        assert (rows.pixels.min(), rows.pixels.max()) == (0.0, 1.0)
        counts = np.bincount(rows.labels)
        assert len(counts) == len(DIGITS.labels) == 10
        assert counts.min() > 0.06 * len(rows)


def test_images_are_the_same_everywhere_and_say_where_they_come_from() -> None:
    splits = digits_splits()
    assert tuple(rows.digest[:8] for rows in (splits.train, splits.validation, splits.test)) == PINNED
    splits = digits_splits()
    levels = splits.validation.pixels * np.float32(255)
    assert np.array_equal(levels, np.rint(levels))
    assert splits.origins["test"].source == "sklearn.datasets.load_digits"
    numbers = [number for origin in splits.origins.values() for number in origin.rows]
    assert sorted(numbers) == list(range(1797))
