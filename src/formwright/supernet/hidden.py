"""The hidden size of an encoder: the numbers that run from the embedding through all layers to the head.

Whatever writes or reads these numbers has them as an axis. Which axis of which tensor that is, is said here for every
tensor of a model. A tensor of which nothing is said is refused: were it to follow and did not, the model would be
another function.
"""

from formwright.arch.card import Card
from formwright.arch.layers import Block, Embedding, FrameEmbedding, PatchEmbedding, Stack, TokenEmbedding
from formwright.arch.ops import Attention, Identity
from formwright.core.errors import IllegalInput
from formwright.nn.build import skeleton
from formwright.nn.heads import HeadSpec
from formwright.supernet.parts import Group, Piece

Axes = dict[str, tuple[int, ...]]  # by the name of a tensor: the axes that are as long as the hidden size


def hidden_group(card: Card, head: HeadSpec | None) -> Group:
    """Describe the hidden size as a group: matrices and tables are scored, norms and biases only follow.

    `head` is the head that the model carries; without one, tensors have the names of a bare transformer.
    """
    stack = _checked(card)
    axes, width = _axes(card, stack, head), stack.output_width
    weights: list[Piece] = []
    biases: list[Piece] = []
    for name, tensor in skeleton(card, head=head).named_parameters():
        if name not in axes:
            raise IllegalInput(f"the hidden size cannot change: nothing says whether the tensor {name} follows it")
        for axis in axes[name]:
            assert tensor.shape[axis] == width, f"axis {axis} of {name} is not the hidden size"
            (weights if tensor.dim() > 1 else biases).append(Piece(name, axis, 1))
    return Group(-1, "hidden", width, tuple(weights), tuple(biases))


def pooled_group(card: Card, head: HeadSpec | None) -> Group | None:
    """Describe the outputs of the pooler, which are as many as the hidden size but stand in an order of their own.

    None where no head reads them.
    """
    if not card.pooler or head is None or head.task != "sequence-classification":
        return None
    pooler = "transformer.pooler"
    weights = (Piece(f"{pooler}.weight", 0, 1), Piece("head.output.weight", 1, 1))
    return Group(-1, "pooled", card.output_width, weights, (Piece(f"{pooler}.bias", 0, 1),))


def stream_groups(card: Card, head: HeadSpec | None) -> list[Group]:
    """List what a smaller hidden size leaves out: the numbers between layers, and as many outputs of the pooler."""
    pooled = pooled_group(card, head)
    return [hidden_group(card, head), *([] if pooled is None else [pooled])]


def _checked(card: Card) -> Stack:
    stack = card.encoder
    if stack is None or card.decoder is not None:
        raise IllegalInput(f"the hidden size is scored in encoders; this is a {card.family} design")
    if any(layer.width != stack.embedding.width for layer in stack.layers):
        raise IllegalInput("the hidden size is scored where all layers are as wide as the embedding")
    for index, layer in enumerate(stack.layers):
        # a transform over features, for one, has no weights that could follow
        if not isinstance(layer, Block) or not isinstance(layer.mixer, Attention | Identity):
            raise IllegalInput(f"layer {index} is no layer of self-attention; the hidden size is scored where all are")
    if stack.embedding.positions == "sinusoidal" and not _narrow(stack.embedding):
        raise IllegalInput("sinusoidal positions stand in a fixed order, so the hidden size cannot be put into another")
    return stack


def _narrow(embedding: Embedding) -> bool:
    """Tell whether the tables are narrow, so that a map stands between them and the layers."""
    return isinstance(embedding, TokenEmbedding) and embedding.factorised is not None


def _axes(card: Card, stack: Stack, head: HeadSpec | None) -> Axes:
    body = _under("encoder.embedding", _embedding(stack.embedding)) | _writes("encoder.final_norm")
    for index, layer in enumerate(stack.layers):
        assert isinstance(layer, Block)
        body |= _under(f"encoder.layers.{index}", _layer(layer))
    body |= _reads("pooler") | _reads("classes")
    return body if head is None else _under("transformer", body) | _under("head", _head(card, stack, head))


def _embedding(embedding: Embedding) -> Axes:
    match embedding:
        case TokenEmbedding():
            own: tuple[int, ...] = () if _narrow(embedding) else (1,)
            tables = {"tokens.weight": own, "positions.table": own, "types.weight": own}
            return tables | (_apart("norm") if _narrow(embedding) else _writes("norm")) | _writes("widen")
        case PatchEmbedding():
            return _writes("pixels") | {"class_token": (1,), "positions.table": (1,)}
        case FrameEmbedding():
            return _apart("norm") | _writes("features") | {"positions.table": (1,)}


def _layer(block: Block) -> Axes:
    attention = _reads("mixer.query_key_value") | _writes("mixer.output") | _writes("mixer_norm")
    in_heads: Axes = {f"mixer.{name}": () for name in ("bilinear", "relative.keys", "relative.values")}
    first, *between, last = (f"feed_forward.maps.{index}" for index in range(max(2, len(block.feed_forward) + 1)))
    inner: Axes = {name: axes for one in between for name, axes in _apart(one).items()}
    return attention | in_heads | _reads(first) | inner | _writes(last) | _writes("feed_forward_norm")


def _head(card: Card, stack: Stack, head: HeadSpec) -> Axes:
    if head.task == "masked-lm":
        if _narrow(stack.embedding):
            return _reads("dense") | _apart("norm") | {"bias": ()}
        # what leaves the dense layer meets the token table, whose columns follow
        return {"dense.weight": (0, 1), "dense.bias": (0,), "bias": ()} | _writes("norm")
    pooled = card.pooler and head.task == "sequence-classification"
    return _apart("output") if pooled else _reads("output")


def _reads(name: str) -> Axes:
    """Describe a linear map whose inputs follow."""
    return {f"{name}.weight": (1,), f"{name}.bias": ()}


def _writes(name: str) -> Axes:
    """Describe a linear map whose outputs follow, or a norm that does."""
    return {f"{name}.weight": (0,), f"{name}.bias": (0,)}


def _apart(name: str) -> Axes:
    """Describe a linear map or a norm that does not follow."""
    return {f"{name}.weight": (), f"{name}.bias": ()}


def _under(prefix: str, axes: Axes) -> Axes:
    return {f"{prefix}.{name}": places for name, places in axes.items()}
