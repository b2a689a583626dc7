"""From the configuration of a known model type to a design; raise for what cannot be expressed exactly."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from formwright.arch.layers import Activation, Block, PatchEmbedding, Stack, TokenEmbedding
from formwright.arch.ops import Attention, Identity
from formwright.core.errors import IllegalInput
from formwright.nn.hf.tensor_names import BERT, DEIT, DISTILBERT, ELECTRA, ROBERTA, VIT, Names
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

    def whole(self, name: str, default: int | None = None) -> int:
        """Read a whole number from 0, small enough that the size of a tensor can be counted."""
        value = self.values.get(name, default)
        if type(value) is not int or not 0 <= value <= _LARGEST:
            raise IllegalInput(f"the configuration's {name} is {value!r}; it must be a whole number up to {_LARGEST:,}")
        return value

    def number(self, name: str, default: float) -> float:
        """Read a number."""
        value = self.values.get(name, default)
        try:
            if not isinstance(value, bool) and isinstance(value, int | float):
                return float(value)
        except OverflowError:
            pass
        raise IllegalInput(f"the configuration's {name} is {value!r}; it must be a number")

    def activation(self, name: str) -> Activation:
        """Read the name of an activation that our layers have."""
        value = self.values.get(name, "gelu")
        if not isinstance(value, str) or value not in _ACTIVATIONS:
            raise IllegalInput(f"{name} {value!r} is not supported; supported are {', '.join(_ACTIVATIONS)}")
        return _ACTIVATIONS[value]

    def check_supported(self) -> None:
        """Raise for options that change the model and that no design can express."""
        for name, allowed in _REQUIRED.items():
            if self.values.get(name) not in allowed:
                raise IllegalInput(f"{name} {self.values[name]!r} is not supported; supported is {allowed[0]!r}")


@dataclass(frozen=True)
class Design:
    """What a configuration describes; the first `skipped` rows of the position table are never read."""

    embedding: TokenEmbedding | PatchEmbedding
    layers: tuple[Block, ...]
    settings: Settings
    skipped: int = 0

    @property
    def stack(self) -> Stack:
        """Return the encoder; where norms stand before the parts, one more stands at the end."""
        return Stack(self.embedding, self.layers, final_norm=any(layer.norm == "pre" for layer in self.layers))


@dataclass(frozen=True)
class ModelType:
    """A model type: how to read its configuration, and what its tensors are called."""

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


def _bert(options: ForeignConfig) -> Design:
    return Design(_text(options), _layers(options), _settings(options))


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


def _deit(options: ForeignConfig) -> Design:
    return _vit(options, class_tokens=2)  # a class token and a distillation token


def _side(options: ForeignConfig, name: str, default: int) -> int:
    value = options.values.get(name, default)
    if isinstance(value, list) and len(set(map(str, value))) == 1:
        value = value[0]
    return ForeignConfig({name: value}).whole(name)


KINDS = {
    "bert": ModelType(_bert, BERT),
    "roberta": ModelType(_roberta, ROBERTA),
    "distilbert": ModelType(_distilbert, DISTILBERT),
    "electra": ModelType(_electra, ELECTRA),
    "vit": ModelType(_vit, VIT),
    "deit": ModelType(_deit, DEIT),
}


def model_type_of(config: Mapping[str, Any]) -> ModelType:
    """Return the model type of a configuration; raise for an unknown one, naming those supported."""
    name = config.get("model_type")
    if isinstance(name, str) and name in KINDS:
        return KINDS[name]
    raise IllegalInput(f"model type {name!r} is not supported; supported are {', '.join(KINDS)}")
