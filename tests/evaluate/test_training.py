"""What evaluators that train have in common."""

from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file
from tests.evaluate.toy import TASK, UNTESTED, block, card, files, trainer

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention, CrossAttention
from formwright.core.errors import IllegalInput
from formwright.core.records import Request
from formwright.evaluate.context import Context
from formwright.evaluate.training import WEIGHTS, Trainer, card_of, write_weights
from formwright.nn.build import build
from formwright.nn.task_model import TaskModel
from formwright.tasks.rows import Splits, TranslationRows
from formwright.tasks.task import Task
from formwright.tasks.tokeniser import train_wordpiece
from formwright.train.fit import head_of

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


def test_only_our_cards_are_trained() -> None:
    with pytest.raises(IllegalInput, match="only a formwright card can be trained, not a Foreign"):
        trainer().observe(Request(Foreign()), Context())


def test_the_card_of_a_request() -> None:
    assert card_of(Request(CARD)) is CARD


def test_a_run_is_named_by_everything_that_decides_it() -> None:
    base = trainer()
    vocabulary = train_wordpiece(TASK.search_view().train, 30)
    keys = [
        base.key(CARD, base.training),
        base.key(card(32, 32), base.training),
        base.key(CARD, trainer(steps=13).training),
        base.key(CARD, base.seeded(Context(1))),
        base.key(CARD, replace(base.training, length=8)),
        Trainer(UNTESTED, base.training).key(CARD, base.training),
        Trainer(TASK, base.training, vocabulary).key(CARD, base.training),
    ]
    assert len(set(keys)) == len(keys)
    assert trainer().key(card(32), trainer().training) == keys[0]


def test_the_seed_of_a_context_is_that_of_the_recipe() -> None:
    assert trainer().seeded(Context(7)).recipe == replace(trainer().training.recipe, seed=7)


def test_weights_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(CARD, head=head_of(TASK))
    assert isinstance(model, TaskModel)
    write_weights(model, tmp_path / "deep" / "weights.safetensors")
    before = (tmp_path / "deep" / "weights.safetensors").read_bytes()

    def full_disk(*_: object) -> None:
        raise IllegalInput("no room")

    monkeypatch.setattr("formwright.evaluate.training.save_tensors", full_disk)
    with pytest.raises(IllegalInput, match="no room"):
        write_weights(model, tmp_path / "deep" / "weights.safetensors")
    assert (tmp_path / "deep" / "weights.safetensors").read_bytes() == before


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
