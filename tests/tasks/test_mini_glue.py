"""What all nine generated tasks promise. Their digests are pinned: the same rows on every machine."""

from collections import Counter

import pytest
from tests.tasks import mini_glue_solvers as solvers
from tests.tasks.mini_glue_solvers import affirmed, plain

from formwright.core.rng import derive
from formwright.tasks import MINI_GLUE, load_task
from formwright.tasks.draw import Draw, RowMaker
from formwright.tasks.encode import encode_rows
from formwright.tasks.mini_glue import aside, claim
from formwright.tasks.rows import TextRows
from formwright.tasks.task import Task
from formwright.tasks.test_split import open_test
from formwright.tasks.tokeniser import UNKNOWN, train_wordpiece

DIGESTS = {
    "cola": "7d107dea83cab16f91df7445",
    "sst2": "e9552ce9b166aa3134e9c7b9",
    "mrpc": "e9d1ddca797747b94b999c5c",
    "stsb": "f7a9214fbc98c8c7aee97ef8",
    "mnli": "3758f67f7c6238e25654c5ee",
    "rte": "065c7e1ba45622907e68253b",
    "qnli": "8c76d9c4c3e6134e13b25a46",
    "qqp": "263c348ebf6908a6e59763ca",
    "wnli": "7655103bb03ded734616de0e",
}


READ = ("sst2", "mnli")  # one sentence, and two: a tokeniser of their own for each task takes longest


@pytest.fixture(scope="module", params=MINI_GLUE)
def task(request: pytest.FixtureRequest) -> Task:
    return load_task(f"mini-glue/{request.param}")


def rows_of(task: Task) -> tuple[TextRows, TextRows, TextRows]:
    view, test = task.search_view(), open_test(task)
    return view.train, view.validation, test


def name_of(task: Task) -> str:
    return task.name.removeprefix("mini-glue/")


def test_rows_are_the_same_on_every_machine(task: Task) -> None:
    assert [len(rows) for rows in rows_of(task)] == [8192, 2048, 2048]
    assert "".join(rows.digest[:8] for rows in rows_of(task)) == DIGESTS[name_of(task)]
    texts = [text for rows in rows_of(task) for text in rows.texts]
    assert len(set(texts)) == len(texts)


def test_classes_are_balanced_in_every_split(task: Task) -> None:
    for rows in rows_of(task):
        counts = Counter(rows.labels).values()
        assert len(counts) == (len(task.labels) or 6)
        assert max(counts) - min(counts) <= 1


def test_labels_follow_from_the_words_but_for_five_percent(task: Task) -> None:
    solve = getattr(solvers, name_of(task))
    for rows in rows_of(task):
        right = sum(solve(*texts) == label for texts, label in zip(rows.texts, rows.labels, strict=True))
        assert 0.95 <= right / len(rows) < 0.957


@pytest.mark.parametrize(
    "task", [one if one in READ else pytest.param(one, marks=pytest.mark.long) for one in MINI_GLUE], indirect=True
)
def test_rows_decode_and_no_validation_word_is_unknown(task: Task) -> None:
    train, validation, _ = rows_of(task)
    tokeniser = train_wordpiece(train)
    encoded = encode_rows(validation, tokeniser, 48)
    assert encoded.tokens.lengths.max() < 48
    assert UNKNOWN not in encoded.tokens.values
    for row in range(0, 2048, 128):
        assert tokeniser.decode(encoded.tokens[row].tolist()) == " ".join(validation.texts[row]).replace(" ?", "?")


def test_sentences_are_short_and_splits_alike(task: Task) -> None:
    lengths = [len(text.split()) for row in rows_of(task)[0].texts for text in row]
    assert 3 <= min(lengths) <= max(lengths) <= 25
    means = [sum(len(text) for row in rows.texts for text in row) / len(rows) for rows in rows_of(task)]
    assert max(means) / min(means) < 1.04


def numbered(draw: Draw, label: int) -> tuple[str, ...]:
    return (f"{label} {draw.below(1_000_000)}",)


def poor(draw: Draw, label: int) -> tuple[str, ...]:
    return (str(label),)


@pytest.mark.parametrize(("classes", "noise"), [(2, 3), (3, 3), (6, 10), (2, 0)])
def test_noise_moves_its_share_of_each_class_to_the_next(classes: int, noise: int) -> None:
    rows = RowMaker("a", numbered, classes, noise)().train
    shifts = Counter((label - int(text[0])) % classes for (text,), label in zip(rows.texts, rows.labels, strict=True))
    assert set(shifts) <= {0, 1}
    assert shifts[1] == 8192 // classes * noise // 100 * classes


def test_scores_stand_for_classes_and_rows_must_suffice() -> None:
    rows = RowMaker("a", numbered, classes=2, noise=0, scores=(0.5, 2.5))().validation
    assert {(text[0], label) for (text,), label in zip(rows.texts, rows.labels, strict=True)} == {
        ("0", 0.5),
        ("1", 2.5),
    }
    with pytest.raises(AssertionError, match="too few"):
        RowMaker("a", poor)()


def test_phrases_keep_their_meaning() -> None:
    rows = [maker().train for maker in (RowMaker("a", numbered), RowMaker("a", numbered), RowMaker("b", numbered))]
    assert rows[0] == rows[1] != rows[2]
    assert RowMaker("a", numbered, seed=1)().train != rows[0]
    draw = Draw(derive(0))
    told = {aside(draw, 50, "the cook sang") for _ in range(300)}
    assert (len(told), {plain(text) for text in told}) == (1 + 2 * 6, {"the cook sang"})
    draw = Draw(derive(0))
    for holds in (True, False):
        forms = Counter(claim(draw, "the cook", "sang", holds) for _ in range(1000))
        assert ({affirmed(form) for form in forms}, len(forms)) == ({("the cook sang", holds)}, 2)
        assert 250 < min(forms.values()) < 350
