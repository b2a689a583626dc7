"""The kinds of text: classes, labels or scores of sentences; questions about texts; language; translation."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from formwright.core.errors import IllegalInput
from formwright.core.registry import Late
from formwright.tasks.conll import has_tags, read_words, tag_task, unlabelled_words, write_words
from formwright.tasks.constant_answers import best_labels, commonest_class, mean_score
from formwright.tasks.kind import Kind
from formwright.tasks.relations import MARKERS, METRICS, has_relations, relation_task, unlabelled_relations
from formwright.tasks.rows import PlainText, SpanRows, TextRows, TranslationRows
from formwright.tasks.tables import WholeTable, format_of, read_whole_table
from formwright.tasks.text_files import Faults, read_lines

_LOSSES, _STREAMS, _JUDGE = "formwright.train.losses", "formwright.train.streams", "formwright.train.judge"
_PREDICT, _DISTIL = "formwright.train.predictions", "formwright.train.distil"
_TABLE = Late("formwright.tasks.user_tables:own_task")
_NAMES = "formwright.train.judge_names"
_SENTENCES = Late(f"{_STREAMS}:sentences")
_FREQUENCIES = Late(f"{_JUDGE}:frequencies_baseline")


def unlabelled_texts(texts: Sequence[tuple[str, ...]]) -> TextRows:
    """Make rows without answers; their labels mean nothing."""
    return TextRows(tuple(texts), (0,) * len(texts))


def unlabelled_questions(texts: Sequence[tuple[str, ...]]) -> SpanRows:
    """Make rows of a question and the text that may answer it."""
    pairs = [row for row in texts if len(row) == 2]
    if len(pairs) < len(texts):
        raise IllegalInput("a question and a text are two columns; name both with --text QUESTION,CONTEXT")
    questions, contexts = zip(*pairs, strict=True)
    return SpanRows(questions, contexts, ((),) * len(texts))


def unlabelled_lines(texts: Sequence[tuple[str, ...]]) -> PlainText:
    """Make rows of texts to be continued."""
    return PlainText(tuple(" ".join(row) for row in texts))


def unlabelled_sources(texts: Sequence[tuple[str, ...]]) -> TranslationRows:
    """Make rows of sentences to be translated."""
    sources = unlabelled_lines(texts).texts
    return TranslationRows(sources, ("",) * len(sources))


def read_lines_or_table(path: Path, columns: Sequence[str]) -> WholeTable:
    """Read a table, or a file with a text in every line that is not empty."""
    if format_of(path) is not None:
        return read_whole_table(path, columns)
    lines = [line.strip() for line in read_lines(path, Faults(str(path))) if line.strip()]
    return WholeTable(("text",), tuple({"text": line} for line in lines), tuple((line,) for line in lines))


SEQUENCE_CLASSIFICATION = Kind(
    name="sequence-classification",
    short="classification",
    own_task=partial(_TABLE, kind="sequence-classification"),
    in_hub=True,
    about="one class for a text or a pair of texts",
    head="sequence-classification",
    metrics=("accuracy",),
    binary_metrics=("f1",),
    batch=_SENTENCES,
    judge=Late(f"{_JUDGE}:one_answer_each"),
    answer=Late(f"{_JUDGE}:best_class"),
    baseline=Late(f"{_JUDGE}:labels_baseline"),
    constant=commonest_class,
    predict=Late(f"{_PREDICT}:classes"),
    unlabelled=unlabelled_texts,
    classes=True,
    pretrainable=True,
    in_files=True,
)

MULTI_LABEL = replace(
    SEQUENCE_CLASSIFICATION,
    name="multi-label-classification",
    short="multi-label",
    own_task=partial(_TABLE, kind="multi-label-classification"),
    about="any number of labels for a text or a pair of texts",
    multi_label=True,
    metrics=("micro-f1", "macro-f1", "subset-accuracy"),
    binary_metrics=(),
    loss=Late(f"{_LOSSES}:several_labels"),
    distillation_loss=Late(f"{_DISTIL}:labels_distillation"),
    judge=Late(f"{_JUDGE}:several_labels_each"),
    answer=None,
    constant=best_labels,
    predict=Late(f"{_PREDICT}:several_labels"),
)

REGRESSION = replace(
    SEQUENCE_CLASSIFICATION,
    name="regression",
    short="regression",
    own_task=partial(_TABLE, kind="regression"),
    about="a number for a text or a pair of texts",
    outputs=1,
    metrics=("pearson", "spearman"),
    binary_metrics=(),
    loss=Late(f"{_LOSSES}:numbers"),
    distillation_loss=Late(f"{_DISTIL}:numbers_distillation"),
    answer=Late(f"{_JUDGE}:number"),
    constant=mean_score,
    predict=Late(f"{_PREDICT}:numbers"),
    classes=False,
)

SPAN_EXTRACTION = Kind(
    name="span-extraction",
    about="the part of a text that answers a question",
    head="span-extraction",
    metrics=("span-f1", "exact"),
    examples=Late("formwright.tasks.span_windows:encode_spans"),
    batch=_SENTENCES,
    per_token=True,
    windows=True,
    loss=Late(f"{_LOSSES}:spans"),
    distillation_loss=Late(f"{_DISTIL}:spans_distillation"),
    judge=Late(f"{_JUDGE}:spans"),
    baseline=Late(f"{_JUDGE}:never_answering"),
    predict=Late(f"{_PREDICT}:spans"),
    unlabelled=unlabelled_questions,
    pretrainable=True,
    in_files=True,
)

TOKEN_CLASSIFICATION = Kind(
    name="token-classification",
    short="tags",
    about="a tag for each word of a text, as of named entities",
    head="token-classification",
    metrics=("entity-f1", "tag-accuracy"),
    suits=has_tags,
    own_task=tag_task,
    examples=Late("formwright.tasks.tag_tokens:encode_tagged"),
    batch=Late(f"{_STREAMS}:tagged"),
    per_token=True,
    judge=Late(f"{_NAMES}:tags_each"),
    baseline=Late(f"{_NAMES}:tags_baseline"),
    predict=Late(f"{_NAMES}:tags_predicted"),
    unlabelled=unlabelled_words,
    read=read_words,
    write=write_words,
    form="conll",
    columns=("text",),
    classes=True,
    pretrainable=True,
    in_files=True,
)

RELATION_CLASSIFICATION = replace(
    SEQUENCE_CLASSIFICATION,
    name="relation-classification",
    short="relations",
    about="the relation between two marked words of a text",
    metrics=METRICS,
    binary_metrics=(),
    suits=has_relations,
    own_task=relation_task,
    in_hub=False,  # their texts need markers, which are checked in files
    judge=Late(f"{_NAMES}:relations_each"),
    answer=None,  # the names of relations are judged, not their numbers
    baseline=Late(f"{_NAMES}:relations_baseline"),
    train_tokeniser=Late("formwright.tasks.relations:train_marked_wordpiece"),
    unlabelled=unlabelled_relations,
    markers=MARKERS,
    columns=("text",),
)

MASKED_LM = Kind(
    name="masked-lm",
    short="masked-lm",
    own_task=partial(Late("formwright.tasks.corpora:own_text"), kind="masked-lm"),
    about="the masked tokens of a text",
    head="masked-lm",
    metrics=("perplexity",),
    batch=Late(f"{_STREAMS}:plain"),
    stream=Late(f"{_STREAMS}:masked_stream"),
    judge=Late(f"{_JUDGE}:masked_words"),
    baseline=Late(f"{_JUDGE}:masked_frequencies_baseline"),
    cuts=False,
    of_words=True,
    pretrainable=True,
    in_files=True,
)

CAUSAL_LM = Kind(
    name="causal-lm",
    short="causal-lm",
    suits=Late("formwright.tasks.corpora:has_text"),
    own_task=Late("formwright.tasks.corpora:own_text"),
    predict=Late(f"{_PREDICT}:continuations"),
    unlabelled=unlabelled_lines,
    read=read_lines_or_table,
    columns=("text",),
    about="the next token of a text",
    head="causal-lm",
    metrics=("perplexity",),
    batch=Late(f"{_STREAMS}:next_tokens"),
    judge=Late(f"{_JUDGE}:words"),
    baseline=_FREQUENCIES,
    cuts=False,
    of_words=True,
    in_files=True,
)

SEQ2SEQ_LM = Kind(
    name="seq2seq-lm",
    short="translation",
    own_task=Late("formwright.tasks.translation_tables:own_translations"),
    predict=Late(f"{_PREDICT}:translations"),
    unlabelled=unlabelled_sources,
    read=read_lines_or_table,
    columns=("text",),
    about="a text in another language",
    head="seq2seq-lm",
    metrics=("perplexity", "bleu"),
    batch=Late(f"{_STREAMS}:translations"),
    loss=partial(Late(f"{_LOSSES}:classes"), smoothing=0.1),
    judge=Late(f"{_JUDGE}:generated"),
    baseline=_FREQUENCIES,
    train_tokeniser=Late(
        "formwright.tasks.tokeniser:train_subwords"
    ),  # generated texts must keep upper and lower case and their spaces
    of_words=True,
)
