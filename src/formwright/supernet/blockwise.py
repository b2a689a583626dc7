"""The super-network of one block: every operation at every place and width, taught by one block of a teacher.

A block is shown the teacher's hidden states where the teacher's block begins, and learns to say what the teacher says
where it ends. So blocks are trained apart from one another, and what a chain of operations comes to is known block by
block.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Self

import torch
from torch import Tensor, nn

from formwright.nn.build import initialise
from formwright.nn.layers import layer_module
from formwright.nn.settings import Settings
from formwright.nn.transformer import Transformer
from formwright.space.zoo.chains import REAL, Chain, Menu, candidate
from formwright.supernet.bases import Basis
from formwright.supernet.teacher_states import States, states
from formwright.train.batch import Batch

_NO_DROPOUT = Settings(dropout=0.0)
Map = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Lesson:
    """What a block learns from: the teacher, its layers before and after the block, and the bases there."""

    teacher: Transformer
    ends: tuple[int, int]
    bases: tuple[Basis, Basis]


class BlockNetwork(nn.Module):
    """All chains of one block in one set of weights; those that may be drawn are `alive`.

    A step draws `paths` of them, each equally likely, from torch's generator, which the training loop seeds for every
    step. The answer is the loss: the mean squared distance from the teacher, as a share of its vectors' own variance.
    The teacher's weights are not changed, but go wherever the network goes.
    """

    def __init__(self, menu: Menu, lesson: Lesson, alive: Sequence[Chain], paths: int = 1, seed: int = 0) -> None:
        super().__init__()
        self.alive = tuple(alive)
        self.paths = paths
        self._lesson = (lesson,)  # in a tuple: the teacher's weights are not the network's to learn or to save
        self._variance = lesson.bases[1].variance
        self._maps = {width: _ends(lesson.bases, width) for width in menu.widths}
        self.layers = nn.ModuleDict(
            {
                _place(width, place, operation): layer_module(candidate(operation, width, menu.head), 0, _NO_DROPOUT)
                for width in menu.widths
                for place in range(menu.layers)
                for operation in REAL
            }
        )
        # small weights: every layer begins by handing on what it gets, and a teacher's block changes that only so much
        initialise(self.layers, torch.Generator().manual_seed(seed), "bert")
        for name, layer in self.layers.items():
            fill_norms(layer, *lesson.bases[1].norm(int(name.partition("-")[0])))

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """Move the teacher along: torch does not see it in its tuple."""
        self._lesson[0].teacher._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call, no-any-return]

    def forward(self, inputs: Tensor, mask: Tensor | None, types: Tensor | None, *_: Any) -> Tensor:
        """Return the mean loss of the chains that are drawn."""
        shown = self.shown(Batch(inputs, inputs, mask, types))
        drawn = torch.randint(len(self.alive), (self.paths,)).tolist()
        return torch.stack([self.loss(self.alive[number], shown) for number in drawn]).mean()

    def shown(self, batch: Batch) -> States:
        """Give what the teacher says of a batch before and after the block."""
        return states(self._lesson[0].teacher, batch, self._lesson[0].ends)

    def loss(self, chain: Chain, shown: States) -> Tensor:
        """Return the loss of one chain."""
        x = self._maps[chain.width][0](shown.hidden[0])
        for place, operation in enumerate(chain.operations):
            x = self.layer(chain.width, place, operation)(x, shown.context)
        return self._off(x, chain.width, shown)

    def layer(self, width: int, place: int, operation: str) -> nn.Module:
        """Give the module of one operation at one place."""
        return self.layers[_place(width, place, operation)]

    @torch.inference_mode()
    def losses(self, chains: Sequence[Chain], batches: Iterable[Batch]) -> list[float]:
        """Judge chains on some batches, every real token alike; what several of them begin with is computed once."""
        self.eval()
        order = sorted(range(len(chains)), key=chains.__getitem__)
        sums, tokens = [0.0] * len(chains), 0
        for batch in batches:
            shown, own = self.shown(batch), real_tokens(batch)
            tokens += own
            for width, members in groupby(order, key=lambda one: chains[one].width):
                paths = [(chains[one].operations, one) for one in members]
                for one, loss in self._walk(self._maps[width][0](shown.hidden[0]), 0, width, paths, shown):
                    sums[one] += own * loss
        return [total / tokens for total in sums]

    def _walk(
        self, x: Tensor, place: int, width: int, paths: Sequence[tuple[tuple[str, ...], int]], shown: States
    ) -> Iterable[tuple[int, float]]:
        """Give the loss of every path that begins with what led to x; the paths are in order."""
        if len(paths[0][0]) == place:  # the shortest comes first
            yield paths[0][1], float(self._off(x, width, shown))
            paths = paths[1:]
        for operation, members in groupby(paths, key=lambda path: path[0][place]):
            above = self.layer(width, place, operation)(x, shown.context)
            yield from self._walk(above, place + 1, width, list(members), shown)

    def _off(self, x: Tensor, width: int, shown: States) -> Tensor:
        return shown.distance(self._maps[width][1](x), 1) / self._variance


def given(loss: Tensor, _: Batch) -> Tensor:
    """Take what a network answers for its loss."""
    return loss


def real_tokens(batch: Batch) -> int:
    """Count the tokens of a batch that are no padding."""
    return batch.inputs.numel() if batch.mask is None else int(batch.mask.sum())


def chain_weights(network: BlockNetwork, chain: Chain) -> list[dict[str, Tensor]]:
    """Give the weights of a chain's layers, in their order."""
    layers = [network.layer(chain.width, place, operation) for place, operation in enumerate(chain.operations)]
    return [{name: tensor.detach().clone() for name, tensor in layer.state_dict().items()} for layer in layers]


def _ends(bases: tuple[Basis, Basis], width: int) -> tuple[Map, Map]:
    if width == bases[0].width:
        return _same, _same
    return bases[0].narrow(width), bases[1].widen(width)


@torch.no_grad()
def fill_norms(layer: nn.Module, scale: float, shift: float) -> None:
    """Let the norms of a layer begin with one scale and one shift for all features."""
    for module in layer.modules():
        if isinstance(module, nn.LayerNorm):
            module.weight.fill_(scale)
            module.bias.fill_(shift)


def _same(x: Tensor) -> Tensor:
    return x


def _place(width: int, place: int, operation: str) -> str:
    return f"{width}-{place}-{operation}"
