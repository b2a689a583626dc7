"""Text generation: greedy decoding and beam search."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from formwright.core.errors import IllegalInput
from formwright.nn.stack_context import Cache
from formwright.nn.task_model import TaskModel


@dataclass(frozen=True)
class GenerationSettings:
    """Settings of text generation: begin, end and padding tokens, maximum length, and number of beams.

    Texts are compared by the logarithm of their probability, divided by ((5 + tokens) / 6) ** `penalty`.
    """

    begin: int
    end: int
    pad: int = 0
    length: int = 64
    beams: int = 1
    penalty: float = 0.6

    def __post_init__(self) -> None:
        if self.length < 1 or self.beams < 1:
            raise IllegalInput(f"a text needs at least 1 token and 1 beam, not {self.length} and {self.beams}")
        if not 0 <= self.penalty < math.inf:
            raise IllegalInput(f"the penalty of length is a number, at least 0, not {self.penalty}")


class TokenReader:
    """Read tokens step by step, and score the next token; a cache makes it faster with the same result."""

    def __init__(
        self, model: TaskModel, inputs: Tensor | None = None, mask: Tensor | None = None, *, cached: bool = True
    ) -> None:
        """Start a translation of `inputs`; without them, a text whose first tokens have the `mask`."""
        self._model = model
        self._memory: tuple[Tensor, ...] = () if inputs is None else model.transformer.encode(inputs, mask)
        self._memory_mask: Tensor | None = None if inputs is None else mask
        self._mask: Tensor | None = mask if inputs is None else None
        self._cache = Cache() if cached else None
        self._tokens: Tensor | None = None

    def read(self, new: Tensor) -> Tensor:
        """Read the next tokens (rows, tokens), and score what follows the last of them: (rows, vocabulary)."""
        if self._tokens is not None and self._mask is not None:
            self._mask = torch.cat((self._mask, torch.ones_like(new, dtype=self._mask.dtype)), 1)
        self._tokens = new if self._tokens is None else torch.cat((self._tokens, new), 1)
        layers = self._model.transformer.decode(
            self._tokens if self._cache is None else new, self._mask, self._memory, self._memory_mask, cache=self._cache
        )
        return self._model.head(layers[-1][:, -1], self._model.token_table).float()

    def choose(self, rows: Tensor) -> None:
        """Select some of the texts in the given order; one may be selected more than once."""
        assert self._tokens is not None
        self._tokens = self._tokens[rows]
        self._memory = tuple(layer[rows] for layer in self._memory)
        self._mask = None if self._mask is None else self._mask[rows]
        self._memory_mask = None if self._memory_mask is None else self._memory_mask[rows]
        if self._cache is not None:
            self._cache.choose(rows)


@torch.inference_mode()
def generate(
    model: TaskModel, inputs: Tensor, mask: Tensor | None, writing: GenerationSettings, *, cached: bool = True
) -> list[list[int]]:
    """Translate sentences (batch, tokens), or continue texts if the model is a decoder alone.

    `mask` is nonzero for real tokens; prompts are padded on the left. Returned tokens exclude begin and end tokens and
    the prompt.
    """
    if not model.spec.writes:
        raise IllegalInput(f"a model for {model.spec.task} writes no text; seq2seq-lm and causal-lm do")
    model.eval()
    if model.transformer.encoder is not None:
        reader, first = TokenReader(model, inputs, mask, cached=cached), torch.full_like(inputs[:, :1], writing.begin)
    else:
        if mask is not None and not mask[:, -1].all():
            raise IllegalInput("prompts must be padded on the left, not on the right")
        reader, first = TokenReader(model, mask=mask, cached=cached), inputs
    found = _greedy(reader, first, writing) if writing.beams == 1 else beam_search(reader, first, writing)
    return [row[: row.index(writing.end)] if writing.end in row else row for row in found.tolist()]


def _greedy(reader: TokenReader, first: Tensor, writing: GenerationSettings) -> Tensor:
    scores, ended, found = reader.read(first), torch.zeros_like(first[:, 0], dtype=torch.bool), []
    for left in reversed(range(writing.length)):
        best = scores.argmax(-1).masked_fill(ended, writing.pad)
        found.append(best)
        ended = ended | (best == writing.end)
        if not left or ended.all():
            break
        scores = reader.read(best[:, None])
    return torch.stack(found, 1)


def beam_search(reader: TokenReader, first: Tensor, writing: GenerationSettings) -> Tensor:
    """Return the best of `beams` texts for each row of first tokens: (batch, tokens), filled up behind its end.

    A finished text keeps its beam until better ones replace it, so one beam is greedy decoding, and as many beams as
    there are texts find the best of all.
    """
    batch, beams = len(first), writing.beams
    follows = reader.read(first).log_softmax(-1)
    reader.choose(torch.arange(batch, device=first.device).repeat_interleave(beams))
    race = _Race.started(batch, writing, first.device)
    follows = follows.repeat_interleave(beams, 0)
    for left in reversed(range(writing.length)):
        rows = race.step(follows.unflatten(0, (batch, beams)))
        if not left or race.ended.all():
            break
        reader.choose(rows)
        follows = reader.read(race.texts[:, :, -1:].flatten(0, 1)).log_softmax(-1)
    return race.texts[:, 0]


@dataclass
class _Race:
    """Texts that grow side by side, best first: tokens (batch, beams, tokens), log-probabilities, lengths, ends."""

    writing: GenerationSettings
    texts: Tensor
    totals: Tensor  # (batch, beams)
    lengths: Tensor
    ended: Tensor

    @classmethod
    def started(cls, batch: int, writing: GenerationSettings, device: torch.device) -> "_Race":
        shape = (batch, writing.beams)
        totals = torch.full(shape, -math.inf, device=device)
        totals[:, 0] = 0.0  # all others are the same empty text
        lengths = torch.zeros(shape, dtype=torch.long, device=device)
        return cls(writing, lengths[:, :, None][:, :, :0], totals, lengths, lengths.bool())

    def step(self, follows: Tensor) -> Tensor:
        """Let every text grow by its best tokens, given their log-probabilities (batch, beams, vocabulary).

        Return which rows (batch x beams) the texts that are left come from.
        """
        batch, beams, vocabulary = follows.shape
        stays = torch.full((vocabulary,), -math.inf, device=follows.device)
        stays[self.writing.pad] = 0.0
        follows = torch.where(self.ended[:, :, None], stays, follows)
        totals = self.totals[:, :, None] + follows
        lengths = self.lengths + ~self.ended
        shares = totals / ((5 + lengths[:, :, None]) / 6) ** self.writing.penalty
        best = shares.flatten(1).topk(beams).indices
        parent, token = best // vocabulary, best % vocabulary
        self.totals = totals.flatten(1).gather(1, best)
        self.lengths, ended = lengths.gather(1, parent), self.ended.gather(1, parent)
        before = self.texts.gather(1, parent[:, :, None].expand(-1, -1, self.texts.shape[-1]))
        self.texts = torch.cat((before, token[:, :, None]), -1)
        self.ended = ended | (token == self.writing.end)
        return (parent + beams * torch.arange(batch, device=parent.device)[:, None]).flatten()
