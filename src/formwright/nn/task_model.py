"""A transformer with a task head, in plain torch: what is trained, evaluated and exported."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec, check_head, find_head, token_table
from formwright.core.errors import IllegalInput
from formwright.core.registry import Late
from formwright.nn.layer_modules import ACTIVATIONS
from formwright.nn.settings import Settings
from formwright.nn.transformer import Output, Transformer, first_tokens


class SequenceHead(nn.Module):
    """Classify or score a whole sentence, a pair of them, an image or a recording, from its pooled vector."""

    def __init__(self, card: Card, spec: HeadSpec, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.pooling = "mean" if card.stacks[0].embedding.POOLS_ALL else settings.pooling
        self.output = nn.Linear(card.output_width, spec.labels)

    def forward(self, output: Output, mask: Tensor | None) -> Tensor:
        """Return (batch, labels)."""
        hidden, pooled = output.hidden, output.pooled
        if pooled is None:
            if self.pooling == "first":
                pooled = first_tokens(hidden, mask)
            elif mask is None:
                pooled = hidden.mean(1)
            else:
                weights = mask[:, :, None].to(hidden.dtype)
                pooled = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)
        return self.output(F.dropout(pooled, self.settings.dropout, self.training))


class TokenHead(nn.Module):
    """Label every token; with two labels read as scores of start and end it extracts spans."""

    def __init__(self, card: Card, spec: HeadSpec, settings: Settings) -> None:
        super().__init__()
        self.dropout = settings.dropout
        self.output = nn.Linear(card.output_width, spec.outputs)

    def forward(self, output: Output, mask: Tensor | None) -> Tensor:
        """Return (batch, tokens, labels)."""
        return self.output(F.dropout(output.hidden, self.dropout, self.training))


class MaskedHead(nn.Module):
    """Predict tokens with the token table: BERT's dense layer, norm, tied output and a bias for each token."""

    def __init__(self, card: Card, _: HeadSpec, settings: Settings) -> None:
        super().__init__()
        table = token_table(card)
        self.dense = nn.Linear(card.output_width, table.table_width)
        self.norm = nn.LayerNorm(table.table_width, settings.norm_epsilon)
        self.bias = nn.Parameter(torch.empty(table.vocabulary))

    def forward(self, hidden: Tensor, table: Tensor) -> Tensor:
        """Return scores over the vocabulary for vectors (..., width)."""
        return F.linear(self.norm(ACTIVATIONS["gelu"](self.dense(hidden))), table, self.bias)


class NextTokenHead(nn.Module):
    """Predict the next token with the token table, through a linear map where the widths differ."""

    def __init__(self, card: Card, _: HeadSpec, settings: Settings) -> None:
        super().__init__()
        table = token_table(card)
        self.narrow = None
        if card.output_width != table.table_width:
            self.narrow = nn.Linear(card.output_width, table.table_width, bias=False)

    def forward(self, hidden: Tensor, table: Tensor) -> Tensor:
        """Return scores over the vocabulary for vectors (..., width)."""
        return F.linear(hidden if self.narrow is None else self.narrow(hidden), table)


_OWN: dict[str, type[nn.Module]] = {
    "sequence-classification": SequenceHead,
    "token-classification": TokenHead,
    "span-extraction": TokenHead,
    "masked-lm": MaskedHead,
    "causal-lm": NextTokenHead,
    "seq2seq-lm": NextTokenHead,
}


def head_module(card: Card, spec: HeadSpec, settings: Settings) -> nn.Module:
    """Build the head of a task; raise if the design cannot have it."""
    check_head(card, spec)
    return (_OWN.get(spec.task) or _of_package(spec.task))(card, spec, settings)


def _of_package(name: str) -> Callable[..., nn.Module]:
    module = find_head(name).module
    try:
        return Late(module).function
    except (ImportError, AttributeError) as error:
        raise IllegalInput(f"the head {name!r} names the module {module}, which cannot be loaded: {error}") from error


class TaskModel(nn.Module):
    """The model of a card with the head of a task."""

    def __init__(self, card: Card, spec: HeadSpec, settings: Settings | None = None) -> None:
        super().__init__()
        settings = settings or Settings()
        self.card, self.settings, self.spec = card, settings, spec
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
        if not self.spec.reads_table:
            return self.head(output, mask)
        hidden = output.hidden if positions is None else output.hidden[positions.bool()]
        return self.head(hidden, self.token_table)

    @property
    def token_table(self) -> Tensor:
        """Return the token table that language-model heads share: (vocabulary, table width)."""
        return self.transformer.last_stack.embedding.tokens.weight
