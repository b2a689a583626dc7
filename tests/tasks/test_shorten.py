import pickle

import numpy as np
import pytest

from formwright.tasks.rows import ImageRows, PlainText, Splits
from formwright.tasks.shorten import first_rows, shortened
from formwright.tasks.task import Task
from formwright.tasks.test_split import open_test


def splits() -> Splits[PlainText]:
    return Splits(*(PlainText(tuple(words.split())) for words in ("a b c d", "e f g", "h i")), division="by hand")


TASK = Task("toy", "masked-lm", "perplexity", splits)


@pytest.mark.parametrize(("number", "left"), [(1, 1), (3, 3), (9, 4)])
def test_only_training_rows_become_fewer(number: int, left: int) -> None:
    task = shortened(TASK, number)
    assert task.search_view().train == PlainText(("a", "b", "c", "d")[:left])
    assert task.search_view().validation == TASK.search_view().validation
    assert open_test(task) == open_test(TASK)
    assert (task.name, task.division) == ("toy", "by hand")


def test_equal_shortenings_are_equal_and_travel() -> None:
    task = shortened(TASK, 2)
    assert task == shortened(TASK, 2) != shortened(TASK, 3)
    assert hash(task) == hash(shortened(TASK, 2))
    assert pickle.loads(pickle.dumps(task)).search_view() == task.search_view()


def test_images_are_cut_with_their_labels() -> None:
    rows = first_rows(ImageRows(np.zeros((3, 1, 2, 2), np.float32), np.arange(3)), 2)
    assert (rows.pixels.shape, rows.labels.tolist()) == ((2, 1, 2, 2), [0, 1])
