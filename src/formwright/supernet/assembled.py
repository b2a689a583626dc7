"""A whole student out of blocks that were trained apart: its card, its weights, and how far it is from the teacher."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from formwright.nn.build import build
from formwright.nn.settings import Settings
from formwright.nn.transformer import Transformer
from formwright.space.zoo.chains import Chain, Menu, chain_card
from formwright.supernet.bases import Affine, Basis
from formwright.supernet.blockwise import real_tokens
from formwright.supernet.teacher_states import states
from formwright.train.batch import Batch

Weights = Mapping[str, Tensor]


def assembled(
    menu: Menu,
    blocks: Sequence[Chain],
    embedding: Weights,
    layers: Sequence[Sequence[Weights]],
    bases: Sequence[Basis],
    settings: Settings,
) -> Transformer:
    """Put an embedding and the layers of each block together; widths that differ meet through the bases' joints."""
    table = embedding["tokens.weight"].shape[1]
    model = build(chain_card(menu, table, blocks), settings)
    assert isinstance(model, Transformer)
    stack = model.encoder
    assert stack is not None
    tables = dict(embedding)
    if stack.embedding.widen is not None:
        joint = bases[0].joint(table, blocks[0].width)
        tables |= {"widen.weight": joint.weight, "widen.bias": joint.bias}
    stack.embedding.load_state_dict(tables)
    for layer, weights in zip(stack.layers, [one for block in layers for one in block], strict=True):
        layer.load_state_dict(dict(weights))
    place = 0
    for number, (below, above) in enumerate(pairwise(blocks), start=1):
        place += len(below.operations)
        if below.width != above.width:
            _load(stack.projections[str(place)], bases[number].joint(below.width, above.width))
    return model.eval()


class Taught(nn.Module):
    """A whole student that learns to say what its teacher says where each block ends.

    The answer is the loss: the mean over the blocks of the squared distance, as a share of the variance there. The
    teacher's weights are not the student's to learn.
    """

    def __init__(
        self,
        model: Transformer,
        blocks: Sequence[Chain],
        teacher: Transformer,
        ends: Sequence[int],
        bases: Sequence[Basis],
    ) -> None:
        super().__init__()
        self.model = model
        self._teacher = (teacher,)
        self._ends, self._bases, self._blocks = tuple(ends), tuple(bases), tuple(blocks)

    def forward(self, inputs: Tensor, mask: Tensor | None, types: Tensor | None, *_: object) -> Tensor:
        """Return the mean loss of all blocks."""
        return torch.stack(self.losses(Batch(inputs, inputs, mask, types))).mean()

    def losses(self, batch: Batch) -> list[Tensor]:
        """Return the loss at the end of each block."""
        shown = states(self._teacher[0], batch, self._ends)
        outputs = self.model(batch.inputs, batch.mask, batch.types).layers
        losses, place = [], 0
        for number, block in enumerate(self._blocks, start=1):
            place += len(block.operations)
            basis = self._bases[number]
            found = basis.widen(block.width)(outputs[place - 1])
            losses.append(shown.distance(found, number) / basis.variance)
        return losses

    @torch.inference_mode()
    def distance(self, batches: Iterable[Batch]) -> float:
        """Tell how far the student's last vectors are from the teacher's, as a share of their variance.

        Every real token counts alike, whatever the length of its batch.
        """
        self.eval()
        found = [(float(self.losses(batch)[-1]), real_tokens(batch)) for batch in batches]
        return sum(loss * tokens for loss, tokens in found) / sum(tokens for _, tokens in found)


@torch.no_grad()
def _load(linear: nn.Module, joint: Affine) -> None:
    assert isinstance(linear, nn.Linear)
    linear.weight.copy_(joint.weight)
    linear.bias.copy_(joint.bias)
