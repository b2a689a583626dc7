"""What evaluators that train have in common."""

from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file
from tests.evaluate.toy import SIZES, TASK, UNTESTED, block, card, files, rows, splits, trainer

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention, CrossAttention
from formwright.core.errors import IllegalInput
from formwright.core.records import Request
from formwright.cost import macs
from formwright.evaluate.context import Context, card_of
from formwright.evaluate.training import WEIGHTS, Trainer, training_macs, weights_of, write_weights
from formwright.nn.build import build
from formwright.tasks.rows import PlainText, Splits, TextRows, TranslationRows
from formwright.tasks.task import Task
from formwright.tasks.tokeniser import Tokeniser, train_wordpiece
from formwright.train.fit import Training, head_of
from formwright.train.prepare import prepare

CARD = card(32)


class Foreign:
    """A card of someone else's."""

    digest = "0"

    def to_json(self) -> object:
        return {}


def translations() -> Splits[TranslationRows]:
    texts = tuple(f"{one} {other}" for one in "abcd" for other in "abcd")
    part = TranslationRows(texts, tuple(text[::-1] for text in texts))
    return Splits(part, part, part)


class Content:
    """Rows that may change under a task, as those of a file do."""

    def __init__(self, splits: Splits[TextRows]) -> None:
        self.splits = splits

    def __call__(self) -> Splits[TextRows]:
        return self.splits


def vocabulary() -> Tokeniser:
    return train_wordpiece(TASK.search_view().train, 32)


def key(one: Trainer, design: Card = CARD, training: Training | None = None) -> str:
    training = training or one.training
    return one.key(design, prepare(one.task, design, training.length, one.tokeniser), training)


def test_only_our_cards_are_trained() -> None:
    with pytest.raises(IllegalInput, match="only a formwright card can be trained, not a Foreign"):
        trainer().observe(Request(Foreign()), Context())
    assert card_of(Request(CARD)) is CARD


def test_a_run_is_named_by_everything_that_decides_it() -> None:
    base = trainer()
    other = train_wordpiece(PlainText(("x y z",)), 30)
    keys = [
        key(base),
        key(base, card(32, 32)),
        key(base, training=trainer(steps=13).training),
        key(base, training=base.seeded(Context(1))),
        key(base, training=replace(base.training, length=8)),
        key(Trainer(UNTESTED, base.training)),
        key(Trainer(TASK, base.training, other)),
    ]
    assert len(set(keys)) == len(keys)
    assert key(trainer(), card(32)) == keys[0]


@pytest.mark.parametrize("split", [0, 1])
def test_other_rows_under_the_same_name_are_another_run(split: int) -> None:
    content = Content(splits())
    task = replace(TASK, splits=content)
    before = key(trainer(task=task))
    parts = [rows(0), rows(1), rows(2)]
    parts[split] = replace(parts[split], labels=parts[split].labels[::-1])
    content.splits = Splits(*parts)
    changed = replace(task)  # the same in all that the task says of itself
    assert changed == task
    assert key(trainer(task=changed)) != before
    content.splits = splits()
    assert key(trainer(task=replace(task))) == before


def test_the_rows_that_are_trained_on_are_those_of_the_file_as_it_is() -> None:
    content = Content(splits())
    task = replace(TASK, splits=content)
    prepare(task, CARD, 12)
    content.splits = Splits(rows(1), rows(0), None)
    assert len(prepare(replace(task), CARD, 12, vocabulary()).train.rows) == SIZES[1]


def test_padding_is_counted_as_far_as_it_is_computed() -> None:
    words = [("a " * number).strip() for number in (1, 2, 3, 10)]
    part = TextRows(tuple((text,) for text in words for _ in range(3)), (0, 1) * 6)
    task = Task("ragged", "sequence-classification", "accuracy", lambda: Splits(part, part, part), labels=("0", "1"))
    ragged = trainer(steps=2, task=task)
    training = replace(ragged.training, recipe=replace(ragged.training.recipe, batch=3, accumulate=2))
    prepared = prepare(task, CARD, 12)
    # batches of like rows, of 3, 4, 5 and 12 tokens with the special ones: no padding, and 6 tokens in the mean
    assert training_macs(CARD, prepared, training, 2) == 3 * 2 * (3 * 2) * macs(CARD, 6)
    whole = replace(training, recipe=replace(training.recipe, batch=99, accumulate=1))
    assert training_macs(CARD, prepared, whole, 2) == 3 * 2 * 12 * macs(CARD, 12)


def test_the_seed_of_a_context_is_that_of_the_recipe() -> None:
    assert trainer().seeded(Context(7)).recipe == replace(trainer().training.recipe, seed=7)


def test_weights_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(CARD, head=head_of(TASK))
    write_weights(weights_of(model), tmp_path / "deep" / "weights.safetensors")
    before = (tmp_path / "deep" / "weights.safetensors").read_bytes()

    def full_disk(*_: object) -> None:
        raise OSError(28, "no room")

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(IllegalInput, match=r"cannot write .*weights\.safetensors: no room"):
        write_weights(weights_of(model), tmp_path / "deep" / "weights.safetensors")
    assert (tmp_path / "deep" / "weights.safetensors").read_bytes() == before
    assert files(tmp_path) == ["deep/weights.safetensors"]


def test_a_model_whose_stacks_share_a_table_is_kept(tmp_path: Path) -> None:
    table = TokenEmbedding(32, 16, length=12)
    above = Block(16, Attention(2, 8), (32,), cross=CrossAttention(2, 8))
    design = Card(Stack(table, (block(),)), Stack(table, (above,), causal=True), share_embedding=True)
    task = Task("reversed", "seq2seq-lm", "perplexity", translations)
    found = trainer(steps=3, task=task).observe(Request(design), Context(0, tmp_path))
    assert files(tmp_path) == [found.artifacts[WEIGHTS]]
    names = load_file(tmp_path / found.artifacts[WEIGHTS]).keys()
    assert "transformer.encoder.embedding.tokens.weight" in names
    assert "transformer.decoder.embedding.tokens.weight" not in names
