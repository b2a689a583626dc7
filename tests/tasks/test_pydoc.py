from formwright.tasks.pydoc import CAUSAL, MASKED, pydoc_splits
from formwright.tasks.tokeniser import train_wordpiece

SPLITS = pydoc_splits()


def test_splits_hold_prose_and_no_paragraph_twice() -> None:
    sizes = [sum(map(len, rows.texts)) for rows in (SPLITS.train, SPLITS.validation, SPLITS.test)]
    assert min(sizes) > 10_000
    assert sizes[0] > 2 * (sizes[1] + sizes[2])
    texts = [*SPLITS.train.texts, *SPLITS.validation.texts, *SPLITS.test.texts]
    assert len(set(texts)) == len(texts)
    assert all(len(text.split()) >= 6 and "\n" not in text for text in texts)
    assert MASKED.search_view() == CAUSAL.search_view()
    assert (MASKED.kind, CAUSAL.kind) == ("masked-lm", "causal-lm")


def test_a_tokeniser_of_the_training_text_reads_the_rest() -> None:
    tokeniser = train_wordpiece(SPLITS.train, 1_000)
    ids = [index for text in tokeniser.encode(SPLITS.validation.texts) for index in text]
    assert ids.count(1) < 0.001 * len(ids)
