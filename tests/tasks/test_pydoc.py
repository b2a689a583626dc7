from formwright.tasks.pydoc import CAUSAL, MASKED, pydoc_splits
from formwright.tasks.tokeniser import train_wordpiece

SPLITS = pydoc_splits()


def test_all_splits_hold_prose() -> None:
    sizes = [sum(map(len, rows.texts)) for rows in (SPLITS.train, SPLITS.validation, SPLITS.test)]
    assert min(sizes) > 10_000
    assert sizes[0] > 2 * (sizes[1] + sizes[2])


def test_no_paragraph_comes_twice() -> None:
    texts = [*SPLITS.train.texts, *SPLITS.validation.texts, *SPLITS.test.texts]
    assert len(set(texts)) == len(texts)
    assert all(len(text.split()) >= 6 and "\n" not in text for text in texts)


def test_masked_and_causal_modelling_share_the_text() -> None:
    assert MASKED.search_view() == CAUSAL.search_view()
    assert (MASKED.kind, CAUSAL.kind) == ("masked-lm", "causal-lm")


def test_a_tokeniser_of_the_training_text_reads_the_rest() -> None:
    tokeniser = train_wordpiece(SPLITS.train, 1_000)
    ids = [index for text in tokeniser.encode(SPLITS.validation.texts) for index in text]
    assert ids.count(1) < 0.001 * len(ids)
