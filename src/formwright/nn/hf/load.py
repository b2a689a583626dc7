"""Import pretrained models: a card, its settings and its weights, equal to the original in every output.

The configuration of a known model type becomes a design; what cannot be expressed exactly raises an error.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Activation, Block, Stack
from formwright.arch.ops import Attention, Identity
from formwright.core.errors import IllegalInput
from formwright.nn.hf import tensor_names
from formwright.nn.hf.checkpoint_files import CONFIG, find_folder, read_json, read_weights, single
from formwright.nn.hf.config_fields import MODEL_TYPE
from formwright.nn.hf.imported import MULTI_LABEL, Imported, label_names, read_own, tokenizer_files
from formwright.nn.hf.model_folder import verify_checksums
from formwright.nn.hf.tensor_names import PARTS, QUERY_KEY_VALUE, HeadNames, Names, packed
from formwright.nn.settings import Settings

_ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "relu": "relu",
    "silu": "swish",
    "swish": "swish",
    "leaky_relu": "leaky-relu",
    "relu2": "squared-relu",
}
_MOST_LAYERS = 1024
_LARGEST = 1 << 24
# what must have one of these values, or be absent
_REQUIRED: dict[str, tuple[Any, ...]] = {
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "pruned_heads": ({}, None),
    "per_layer_config": ({}, None),
    "quantization_config": (None,),
}


@dataclass(frozen=True)
class ForeignConfig:
    """A validated view of a foreign configuration; absent fields have the defaults of the model type."""

    values: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Raise for options that change the model and that no design can express."""
        for name, allowed in _REQUIRED.items():
            if self.values.get(name) not in allowed:
                raise IllegalInput(f"{name} {self.values[name]!r} is not supported; supported is {allowed[0]!r}")

    def whole(self, name: str, default: int | None = None) -> int:
        """Read a whole number from 0, small enough that the size of a tensor can be counted."""
        value = self.values.get(name, default)
        if type(value) is not int or not 0 <= value <= _LARGEST:
            raise IllegalInput(f"the configuration's {name} is {value!r}; it must be a whole number up to {_LARGEST:,}")
        return value

    def number(self, name: str, default: float) -> float:
        value = self.values.get(name, default)
        try:
            if not isinstance(value, bool) and isinstance(value, int | float):
                return float(value)
        except OverflowError:
            pass
        raise IllegalInput(f"the configuration's {name} is {value!r}; it must be a number")

    def activation(self, name: str) -> Activation:
        value = self.values.get(name, "gelu")
        if not isinstance(value, str) or value not in _ACTIVATIONS:
            raise IllegalInput(f"{name} {value!r} is not supported; supported are {', '.join(_ACTIVATIONS)}")
        return _ACTIVATIONS[value]


@dataclass(frozen=True)
class Design:
    """What a configuration describes; the first `skipped` rows of the position table are never read."""

    embedding: TokenEmbedding | PatchEmbedding
    layers: tuple[Block, ...]
    settings: Settings
    skipped: int = 0

    @property
    def stack(self) -> Stack:
        """Return the encoder; with norms before the parts, there is one more at the end."""
        return Stack(self.embedding, self.layers, final_norm=any(layer.norm == "pre" for layer in self.layers))


@dataclass(frozen=True)
class ModelType:
    design: Callable[[ForeignConfig], Design]
    names: Names


def _blocks(number: int, heads: int, hidden: int, block: Block) -> tuple[Block, ...]:
    if number > _MOST_LAYERS:
        raise IllegalInput(f"the configuration asks for {number} layers; at most {_MOST_LAYERS} are read")
    if not heads or block.width % heads:
        raise IllegalInput(f"a width of {block.width} cannot be divided among {heads} heads")
    return (replace(block, mixer=Attention(heads, block.width // heads), feed_forward=(hidden,)),) * number


def _layers(options: ForeignConfig, norm: Literal["pre", "post"] = "post") -> tuple[Block, ...]:
    block = Block(options.whole("hidden_size"), Identity(), activation=options.activation("hidden_act"), norm=norm)
    heads, hidden = options.whole("num_attention_heads"), options.whole("intermediate_size")
    return _blocks(options.whole("num_hidden_layers"), heads, hidden, block)


def _settings(
    options: ForeignConfig, pooler_activation: Literal["tanh", "gelu"] = "tanh", dropout: float = 0.1
) -> Settings:
    return Settings(
        dropout=options.number("hidden_dropout_prob", dropout),
        norm_epsilon=options.number("layer_norm_eps", 1e-12),
        pooler_activation=pooler_activation,
    )


def _text(options: ForeignConfig, skipped: int = 0, factorised: int | None = None) -> TokenEmbedding:
    return TokenEmbedding(
        options.whole("vocab_size"),
        options.whole("hidden_size"),
        factorised=factorised,
        length=options.whole("max_position_embeddings", 512) - skipped,
        types=options.whole("type_vocab_size", 2),
    )


def _roberta(options: ForeignConfig) -> Design:
    skipped = options.whole("pad_token_id", 1) + 1  # positions count from behind the padding token's number
    return Design(_text(options, skipped), _layers(options), _settings(options), skipped)


def _distilbert(options: ForeignConfig) -> Design:
    width = options.whole("dim", 768)
    length = options.whole("max_position_embeddings", 512)
    sizes = (options.whole("n_layers", 6), options.whole("n_heads", 12), options.whole("hidden_dim", 3072))
    layers = _blocks(*sizes, Block(width, Identity(), activation=options.activation("activation")))
    settings = Settings(dropout=options.number("dropout", 0.1), norm_epsilon=1e-12, pooler_activation="relu")
    return Design(TokenEmbedding(options.whole("vocab_size"), width, length=length), layers, settings)


def _electra(options: ForeignConfig) -> Design:
    width, narrow = options.whole("hidden_size"), options.whole("embedding_size", 128)
    embedding = _text(options, factorised=None if narrow == width else narrow)
    return Design(embedding, _layers(options), _settings(options, pooler_activation="gelu"))


def _vit(options: ForeignConfig, class_tokens: int = 1) -> Design:
    embedding = PatchEmbedding(
        _side(options, "image_size", 224),
        _side(options, "patch_size", 16),
        options.whole("hidden_size"),
        channels=options.whole("num_channels", 3),
        class_tokens=class_tokens,
    )
    return Design(embedding, _layers(options, "pre"), _settings(options, dropout=0.0))


def _side(options: ForeignConfig, name: str, default: int) -> int:
    value = options.values.get(name, default)
    if isinstance(value, list) and len(set(map(str, value))) == 1:
        value = value[0]
    return ForeignConfig({name: value}).whole(name)


KINDS = {
    "bert": ModelType(lambda options: Design(_text(options), _layers(options), _settings(options)), tensor_names.BERT),
    "roberta": ModelType(_roberta, tensor_names.ROBERTA),
    "distilbert": ModelType(_distilbert, tensor_names.DISTILBERT),
    "electra": ModelType(_electra, tensor_names.ELECTRA),
    "vit": ModelType(_vit, tensor_names.VIT),
    "deit": ModelType(partial(_vit, class_tokens=2), tensor_names.DEIT),  # a class token and a distillation token
}


def model_type_of(config: Mapping[str, Any]) -> ModelType:
    """Return the model type of a configuration; raise for an unknown one, naming those supported."""
    name = config.get("model_type")
    if isinstance(name, str) and name in KINDS:
        return KINDS[name]
    raise IllegalInput(f"model type {name!r} is not supported; supported are {', '.join(KINDS)}")


class Tensors:
    """The tensors of a checkpoint by name, and which of them have been used.

    `prefix` stands before the names of the model below a head; models without a head are saved without it.
    """

    def __init__(self, tensors: Mapping[str, Tensor], prefix: str, folder: Path) -> None:
        # the first BERTs came from TensorFlow
        modern = [re.sub(r"\.gamma$", ".weight", re.sub(r"\.beta$", ".bias", name)) for name in tensors]
        self._tensors = dict(zip(modern, tensors.values(), strict=True))
        self._prefix = prefix if any(name.startswith(prefix) for name in self._tensors) else ""
        self._folder = folder
        self._used: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def below_head(self, name: str) -> str:
        """Return the full name of a part of the model below the head."""
        return self._prefix + name

    def take(self, name: str, *shape: int) -> Tensor:
        """Return a tensor in single precision; raise if it is missing or does not have the given `shape`."""
        if name not in self._tensors:
            raise IllegalInput(f"the checkpoint in {self._folder} lacks the tensor {name}")
        tensor = self._tensors[name]
        if shape and tensor.shape != shape:
            raise IllegalInput(
                f"the weights in {self._folder} do not fit its configuration: {name} is {tuple(tensor.shape)} "
                f"instead of {shape}"
            )
        self._used.add(name)
        return single(name, tensor)

    def left(self) -> tuple[str, ...]:
        """List the unused tensors, except for position ids, which are not weights."""
        return tuple(sorted(name for name in self._tensors.keys() - self._used if not name.endswith("position_ids")))


def convert_model(names: Names, design: Design, tensors: Tensors, pooler: str | None) -> dict[str, Tensor]:
    """Return the weights of a design under the names of a `Transformer`; `pooler` is the full name of its pooler."""
    weights = {}
    for ours, theirs in names.outside.items():
        if ours not in names.optional or tensors.below_head(theirs) in tensors:
            weights[f"encoder.{ours}"] = _fitted(ours, tensors.take(tensors.below_head(theirs)), design)
    if names.class_tokens:
        shape = (1, 1, design.embedding.width)
        rows = [tensors.take(tensors.below_head(name), *shape).flatten(0, 1) for name in names.class_tokens]
        weights["encoder.embedding.class_token"] = torch.cat(rows)  # (class tokens, width)
    for index, block in enumerate(design.layers):
        layer = tensors.below_head(names.layer.format(index))
        for name, tensor in _convert_layer(names.in_layer, block, layer, tensors).items():
            weights[f"encoder.layers.{index}.{name}"] = tensor
    if pooler is not None:
        weights |= {f"pooler.{part}": tensors.take(f"{pooler}.{part}") for part in PARTS}
    return weights


def _fitted(name: str, tensor: Tensor, design: Design) -> Tensor:
    """Drop leading axes of size 1, position rows that are never read, and the axes of a patch."""
    if name == "embedding.positions.table" and tensor.dim() > 1:
        return tensor.flatten(0, -2)[design.skipped :]
    return tensor.flatten(1) if name == "embedding.pixels.weight" and tensor.dim() > 1 else tensor


def _convert_layer(in_layer: Mapping[str, str], block: Block, layer: str, tensors: Tensors) -> dict[str, Tensor]:
    assert isinstance(block.mixer, Attention)
    weights = {
        f"{ours}.{part}": tensors.take(f"{layer}{theirs}.{part}")
        for ours, theirs in in_layer.items()
        for part in PARTS
        if ours not in QUERY_KEY_VALUE
    }
    query_key_value = [f"{layer}{in_layer[part]}" for part in QUERY_KEY_VALUE]
    inner = block.mixer.heads * block.mixer.head_width
    rows = [tensors.take(f"{name}.weight", inner, block.width) for name in query_key_value]
    # some vision models have no bias here alone, which is a bias of zero
    biases = [
        tensors.take(f"{name}.bias", inner) if f"{name}.bias" in tensors else torch.zeros(inner)
        for name in query_key_value
    ]
    weights["mixer.query_key_value.weight"] = packed(rows, block.mixer.heads)
    weights["mixer.query_key_value.bias"] = packed(biases, block.mixer.heads)
    return weights


def convert_head(names: HeadNames, tensors: Tensors) -> dict[str, Tensor]:
    """Return the weights of a task head; raise if the output table is not the token table."""
    weights = {}
    for ours, theirs in names.tensors.items():
        if theirs.endswith(".bias"):
            weights[ours] = tensors.take(theirs)
        else:
            weights |= {f"{ours}.{part}": tensors.take(f"{theirs}.{part}") for part in PARTS}
    if names.tied is not None and names.tied in tensors:
        table = tensors.take(tensors.below_head("embeddings.word_embeddings.weight"))
        if not torch.equal(tensors.take(names.tied), table):
            raise IllegalInput(
                f"{names.tied} is not the token table; our heads share the two. Import it with head=False"
            )
    return weights


def from_hf(path_or_name: str | Path, head: bool = True) -> Imported:
    """Import a BERT, RoBERTa, DistilBERT, ELECTRA, ViT or DeiT from a folder or, by name, from the Hugging Face hub.

    With `head`, the task head of the checkpoint is imported if we have the same one; pure pretraining heads are left
    out. Folders written by this package are read too. Only safetensors are read, and no code of the checkpoint is run.
    """
    folder = find_folder(path_or_name)
    verify_checksums(folder)
    config = read_json(folder / CONFIG)
    if config.get("model_type") == MODEL_TYPE:
        return read_own(folder, head)
    kind = model_type_of(config)
    design = kind.design(ForeignConfig(config))
    names = _head_names(kind.names, config, design) if head else None
    tensors = Tensors(read_weights(folder), kind.names.prefix, folder)
    found = _imported(kind.names, design, names, tensors, label_names(config), folder)
    if found.head is not None and config.get("problem_type") == MULTI_LABEL:
        return replace(found, head=replace(found.head, multi_label=True))
    return found


def _imported(
    names: Names, design: Design, head: HeadNames | None, tensors: Tensors, labels: tuple[str, ...], folder: Path
) -> Imported:
    pooler = head.pooler if head is not None else None  # the dense layer over the first token, under its full name
    if head is None and names.pooler is not None and f"{tensors.below_head(names.pooler)}.weight" in tensors:
        pooler = tensors.below_head(names.pooler)
    weights = convert_model(names, design, tensors, pooler)
    layers = tensors.below_head(names.layer.partition("{}")[0])
    unread = next((name for name in tensors.left() if name.startswith(layers)), None)
    if unread is not None:
        raise IllegalInput(f"the configuration in {folder} has no place for {unread}; without it the model is another")
    spec = None
    if head is not None:
        answers = convert_head(head, tensors)
        weights = {f"transformer.{name}": tensor for name, tensor in weights.items()} | answers
        count = answers["head.output.weight"].shape[0] if "head.output.weight" in answers else 2
        spec = HeadSpec(head.task, count)
    return Imported(
        card=Card(encoder=design.stack, pooler=pooler is not None),
        settings=design.settings,
        weights=weights,
        head=spec,
        labels=labels if spec is not None and len(labels) == spec.labels else (),
        tokenizer_files=tokenizer_files(folder),
        dropped=tensors.left(),
    ).checked(folder)


def _head_names(names: Names, config: Mapping[str, Any], design: Design) -> HeadNames | None:
    architectures = config.get("architectures")
    name = str(architectures[0]) if isinstance(architectures, list) and architectures else "Model"
    if name.endswith(("Model", *names.unused)) and not name.endswith("HeadModel"):
        return None
    found = next((head for ending, head in names.heads.items() if name.endswith(ending)), None)
    if found is None:
        known = ", ".join(names.heads)
        reason = next((f": {why}" for ending, why in names.refused.items() if name.endswith(ending)), "")
        raise IllegalInput(
            f"the head of {name} is not supported{reason}; supported are {known}. Import it with head=False"
        )
    if found.follows_activation and any(layer.activation != "gelu" for layer in design.layers):
        raise IllegalInput(f"the head of {name} has another activation than gelu. Import it with head=False")
    return found
