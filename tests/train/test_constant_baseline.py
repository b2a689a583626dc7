import numpy as np
import pytest
from numpy.typing import NDArray
from tests.train.cases import DECODER, ENCODER, LENGTH, SPANS, few

from formwright.nn.build import build
from formwright.tasks.rows import Label, Splits, TextRows
from formwright.tasks.task import Task
from formwright.train.fit import head_of
from formwright.train.judge import Judged, constant_baseline, judged, same_masks
from formwright.train.prepare import PreparedRows, prepare
from formwright.train.streams import IGNORED, Masking, in_order


def task_of(
    kind: str, metrics: tuple[str, ...], train: list[Label], held_out: list[Label], labels: tuple[str, ...] = ()
) -> Task:
    def rows(values: list[Label]) -> TextRows:
        return TextRows(tuple((f"row {i}",) for i in range(len(values))), tuple(values))

    splits = Splits(rows(train), rows(held_out), None)
    return Task("mine", kind, metrics[0], lambda: splits, metrics, labels)


def found(task: Task) -> Judged | None:
    prepared = prepare(task, ENCODER, LENGTH)
    return constant_baseline(prepared, prepared.validation)


def test_the_majority_class_is_that_of_the_training_rows() -> None:
    task = task_of("sequence-classification", ("accuracy", "f1", "matthews"), [1, 1, 0], [0, 0, 1, 0], ("no", "yes"))
    one = found(task)
    assert "'yes'" in one.answer
    assert one.metrics == {"accuracy": 0.25, "f1": pytest.approx(0.4), "matthews": 0.0}
    assert one.tables["accuracy"][:, 0].tolist() == [0, 0, 1, 0]


def test_several_labels_are_the_best_ones_of_the_training_rows() -> None:
    train, held_out = [(1, 0, 0), (1, 1, 0), (1, 0, 1)], [(1, 0, 0), (0, 1, 0)]
    metrics = ("micro-f1", "subset-accuracy")
    one = found(task_of("multi-label-classification", metrics, train, held_out, ("a", "b", "c")))
    assert "'a'" in one.answer
    assert "'b'" not in one.answer
    assert one.metrics == {"micro-f1": 0.5, "subset-accuracy": 0.5}


def _after_the_first(part: PreparedRows) -> NDArray[np.int64]:
    """List the tokens that a causal model predicts: all but the first of each row."""
    tokens = part.examples.tokens
    rows = np.split(tokens.values, np.cumsum(tokens.lengths)[:-1])
    return np.concatenate([row[1:] for row in rows])


def test_words_are_guessed_by_their_frequency() -> None:
    prepared = prepare(few("pydoc/causal", 64), DECODER, LENGTH)
    one = constant_baseline(prepared, prepared.validation)
    known, held = (_after_the_first(part) for part in (prepared.train, prepared.validation))
    counts = 1 + np.bincount(known, minlength=prepared.text_tokeniser.size)
    assert one.metrics["perplexity"] == pytest.approx(np.exp(-np.log(counts / counts.sum())[held].mean()))
    assert one.tables["perplexity"].shape == (len(prepared.validation.examples), 2)


def test_numbers_have_a_mean_and_spans_no_constant_answer() -> None:
    one = found(task_of("regression", ("pearson", "spearman"), [1.0, 2.0, 6.0], [1.0, 2.0]))
    assert "mean" in one.answer
    assert one.metrics == {"pearson": 0.0, "spearman": 0.0}
    prepared = prepare(SPANS, ENCODER, LENGTH)
    assert constant_baseline(prepared, prepared.validation) is None


def test_hidden_words_are_guessed_by_frequency_where_a_model_is_judged() -> None:
    prepared = prepare(few("pydoc/masked", 64), ENCODER, LENGTH)
    one = constant_baseline(prepared, prepared.validation)
    tables = judged(build(ENCODER, head=head_of(prepared.task)), prepared, prepared.validation).tables
    assert np.array_equal(tables["perplexity"][:, 1], one.tables["perplexity"][:, 1])  # as many tokens in each row
    prepared = prepare(few("pydoc/masked", 64), ENCODER, LENGTH)
    one, examples = constant_baseline(prepared, prepared.validation), prepared.validation.examples
    counts = 1 + np.bincount(prepared.train.examples.tokens.values, minlength=prepared.text_tokeniser.size)
    counts[list(Masking.of(prepared.text_tokeniser).spared)] = 1
    batches = [same_masks(prepared)(examples, rows) for rows in in_order(examples, 64)]
    hidden = np.concatenate([batch.labels.flatten().numpy() for batch in batches])
    shares = counts / counts.sum()
    assert one.metrics["perplexity"] == pytest.approx(np.exp(-np.log(shares)[hidden[hidden != IGNORED]].mean()))
