from collections import Counter

import pytest

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.make import RowMaker


def numbered(draw: Draw, label: int) -> tuple[str, ...]:
    return (f"{label} {draw.below(1_000_000)}",)


def poor(draw: Draw, label: int) -> tuple[str, ...]:
    return (str(label),)


def test_the_seed_and_the_name_decide() -> None:
    rows = [maker().train for maker in (RowMaker("a", numbered), RowMaker("a", numbered), RowMaker("b", numbered))]
    assert rows[0] == rows[1] != rows[2]
    assert RowMaker("a", numbered, seed=1)().train != rows[0]


@pytest.mark.parametrize(("classes", "noise"), [(2, 3), (3, 3), (6, 10), (2, 0)])
def test_noise_moves_its_share_of_each_class_to_the_next(classes: int, noise: int) -> None:
    rows = RowMaker("a", numbered, classes, noise)().train
    shifts = Counter((label - int(text[0])) % classes for (text,), label in zip(rows.texts, rows.labels, strict=True))
    assert set(shifts) <= {0, 1}
    assert shifts[1] == 8192 // classes * noise // 100 * classes


def test_scores_stand_for_classes() -> None:
    rows = RowMaker("a", numbered, classes=2, noise=0, scores=(0.5, 2.5))().validation
    assert {(text[0], label) for (text,), label in zip(rows.texts, rows.labels, strict=True)} == {
        ("0", 0.5),
        ("1", 2.5),
    }


def test_a_maker_with_too_few_rows_is_our_mistake() -> None:
    with pytest.raises(AssertionError, match="too few"):
        RowMaker("a", poor)()
