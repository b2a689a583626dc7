"""A model's file for another runtime, called as a model of torch is."""

import torch
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.arch.layers import PatchEmbedding, TokenEmbedding
from formwright.nn.deploy.runtimes import Arrays, Run


class FileModel(nn.Module):
    """Run a file where a `TaskModel` is expected: one that answers a row of text, or a picture, with scores."""

    def __init__(self, run: Run, card: Card) -> None:
        super().__init__()
        self._run, self._embedding = run, card.stacks[0].embedding
        # whoever runs a model asks its parameters on which device they are
        self.place = nn.Parameter(torch.zeros(0), requires_grad=False)

    def forward(self, inputs: Tensor, mask: Tensor | None = None, types: Tensor | None = None, *_: object) -> Tensor:
        """Return the scores: (batch, labels), or (batch, tokens, 2) for spans."""
        found = [torch.from_numpy(part.copy()) for part in self._run(self._named(inputs, mask, types))]
        return found[0] if len(found) == 1 else torch.stack(found, -1)

    def _named(self, inputs: Tensor, mask: Tensor | None, types: Tensor | None) -> Arrays:
        if isinstance(self._embedding, PatchEmbedding):
            return {"pixel_values": inputs.numpy()}
        real = torch.ones_like(inputs) if mask is None else mask.long()
        named = {"input_ids": inputs.numpy(), "attention_mask": real.numpy()}
        if isinstance(self._embedding, TokenEmbedding) and self._embedding.types:
            named["token_type_ids"] = (torch.zeros_like(inputs) if types is None else types).numpy()
        return named
