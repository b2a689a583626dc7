"""What a model reads and gives outside torch: inputs and outputs by the names that Hugging Face uses."""

import torch
from torch import Generator, Tensor, nn

from formwright.arch.card import Card
from formwright.arch.layers import Stack
from formwright.core.errors import IllegalInput
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer

Inputs = dict[str, Tensor]
BATCH, LENGTH, TARGET_LENGTH = "batch", "length", "target_length"


class NamedInputsModel(nn.Module):
    """A model with named inputs and outputs."""

    def __init__(self, model: TaskModel | Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        input_features: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        """Return the outputs in the order of `output_names`."""
        inputs = next(given for given in (input_ids, pixel_values, input_features) if given is not None)
        result = self.model(inputs, attention_mask, token_type_ids, decoder_input_ids, decoder_attention_mask)
        if isinstance(result, Tensor):
            return (result,) if len(output_names(self.model)) == 1 else result.unbind(-1)
        return (result.hidden,) if result.pooled is None else (result.hidden, result.pooled)


def output_names(model: TaskModel | Transformer) -> tuple[str, ...]:
    if model.spec is not None:
        return model.spec.output_names
    return ("last_hidden_state", "pooler_output") if model.card.pooler else ("last_hidden_state",)


def axes(name: str) -> dict[int, str]:
    if name == "pixel_values":
        return {0: BATCH}
    return {0: BATCH, 1: TARGET_LENGTH if name.startswith("decoder_") else LENGTH}


def longest(card: Card, limit: int) -> int:
    """Return the longest sentence that a design can read, `limit` where nothing limits it."""
    tables = [stack.embedding for stack in card.stacks if stack.embedding.positions == "learned"]
    return min([limit, *(table.most_tokens for table in tables if table.most_tokens is not None)])


def random_inputs(card: Card, batch: int, length: int, generator: Generator, padded: bool = False) -> Inputs:
    """Draw what a design reads; when `padded`, sentences have different lengths and every other one is padded left."""
    if batch < 1 or length < 1:
        raise IllegalInput(f"a batch has at least one sentence and one token, not {batch} of {length}")
    if length > longest(card, length):
        raise IllegalInput(f"{length} tokens are too many: the design has positions for {longest(card, length)}")
    inputs = _inputs(card.stacks[0], batch, length, generator, padded)
    if card.encoder is not None and card.decoder is not None:
        targets = _inputs(card.decoder, batch, min(length + 1, longest(card, length + 1)), generator, padded)
        inputs |= {f"decoder_{name}": targets[name] for name in ("input_ids", "attention_mask")}
    return inputs


def _inputs(stack: Stack, batch: int, length: int, generator: Generator, padded: bool) -> Inputs:
    embedding = stack.embedding
    if embedding.most_tokens is None:
        return {embedding.INPUT: torch.randn((batch, *embedding.row_shape(length)), generator=generator)}
    mask = torch.ones(batch, length, dtype=torch.long)
    for row in range(1, batch if padded else 1):
        missing = min(row * length // batch, length - 1)
        mask[row, slice(missing) if row % 2 else slice(length - missing, length)] = 0
    shape = (batch, length, *embedding.row_shape(length)[1:])
    if embedding.symbols:
        values = torch.randint(embedding.symbols, shape, generator=generator)
    else:
        values = torch.randn(shape, generator=generator)
    inputs = {embedding.INPUT: values, "attention_mask": mask}
    if embedding.types:
        inputs["token_type_ids"] = torch.randint(embedding.types, (batch, length), generator=generator)
    return inputs
