"""The whole transformer of a card: stacks, pooler, and what comes out of them."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding
from formwright.arch.layers import Stack
from formwright.core.errors import IllegalInput
from formwright.nn.embedding import embedding_module
from formwright.nn.layer_modules import ACTIVATIONS, layer_module
from formwright.nn.settings import Settings
from formwright.nn.stack_context import Cache, StackContext


@dataclass(frozen=True)
class Output:
    """What a transformer gives: its last vectors (batch, tokens, width), those of every layer, and the pooled one."""

    hidden: Tensor
    layers: tuple[Tensor, ...]
    memory: tuple[Tensor, ...] = ()
    pooled: Tensor | None = None


class StackModule(nn.Module):
    """An embedding and its layers, with the projections between them."""

    def __init__(self, stack: Stack, memory: int, settings: Settings) -> None:
        super().__init__()
        self.causal = stack.causal
        self.grid = None
        if isinstance(stack.embedding, PatchEmbedding):
            self.grid = (stack.embedding.image // stack.embedding.patch, stack.embedding.class_tokens)
        self.embedding = embedding_module(stack.embedding, settings)
        self.layers = nn.ModuleList(layer_module(layer, memory, settings) for layer in stack.layers)
        self.projections = nn.ModuleDict(
            {str(index): nn.Linear(below, above) for index, below, above in stack.projections}
        )
        self.final_norm = nn.LayerNorm(stack.output_width, settings.norm_epsilon) if stack.final_norm else None

    def forward(self, inputs: Tensor, context: StackContext, types: Tensor | None = None) -> tuple[Tensor, ...]:
        """Return the output of every layer, the last one as it leaves the stack: projected and normalised."""
        x = self.embedding(inputs, context, types)
        outputs = []
        for index, layer in enumerate(self.layers):
            x = layer(self._projected(x, index), context)
            outputs.append(x)
        x = self._projected(x, len(self.layers))
        outputs[-1] = x if self.final_norm is None else self.final_norm(x)
        return tuple(outputs)

    def _projected(self, x: Tensor, index: int) -> Tensor:
        """Apply the projection before a layer, or behind the last one, if there is one."""
        return self.projections[str(index)](x) if str(index) in self.projections else x


class Transformer(nn.Module):
    """The model of a card, without a task head."""

    spec: None = None  # of the head

    def __init__(self, card: Card, settings: Settings | None = None) -> None:
        super().__init__()
        settings = settings or Settings()
        self.card, self.settings = card, settings
        memory = card.encoder.output_width if card.encoder is not None else 0
        self.encoder = StackModule(card.encoder, memory, settings) if card.encoder is not None else None
        self.decoder = StackModule(card.decoder, memory, settings) if card.decoder is not None else None
        if card.share_embedding:
            self.decoder.embedding.tokens = self.encoder.embedding.tokens
        self.pooler = nn.Linear(card.output_width, card.output_width) if card.pooler else None
        self.classes = nn.Linear(card.output_width, card.classes) if card.classes else None

    def forward(
        self,
        inputs: Tensor,
        mask: Tensor | None = None,
        types: Tensor | None = None,
        targets: Tensor | None = None,
        targets_mask: Tensor | None = None,
    ) -> Output:
        """Run the model.

        `inputs` are token ids, pixels or frames; `mask` is (batch, tokens), nonzero for real tokens. An
        encoder-decoder reads `inputs` with its encoder and `targets` with its decoder; a decoder alone reads `inputs`.
        """
        if self.encoder is None:
            layers = self.decode(inputs, mask, types=types)
            return Output(layers[-1], layers)
        memory = self.encode(inputs, mask, types)
        if self.decoder is None:
            pooled = None
            if self.pooler is not None:
                first = self.pooler(first_tokens(memory[-1], _real(mask)))
                pooled = ACTIVATIONS[self.settings.pooler_activation](first)
            return Output(memory[-1], memory, pooled=pooled)
        if targets is None:
            raise IllegalInput("an encoder-decoder reads `targets` as well as `inputs`; none were given")
        layers = self.decode(targets, targets_mask, memory, mask)
        return Output(layers[-1], layers, memory)

    @property
    def last_stack(self) -> Any:
        """Return the stack whose vectors a head reads."""
        return self.encoder if self.decoder is None else self.decoder

    def encode(self, inputs: Tensor, mask: Tensor | None = None, types: Tensor | None = None) -> tuple[Tensor, ...]:
        """Run the encoder alone, and return the output of every layer."""
        assert self.encoder is not None
        context = StackContext(_real(mask), causal=self.encoder.causal, grid=self.encoder.grid)
        return self.encoder(inputs, context, types)

    def decode(
        self,
        targets: Tensor,
        mask: Tensor | None = None,
        memory: tuple[Tensor, ...] = (),
        memory_mask: Tensor | None = None,
        *,
        types: Tensor | None = None,
        cache: Cache | None = None,
    ) -> tuple[Tensor, ...]:
        """Run the decoder alone, on what `encode` gave where there is an encoder; return the output of every layer.

        With a cache, which is changed, `targets` are the tokens behind those that it holds, and `mask` is of them all;
        the first that it reads hold a real one in every row.
        """
        assert self.decoder is not None
        context = StackContext(
            _real(mask), causal=True, memory=memory, memory_mask=_real(memory_mask), grid=self.decoder.grid, cache=cache
        )
        layers = self.decoder(targets, context, types)
        if cache is not None:
            cache.length += targets.shape[1]
        return layers


def _real(mask: Tensor | None) -> Tensor | None:
    """Return which tokens are real; a sentence without any counts as all real, so that nothing becomes NaN."""
    if mask is None:
        return None
    return mask.bool() | ~mask.bool().any(1, keepdim=True)


def first_tokens(hidden: Tensor, mask: Tensor | None) -> Tensor:
    """Pick the first real token of each sentence, which left padding moves: (batch, width)."""
    if mask is None:
        return hidden[:, 0]
    return hidden[torch.arange(hidden.shape[0], device=hidden.device), mask.int().argmax(1)]
