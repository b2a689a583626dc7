"""A transformer with a task head, in plain torch: what is trained, evaluated and exported."""

from typing import Any

from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.nn.heads import HeadSpec, MaskedHead, NextTokenHead, head_module
from formwright.nn.settings import Settings
from formwright.nn.transformer import Output, Transformer


class TaskModel(nn.Module):
    """The model of a card with the head of a task."""

    def __init__(self, card: Card, spec: HeadSpec, settings: Settings | None = None) -> None:
        super().__init__()
        settings = settings or Settings()
        self.spec = spec
        self.transformer = Transformer(card, settings)
        self.head = head_module(card, spec, settings)

    def forward(
        self,
        inputs: Tensor,
        mask: Tensor | None = None,
        types: Tensor | None = None,
        targets: Tensor | None = None,
        targets_mask: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Return the scores of the head.

        `positions` is a mask (batch, tokens) of the tokens whose vocabulary scores are wanted; language models then
        return (wanted tokens, vocabulary), without computing the others.
        """
        output = self.transformer(inputs, mask, types, targets, targets_mask)
        return self.answer(output, mask, positions)

    def answer(self, output: Output, mask: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        """Apply the head to what the transformer gave."""
        if not isinstance(self.head, MaskedHead | NextTokenHead):
            return self.head(output, mask)
        hidden = output.hidden if positions is None else output.hidden[positions.bool()]
        return self.head(hidden, self.token_table)

    @property
    def token_table(self) -> Tensor:
        """Give the token table that language-model heads share: (vocabulary, table width)."""
        stack: Any = self.transformer.decoder if self.transformer.decoder is not None else self.transformer.encoder
        return stack.embedding.tokens.weight
