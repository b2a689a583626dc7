"""What a configuration says of a design in the words that users of transformers expect.

Everything here follows from the card. Sizes that differ from layer to layer are listed as transformers lists them:
`per_layer_config` maps a layer's number to what differs from the whole.
"""

from typing import Any

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Layer, Stack
from formwright.core.errors import IllegalInput

MODEL_TYPE = "formwright"
BASE_CLASS = "FormwrightModel"
_TEXT = "tokens"
# By what a design reads and the task of its head: the end of the name of its class in `formwright.nn.hf.models`, and
# transformers' pipeline. A class of one kind of input cannot stand for another: their forward passes differ.
_HEADS = {
    (_TEXT, "masked-lm"): ("ForMaskedLM", "fill-mask"),
    (_TEXT, "causal-lm"): ("ForCausalLM", "text-generation"),
    (_TEXT, "seq2seq-lm"): ("ForSeq2SeqLM", "text2text-generation"),
    (_TEXT, "sequence-classification"): ("ForSequenceClassification", "text-classification"),
    (_TEXT, "token-classification"): ("ForTokenClassification", "token-classification"),
    (_TEXT, "span-extraction"): ("ForQuestionAnswering", "question-answering"),
    ("patches", "sequence-classification"): ("ForImageClassification", "image-classification"),
    ("frames", "sequence-classification"): ("ForAudioClassification", "audio-classification"),
}
AUTO_CLASSES = {BASE_CLASS: "AutoModel"} | {f"Formwright{end}": f"AutoModel{end}" for end, _ in _HEADS.values()}


def class_name(card: Card, task: str | None) -> str:
    """Name the model class for a task; without a task, the class that has no head."""
    return BASE_CLASS if task is None else f"Formwright{_head(card, task)[0]}"


def pipeline_name(card: Card, task: str) -> str:
    """Name the pipeline of transformers that runs a model."""
    return _head(card, task)[1]


def _head(card: Card, task: str) -> tuple[str, str]:
    reads = card.stacks[0].embedding.TYPE
    if (reads, task) not in _HEADS:
        known = ", ".join(one for kind, one in _HEADS if kind == reads) or "none"
        raise IllegalInput(
            f"a design that reads {reads} cannot be saved with the head {task!r}: there is no model class for both. "
            f"Heads that can be saved with {reads}: {known}. A new one is a class in formwright.nn.hf.models and a "
            "line in formwright.nn.hf.config_fields"
        )
    return _HEADS[reads, task]


def task_of(class_name: str) -> str | None:
    """Name the task of a model class: the reverse of `class_name`."""
    return next((task for (_, task), (end, _) in _HEADS.items() if class_name == f"Formwright{end}"), None)


def standard_fields(card: Card) -> dict[str, Any]:
    """List the fields that code outside this package may look for; layers are those of the first stack."""
    stack = card.stacks[0]
    sizes = [_sizes(layer) for layer in stack.layers]
    # a size that differs from layer to layer is None for the whole
    shared = {name: size if all(size == other[name] for other in sizes) else None for name, size in sizes[0].items()}
    fields = {
        **shared,
        "hidden_size": card.output_width,
        "num_hidden_layers": len(stack.layers),
        "is_encoder_decoder": card.family == "encoder-decoder",
        "tie_word_embeddings": True,
        **_embedding_fields(stack),
    }
    if card.family == "encoder-decoder":
        fields |= {"encoder_layers": len(card.stacks[0].layers), "decoder_layers": len(card.stacks[1].layers)}
    digits = len(str(len(sizes) - 1))  # transformers pads the keys so that they sort
    differing = {
        str(index).zfill(digits): {name: size for name, size in own.items() if size != fields[name]}
        for index, own in enumerate(sizes)
        if any(size != fields[name] for name, size in own.items())
    }
    return fields | ({"per_layer_config": differing} if differing else {})


def _embedding_fields(stack: Stack) -> dict[str, Any]:
    embedding = stack.embedding
    if isinstance(embedding, PatchEmbedding):
        return {"image_size": embedding.image, "patch_size": embedding.patch, "num_channels": embedding.channels}
    if not isinstance(embedding, TokenEmbedding):
        return {"num_features": embedding.features, "max_position_embeddings": embedding.length}
    return {
        "vocab_size": embedding.vocabulary,
        "embedding_size": embedding.table_width,
        "max_position_embeddings": embedding.length,
        "type_vocab_size": embedding.types,
    }


def _sizes(layer: Layer) -> dict[str, Any]:
    """Return a layer's sizes; what it does not have is None, and a stack of feed-forward widths is a list."""
    sizes: dict[str, Any] = {"hidden_size": layer.width}
    sizes |= dict.fromkeys(("num_attention_heads", "head_dim", "intermediate_size"))
    if isinstance(layer, Block):
        if hasattr(layer.mixer, "head_width"):
            sizes |= {"num_attention_heads": layer.mixer.head_count, "head_dim": layer.mixer.head_width}
        if layer.feed_forward:
            single = len(layer.feed_forward) == 1
            sizes["intermediate_size"] = layer.feed_forward[0] if single else list(layer.feed_forward)
    return sizes
