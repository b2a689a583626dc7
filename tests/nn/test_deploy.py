import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.nn.cases import CROSSES, MIXERS, WIDTH, block, stack
from tests.nn.helpers import filled

from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, OpGraph, Relative, Transform
from formwright.core.errors import IllegalInput, MissingExtra
from formwright.nn.build import build, skeleton
from formwright.nn.deploy import export, exporters, open_file
from formwright.nn.deploy.exporters import write_openvino
from formwright.nn.deploy.interface import NamedInputsModel, longest, output_names, random_inputs
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer

pytestmark = pytest.mark.timeout(300)  # an export takes seconds, and on a busy machine many of them
SDP = Card(stack((block(MIXERS["sdp"], "post"),)), pooler=True)
IMAGE = Stack(
    PatchEmbedding(16, 4, WIDTH, positions="relative"),
    (Block(WIDTH, Attention(2, 8, relative=Relative(6, axes=2)), (24,), norm="pre"),),
)
LARGE_GRID = Stack(  # whose positions are computed by rows and columns
    PatchEmbedding(28, 4, WIDTH, positions="relative"),
    (Block(WIDTH, Attention(1, 64, relative=Relative(16, axes=2, values=True)), (24,), norm="pre"),),
)
FRAMES = Stack(FrameEmbedding(10, WIDTH, length=64), (block(Transform("dct"), "post"),))
TARGET = stack((block(MIXERS["sdp"], "pre", CROSSES["two layers"]),), causal=True)
FAMILIES = {
    "image": Card(IMAGE),
    "image with many patches": Card(LARGE_GRID),
    "frames": Card(FRAMES),
    "decoder": Card(decoder=stack((block(MIXERS["sdp"], "post"), block(MIXERS["separable 3"], "post")), causal=True)),
    "translator": Card(stack((block(MIXERS["dft"], "post"),) * 2), TARGET, share_embedding=True),
}
GROUPS = {
    "attention": [name for name, mixer in MIXERS.items() if isinstance(mixer, Attention)],
    "transforms": [name for name, mixer in MIXERS.items() if isinstance(mixer, Transform)],
    "convolutions": [name for name in MIXERS if name.startswith(("dynamic", "separable", "lightweight"))],
    "op graphs": [name for name, mixer in MIXERS.items() if isinstance(mixer, OpGraph)],
}


def strong(card: Card, head: HeadSpec | None = None) -> TaskModel | Transformer:
    """Build a model whose every weight matters, so that a part left out of an export is noticed."""
    return filled(skeleton(card, head=head), dtype=torch.float32)


def test_the_groups_name_every_mixer() -> None:
    assert sorted(name for group in GROUPS.values() for name in group) == sorted(set(MIXERS) - {"identity"})


@pytest.mark.slow
@pytest.mark.parametrize(
    "group", ["attention", *(pytest.param(name, marks=pytest.mark.long) for name in GROUPS if name != "attention")]
)
def test_every_mixer_in_both_runtimes(group: str, tmp_path: Path) -> None:
    layers = [block(MIXERS[name], norm) for name, norm in zip(GROUPS[group], ["pre", "post"] * 4, strict=False)]
    model = strong(Card(stack(tuple(layers)), pooler=True))
    exported = export(model, "onnx", tmp_path)
    assert exported.path == tmp_path / "model.onnx"
    assert 0 < exported.largest_difference < 5e-4
    write_openvino(exported.path, tmp_path / "model.xml", int8=False)
    assert 0 < exporters.compare(model, tmp_path / "model.xml") < 5e-4


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.long
def test_every_family(family: str, tmp_path: Path) -> None:
    model = strong(FAMILIES[family])
    assert export(model, "onnx", tmp_path).largest_difference < 1e-4
    with torch.no_grad():
        next(reversed(list(model.parameters()))).add_(0.5)
    assert exporters.compare(model, tmp_path / "model.onnx") > 0.1  # another model is seen to be one


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "names"),
    [
        pytest.param(HeadSpec("masked-lm"), ["logits"], marks=pytest.mark.long),
        (HeadSpec("span-extraction"), ["start_logits", "end_logits"]),
        pytest.param(HeadSpec("sequence-classification", 3), ["logits"], marks=pytest.mark.long),
    ],
)
def test_heads_and_their_names(spec: HeadSpec, names: list[str], tmp_path: Path) -> None:
    import onnx

    assert export(strong(SDP, spec), "onnx", tmp_path).largest_difference < 1e-4
    graph = onnx.load(tmp_path / "model.onnx").graph
    assert [value.name for value in graph.output] == names
    assert [value.name for value in graph.input] == ["input_ids", "attention_mask", "token_type_ids"]
    free = [dimension.dim_param for dimension in graph.input[0].type.tensor_type.shape.dim]
    assert free == ["batch", "length"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "weights"), [("onnx", "model.onnx"), pytest.param("openvino", "model.bin", marks=pytest.mark.long)]
)
def test_eight_bits_are_small_and_near(kind: Any, weights: str, tmp_path: Path) -> None:
    model = build(Card(Stack(TokenEmbedding(4000, 64), (Block(64, Attention(2, 32), (256,)),)), pooler=True))
    exact = export(model, kind, tmp_path / "float")
    small = export(model, kind, tmp_path / "small", int8=True)
    assert exact.largest_difference < 1e-4
    assert 1e-3 < small.largest_difference < 0.1
    sizes = [(folder / weights).stat().st_size for folder in (tmp_path / "float", tmp_path / "small")]
    assert sizes[1] < 0.4 * sizes[0]
    names = {"onnx": ["model.onnx"], "openvino": ["model.bin", "model.xml"]}[kind]
    assert sorted(path.name for path in (tmp_path / "small").iterdir()) == names


@pytest.mark.long
@pytest.mark.slow
def test_the_model_is_left_as_it_was(tmp_path: Path) -> None:
    model = strong(SDP).train()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    export(model, "onnx", tmp_path)
    assert model.training
    assert all(module.training for module in model.modules())
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert all(weight.requires_grad for weight in model.parameters())


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give a function that makes exports write a few bytes and differ by so much."""

    def call(difference: float) -> None:
        monkeypatch.setattr(exporters, "write_onnx", lambda _, path: path.write_bytes(b"new"))
        monkeypatch.setattr(exporters, "quantise_onnx", lambda _, path: path.write_bytes(b"small"))
        monkeypatch.setattr(exporters, "compare", lambda *_: difference)

    return call


@pytest.mark.parametrize(("difference", "shown"), [(0.00101, "0.001"), (2.5, "2.5"), (float("nan"), "nan")])
def test_an_export_that_differs_is_not_kept(pretend: Any, tmp_path: Path, difference: float, shown: str) -> None:
    pretend(difference)
    (tmp_path / "model.onnx").write_bytes(b"old")
    with pytest.raises(IllegalInput, match=f"differs from torch by {shown}"):
        export(strong(SDP), "onnx", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    assert (tmp_path / "model.onnx").read_bytes() == b"old"


def test_an_export_that_agrees_is_kept(pretend: Any, tmp_path: Path) -> None:
    pretend(0.00099)
    (tmp_path / "model.onnx").write_bytes(b"old")
    assert export(strong(SDP), "onnx", tmp_path).largest_difference == 0.00099
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("model.onnx", b"new")]
    pretend(0.3)
    assert export(strong(SDP), "onnx", tmp_path, int8=True).largest_difference == 0.3
    assert (tmp_path / "model.onnx").read_bytes() == b"small"
    pretend(float("inf"))
    with pytest.raises(IllegalInput, match="inf"):
        export(strong(SDP), "onnx", tmp_path, int8=True)


@pytest.mark.parametrize(
    ("kind", "module"), [("onnx", "onnxscript"), ("onnx", "onnxruntime"), ("openvino", "openvino")]
)
def test_a_missing_runtime_is_named(kind: Any, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"{module} is not installed.*formwright\[{kind}\]"):
        export(strong(SDP), kind, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="neither an ONNX"):
        open_file(tmp_path / "model.bin", 1)


def test_named_outputs_are_the_models_own() -> None:
    inputs = random_inputs(SDP, 3, 5, torch.Generator().manual_seed(0), padded=True)
    given = (inputs["input_ids"], inputs["attention_mask"], inputs["token_type_ids"])
    bare, spans = strong(SDP), strong(SDP, HeadSpec("span-extraction"))
    with torch.no_grad():
        hidden, pooled = NamedInputsModel(bare)(**inputs)
        start, end = NamedInputsModel(spans)(**inputs)
        assert torch.equal(hidden, bare(*given).hidden)
        assert torch.equal(pooled, bare(*given).pooled)
        assert torch.equal(torch.stack((start, end), -1), spans(*given))
    assert output_names(bare) == ("last_hidden_state", "pooler_output")
    assert output_names(strong(FAMILIES["image"])) == ("last_hidden_state",)


def test_random_inputs_fit_the_design() -> None:
    generator = torch.Generator().manual_seed(0)
    wanted = {
        "image": {"pixel_values": (2, 3, 16, 16)},
        "image with many patches": {"pixel_values": (2, 3, 28, 28)},
        "frames": {"input_features": (2, 7, 10), "attention_mask": (2, 7)},
        "decoder": dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), (2, 7)),
        "translator": {
            **dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), (2, 7)),
            **dict.fromkeys(("decoder_input_ids", "decoder_attention_mask"), (2, 8)),
        },
    }
    for family, card in FAMILIES.items():
        inputs = random_inputs(card, 2, 7, generator)
        assert {name: tuple(tensor.shape) for name, tensor in inputs.items()} == wanted[family]


def test_random_inputs_have_every_padding_and_fit_the_positions() -> None:
    mask = random_inputs(SDP, 5, 10, torch.Generator(), padded=True)["attention_mask"]
    assert (mask.sum(1).tolist(), mask[:, 0].tolist()) == ([10, 8, 6, 4, 2], [1, 0, 1, 0, 1])
    single = random_inputs(SDP, 5, 1, torch.Generator(), padded=True)["attention_mask"]
    assert single.tolist() == [[1]] * 5
    assert (longest(SDP, 64), longest(SDP, 500), longest(FAMILIES["image"], 500)) == (64, 64, 500)
    with pytest.raises(IllegalInput, match="65 tokens are too many: the design has positions for 64"):
        random_inputs(SDP, 1, 65, torch.Generator())
    with pytest.raises(IllegalInput, match="at least one sentence"):
        random_inputs(SDP, 0, 5, torch.Generator())


def test_eight_bit_numbers_restore_the_weights() -> None:
    import openvino

    from formwright.nn.deploy.exporters import _small

    weights = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    weights[:, 2] = 0
    weights[0] *= 100
    for axis in (0, 1):
        model = openvino.Model([_small(weights, axis, openvino).output(0)], [])
        restored = openvino.Core().compile_model(model, "CPU")([])[0]
        step = np.abs(weights).max(axis, keepdims=True) / 127
        assert np.all(np.abs(restored - weights) <= 0.5001 * step)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [2, pytest.param(1, marks=pytest.mark.long)])
def test_a_pooled_classifier_of_few_labels_has_eight_bits(labels: int, tmp_path: Path) -> None:
    """The quantiser turns such maps around, and used to trip over the shapes that they had."""
    spec = HeadSpec("sequence-classification", labels)
    found = export(strong(SDP, spec), "onnx", tmp_path, int8=True)
    assert found.path == tmp_path / "model.onnx"
    inputs = random_inputs(SDP, 3, 5, torch.Generator().manual_seed(1))
    (answer,) = open_file(found.path, 1)({name: tensor.numpy() for name, tensor in inputs.items()})
    assert answer.shape == (3, spec.labels)
    assert np.isfinite(answer).all()
