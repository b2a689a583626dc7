"""EFTNAS as a pipeline, and the promises that its docstring makes."""

from pathlib import Path

import pytest
import torch
from tests.pipeline.compressions import begun, compression, made, tokeniser

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, CrossAttention
from formwright.core.errors import IllegalInput
from formwright.cost import macs
from formwright.nn.build import build
from formwright.nn.hf.save import save_pretrained_folder
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.score_parts import BALANCE, MeasureParts, ScoreParts
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes import RECIPES, eftnas
from formwright.search import SEARCHERS
from formwright.supernet.automatic import LEAST, MULTIPLE, LayerSizes, sub_network

STAGES = ["teacher", "scores", "space", "super-network", "search", "deliver"]


def test_it_is_a_pipeline_of_shared_stages() -> None:
    made = RECIPES.get("eftnas")(TaskChoice("mini-glue/sentiment"))
    assert list(made.named) == STAGES
    assert made.named["search"].searcher.NAME in SEARCHERS.names()  # type: ignore[attr-defined]
    assert Pipeline.from_json(made.to_json()) == made
    assert RECIPES.get("eftnas").command == "compress"


def test_parts_are_measured_first_where_a_target_is_in_milliseconds() -> None:
    made = eftnas.eftnas(TaskChoice("mini-glue/sentiment"), targets=("macs=50%", "latency_ms=8"), hidden=(64, 32, 64))
    assert list(made.named) == ["latency", *STAGES]
    assert {made.named[name].hidden for name in ("latency", "space")} == {(32, 64)}  # type: ignore[attr-defined]
    assert made.named["teacher"].hidden  # type: ignore[attr-defined]
    moved = eftnas.eftnas(TaskChoice("mini-glue/sentiment"), order="movement")
    assert moved.named["teacher"].movement  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "promise",
    [
        f"multiples of {MULTIPLE}",
        f"below {LEAST:.0%}".replace("%", " %"),
        f"{ScoreParts.__dataclass_fields__['batches'].default} batches",
        f"power of {BALANCE}",
        "`movement`",
    ],
)
def test_what_the_docstring_says_is_what_is_done(promise: str) -> None:
    assert promise in " ".join(str(eftnas.__doc__).split())


def of_transformers(folder: Path) -> Path:
    """Write a vision transformer with random weights by the library's own class."""
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    torch.manual_seed(0)
    ViTForImageClassification(ViTConfig(**sizes, image_size=8, patch_size=4, num_channels=1)).save_pretrained(folder)
    return folder


def of_ours(folder: Path, card: Card, spec: HeadSpec) -> Path:
    return save_pretrained_folder(build(card, head=spec, seed=3), folder, tokenizer=tokeniser().tokenizer)


_TABLE, _BELOW = TokenEmbedding(80, 16, length=32), Block(16, Attention(4, 4), (64,), norm="pre")
DECODER = Card(decoder=Stack(_TABLE, (_BELOW,) * 2, causal=True))
_ABOVE = Block(16, Attention(4, 4), (64,), norm="pre", cross=CrossAttention(2, 8))
TRANSLATOR = Card(Stack(_TABLE, (_BELOW,)), Stack(_TABLE, (_ABOVE,) * 2, causal=True), share_embedding=True)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["digits", "pydoc/causal", "translation"])
def test_models_of_every_family_are_compressed(task: str, tmp_path: Path) -> None:
    models = {
        "digits": lambda: of_transformers(tmp_path / "model"),
        "pydoc/causal": lambda: of_ours(tmp_path / "model", DECODER, HeadSpec("causal-lm")),
        "translation": lambda: of_ours(tmp_path / "model", TRANSLATOR, HeadSpec("seq2seq-lm")),
    }
    choice = TaskChoice(task, rows=60)
    run = begun(compression(tmp_path, task=choice, model=models[task](), hidden=(8,)), tmp_path / "out")
    shared = made(run, "super-network")
    drawn = run.artifact(run.pipeline.named["space"])
    teacher, scores = run.artifact(run.pipeline.named["teacher"]).model, run.artifact(run.pipeline.named["scores"])
    assert {name: len(one) for name, one in scores.order.through.items()} == {"hidden": 16}
    assert shared.card == teacher.transformer.card
    small = shared.extracted(drawn.choices.smallest)
    assert macs(small.transformer.card, 16) < 0.5 * macs(shared.card, 16)
    assert {stack.output_width for stack in small.transformer.card.stacks} == {8}


@pytest.mark.parametrize(
    ("task", "card", "spec", "least"),
    [
        ("pydoc/causal", DECODER, HeadSpec("causal-lm"), ((1, 16),) * 2),
        ("translation", TRANSLATOR, HeadSpec("seq2seq-lm"), ((4, 64),) + ((1, 1, 16),) * 2),
    ],
    ids=["decoder", "encoder-decoder"],
)
def test_targets_in_milliseconds_are_added_up_for_every_stack(
    task: str, card: Card, spec: HeadSpec, least: LayerSizes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine whose time is the number of operations, the parts add up to that of the sub-network."""
    monkeypatch.setattr("formwright.nn.latency.quick", lambda length: lambda card: macs(card, length) / 1e4)
    model = of_ours(tmp_path / "model", card, spec)
    made = compression(tmp_path, task=TaskChoice(task, rows=60), model=model, targets=("latency_ms=80%",))
    run = begun(made, tmp_path / "out")  # which refuses targets that cannot be met
    stage = run.pipeline.of_kind(MeasureParts)[0]
    table, length = run.artifact(stage), stage.resolved(run.stage(stage)).length
    for one in (card, sub_network(card, least)):
        assert table(one) == pytest.approx(macs(one, length) / 1e4)


def test_a_model_whose_layers_differ_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    layers = (_BELOW, Block(16, Attention(2, 4), (64,), norm="pre"))
    model = of_ours(tmp_path / "model", Card(decoder=Stack(_TABLE, layers, causal=True)), HeadSpec("causal-lm"))
    made = compression(tmp_path, task=TaskChoice("pydoc/causal", rows=60), model=model, targets=("latency_ms=80%",))
    with pytest.raises(IllegalInput, match=r"MACs or parameters.*macs=50%"):
        begun(made, tmp_path / "out")
    assert not list((tmp_path / "out").glob("teacher*"))
