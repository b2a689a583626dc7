"""The super-network of one block: every operation at every place and width, taught by one block of a teacher.

A block reads the teacher's hidden states at its start and learns to predict those at its end. So blocks are trained
separately, in rounds after each of which the worse of its chains are dropped; the loss of a chain of operations is
known block by block, and chains can be assembled to a whole student.
"""

import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise, product
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from formwright.arch.layers import layer_tensors
from formwright.arch.tensors import Tensor as Declared
from formwright.arch.tensors import marked, under
from formwright.core.files import write_json
from formwright.core.rng import derive
from formwright.nn.build import build, initialise
from formwright.nn.hf.checkpoint_files import can_be_read
from formwright.nn.inherit import InheritedWeights, run
from formwright.nn.layer_modules import layer_module
from formwright.nn.settings import Settings
from formwright.nn.transformer import Transformer
from formwright.space.zoo.chains import REAL, Chain, Menu, candidate, chain_card
from formwright.supernet.bases import Basis, States, states
from formwright.supernet.chain_rows import plain_row, read_rows, rows_or_none
from formwright.supernet.library import Library, LibraryWeights
from formwright.train.device import threads
from formwright.train.fit import Run
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import Diverged, State, begin, go_on
from formwright.train.streams import Batch, Stream

JUDGED, _RATED = 3, 6  # batches of held-out text: in a round, and for the table at the end
TABLE, WEIGHTS = "table.json", "weights.safetensors"
_NO_DROPOUT = Settings(dropout=0.0)
Map = Callable[[Tensor], Tensor]
Weights = Mapping[str, Tensor]
Keep = Callable[[Sequence[Chain], Sequence[float]], NDArray[np.bool_]]  # which of some chains stay, by their losses


@dataclass(frozen=True)
class BlockTarget:
    """The training target of a block: the teacher, its layer indices at both ends of the block, and the bases there."""

    teacher: Transformer
    ends: tuple[int, int]
    bases: tuple[Basis, Basis]


class BlockNetwork(nn.Module):
    """All chains of one block in one set of weights; those that may be drawn are `alive`.

    A step draws `paths` of them, each equally likely, from torch's generator, which the training loop seeds for every
    step. The output is the loss: the mean squared distance from the teacher, as a share of the variance. The teacher is
    frozen, and moves between devices with the network.
    """

    def __init__(self, menu: Menu, target: BlockTarget, alive: Sequence[Chain], paths: int = 1, seed: int = 0) -> None:
        super().__init__()
        self.alive = tuple(alive)
        self.paths = paths
        self._target = (target,)  # in a tuple, so that torch does not train or save the teacher
        self._variance = target.bases[1].variance
        below, above = target.bases
        self._maps: dict[int, tuple[Map, Map]] = {
            width: (_same, _same) if width == below.width else (below.narrow(width), above.widen(width))
            for width in menu.widths
        }
        self._head = menu.head
        self.weights = LibraryWeights(_library(menu), None, _NO_DROPOUT, _fresh(menu, target.bases[1], seed))

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """Move the teacher too: torch does not see it in its tuple."""
        self._target[0].teacher._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call, no-any-return]

    def forward(self, inputs: Tensor, mask: Tensor | None, types: Tensor | None, *_: Any) -> Tensor:
        shown = self.shown(Batch(inputs, inputs, mask, types))
        drawn = torch.randint(len(self.alive), (self.paths,)).tolist()
        return torch.stack([self.loss(self.alive[number], shown) for number in drawn]).mean()

    def shown(self, batch: Batch) -> States:
        """Return what the teacher says of a batch before and after the block."""
        return states(self._target[0].teacher, batch, self._target[0].ends)

    def loss(self, chain: Chain, shown: States) -> Tensor:
        x = self._maps[chain.width][0](shown.hidden[0])
        for place, operation in enumerate(chain.operations):
            x = self.through(x, chain.width, place, operation, shown)
        return self._off(x, chain.width, shown)

    def through(self, x: Tensor, width: int, place: int, operation: str, shown: States) -> Tensor:
        """Send hidden states through one layer."""
        found: Tensor = run(
            _skeleton(operation, width, self._head), self.layer(width, place, operation), x, shown.context
        )
        return found

    def layer(self, width: int, place: int, operation: str) -> InheritedWeights:
        """Return the weights of one layer, by their names in it."""
        wanted = _declared(width, place, operation, self._head)
        read = self.weights.library.read(self.weights._parameters, wanted)  # type: ignore[arg-type]
        return InheritedWeights({name.partition(".")[2]: one for name, one in read.weights.items()}, read.missing)

    def stored(self, width: int, place: int, operation: str) -> Collection[str]:
        """Return the names that the weights of one layer are stored by."""
        return self.weights.library.stored(_declared(width, place, operation, self._head)).values()

    @torch.inference_mode()
    def losses(self, chains: Sequence[Chain], batches: Iterable[Batch]) -> list[float]:
        """Evaluate chains on some batches; common prefixes are computed once."""
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
        """Return the loss of every path that begins with what led to x; the paths are in order."""
        if len(paths[0][0]) == place:  # the shortest comes first
            yield paths[0][1], float(self._off(x, width, shown))
            paths = paths[1:]
        for operation, members in groupby(paths, key=lambda path: path[0][place]):
            above = self.through(x, width, place, operation, shown)
            yield from self._walk(above, place + 1, width, list(members), shown)

    def _off(self, x: Tensor, width: int, shown: States) -> Tensor:
        return shown.distance(self._maps[width][1](x), 1) / self._variance


def given(loss: Tensor, _: Batch) -> Tensor:
    return loss


def real_tokens(batch: Batch) -> int:
    return batch.inputs.numel() if batch.mask is None else int(batch.mask.sum())


def chain_weights(network: BlockNetwork, chain: Chain) -> list[dict[str, Tensor]]:
    """Return the weights of a chain's layers, in their order."""
    layers = [network.layer(chain.width, place, operation) for place, operation in enumerate(chain.operations)]
    return [{name: tensor.detach().clone() for name, tensor in layer.weights.items()} for layer in layers]


@torch.no_grad()
def fill_norms(layer: nn.Module, scale: float, shift: float) -> None:
    """Initialise the norms of a layer with one scale and one shift for all features."""
    for module in layer.modules():
        if isinstance(module, nn.LayerNorm):
            module.weight.fill_(scale)
            module.bias.fill_(shift)


def _same(x: Tensor) -> Tensor:
    return x


@lru_cache(maxsize=1 << 12)
def _declared(width: int, place: int, operation: str, head: int) -> dict[str, Declared]:
    """Declare one layer at a place; those of another width, or of another operation, share nothing with it."""
    tensors = marked(layer_tensors(candidate(operation, width, head), 0), kind=(width, operation))
    return {one.name: one for one in under(str(place), tensors)}


@lru_cache(maxsize=8)
def _library(menu: Menu) -> Library:
    return Library.holding(_declared(*one, menu.head) for one in product(menu.widths, range(menu.layers), REAL))


def _fresh(menu: Menu, basis: Basis, seed: int) -> dict[str, Tensor]:
    """Return small weights: every layer starts close to the identity, as a teacher's block is."""
    generator, library = torch.Generator().manual_seed(seed), _library(menu)
    weights: dict[str, Tensor] = {}
    for width, place, operation in product(menu.widths, range(menu.layers), REAL):
        layer = layer_module(candidate(operation, width, menu.head), 0, _NO_DROPOUT)
        initialise(layer, generator, "bert")
        fill_norms(layer, *basis.norm(width))
        names = library.stored(_declared(width, place, operation, menu.head))
        weights |= {names[f"{place}.{name}"]: parameter.detach() for name, parameter in layer.named_parameters()}
    return weights


@lru_cache(maxsize=256)
def _skeleton(operation: str, width: int, head: int) -> nn.Module:
    with torch.device("meta"):
        return layer_module(candidate(operation, width, head), 0, _NO_DROPOUT)


@dataclass(frozen=True, eq=False)
class BlockRounds:
    """One block that is trained in `rounds` rounds, and then once more with the chains that are left.

    `network` makes the super-network of the block, with all chains that may be drawn; `held` gives a number of batches
    of held-out text. The `folder` gets a file for each round, and in the end the weights and the table of losses.
    """

    network: Callable[[], BlockNetwork]
    recipe: Hyperparameters
    stream: Stream
    held: Callable[[int], Sequence[Batch]]
    keep: Keep
    rounds: int
    folder: Path

    def __call__(self, run: Run) -> None:
        """Train the block; resume where an earlier run was stopped."""
        if is_trained(self.folder):
            return
        with threads(1):  # the sum of floats depends on their number
            network, state = self._initial_state(run)
            for number in range(1, self.rounds + 2):
                until = number * self._round_steps
                go_on(state, self.stream, given, run.saving, run.after_step, until=until)
                if number <= self.rounds:
                    network.alive = self._shrunk(network, number)
            self._finish(network)

    @property
    def _round_steps(self) -> int:
        return self.recipe.steps // (self.rounds + 1)

    def _initial_state(self, run: Run) -> tuple[BlockNetwork, State]:
        """Begin where an earlier run was stopped, or from the start where it is unknown which chains were left."""
        network = self.network()
        state = begin(network, self.recipe, run.saving)
        past = range(1, min(self.rounds, (len(state.losses) - 1) // self._round_steps) + 1)
        if all(rows_or_none(self._round(number)) is not None for number in past):
            return network, state
        for folder in [self.folder] + ([] if run.saving is None else [run.saving.folder]):
            shutil.rmtree(folder, ignore_errors=True)
        network = self.network()
        return network, begin(network, self.recipe, run.saving)

    def _round(self, number: int) -> Path:
        return self.folder / f"round-{number}.json"

    def _shrunk(self, network: BlockNetwork, number: int) -> tuple[Chain, ...]:
        """Judge the chains and drop the worse ones, or read which stayed where that was done before."""
        path = self._round(number)
        if rows_or_none(path) is None:
            losses = network.losses(network.alive, self.held(JUDGED))
            finite = self._finite(losses)
            stays = self.keep(network.alive, np.where(finite, losses, np.inf).tolist()) & finite
            judged = zip(network.alive, losses, stays, strict=True)
            write_json(path, [{**plain_row(chain, loss), "stays": bool(kept)} for chain, loss, kept in judged])
        return tuple(chain for chain, row in read_rows(path) if row["stays"])

    def _finite(self, losses: Sequence[float]) -> NDArray[np.bool_]:
        """Tell which losses are finite: chains without one are of no use, however few are left."""
        finite = np.isfinite(losses)
        if not finite.any():
            raise Diverged(
                f"every chain of block {self.folder.name} gives NaN or infinity; use a learning rate below "
                f"{self.recipe.learning_rate:g}, and --force to overwrite this run"
            )
        return finite

    def _finish(self, network: BlockNetwork) -> None:
        losses = network.losses(network.alive, self.held(_RATED))
        judged = zip(network.alive, losses, self._finite(losses), strict=True)
        left = [(chain, loss) for chain, loss, finite in judged if finite]
        network.alive = tuple(chain for chain, _ in left)
        layers = {(one.width, *each) for one in network.alive for each in enumerate(one.operations)}
        used = {stored for layer in layers for stored in network.stored(*layer)}
        weights = {name: one for name, one in network.weights.named_parameters() if name in used}
        library = Library({name: one for name, one in network.weights.library.tensors.items() if name in used})
        LibraryWeights(library, None, _NO_DROPOUT, weights).save(self.folder / WEIGHTS)
        write_json(self.folder / TABLE, [plain_row(*one) for one in left])


def is_trained(folder: Path) -> bool:
    return rows_or_none(folder / TABLE) is not None and can_be_read(folder / WEIGHTS)


def first_chains(found: list[Chain], most: int, seed: int) -> list[Chain]:
    """Choose the chains that a block begins with: all, or as many of each width and length as there is room for.

    Drawn without regard to length, nearly all of them would be of the greatest.
    """
    if len(found) <= most:
        return found
    order = derive(seed, "candidates").permutation(len(found))
    places: dict[tuple[int, int], int] = {}
    ranked = []
    for chain in (found[number] for number in order):
        key = chain.width, len(chain.operations)
        places[key] = places.get(key, 0) + 1
        ranked.append((places[key], chain))
    return sorted(chain for _, chain in sorted(ranked, key=lambda one: one[0])[:most])


def restored(network: BlockNetwork, folder: Path, alive: Sequence[Chain]) -> BlockNetwork:
    """Give a network the weights of a trained block, which has those of the chains that are left."""
    device = next(network.parameters()).device
    network.weights = LibraryWeights.load(folder / WEIGHTS, None, _NO_DROPOUT).to(device)
    network.alive = tuple(alive)
    return network.eval()


def assembled(
    menu: Menu,
    blocks: Sequence[Chain],
    embedding: Weights,
    layers: Sequence[Sequence[Weights]],
    bases: Sequence[Basis],
    settings: Settings,
) -> Transformer:
    """Assemble a student from an embedding and blocks; projections of the bases join different widths."""
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
            joint = bases[number].joint(below.width, above.width)
            stack.projections[str(place)].load_state_dict({"weight": joint.weight, "bias": joint.bias})
    return model.eval()


class DistilledStudent(nn.Module):
    """A whole student trained to match its teacher's hidden states at the end of each block.

    The output is the loss: the mean over the blocks of the squared distance, as a share of the variance there. The
    teacher is frozen.
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
        """Return how far the student's last vectors are from the teacher's, as a share of their variance.

        All tokens but padding have equal weight.
        """
        self.eval()
        found = [(float(self.losses(batch)[-1]), real_tokens(batch)) for batch in batches]
        return sum(loss * tokens for loss, tokens in found) / sum(tokens for _, tokens in found)
