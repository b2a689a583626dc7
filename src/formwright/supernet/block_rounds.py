"""The training of one block: rounds of steps, after each of which the worse of its chains are dropped."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import save
from torch import Tensor

from formwright.core.files import write_file, write_json
from formwright.core.rng import derive
from formwright.nn.hf.checkpoint_files import can_be_read
from formwright.space.zoo.chains import Chain
from formwright.supernet.blockwise import BlockNetwork, given
from formwright.supernet.chain_rows import plain_row, read_rows, rows_or_none
from formwright.train.device import threads
from formwright.train.fit import Run
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import Diverged, State, begin, go_on
from formwright.train.streams import Batch, Stream

JUDGED, _RATED = 3, 6  # batches of held-out text: in a round, and for the table at the end
TABLE, WEIGHTS = "table.json", "weights.safetensors"
Keep = Callable[[Sequence[Chain], Sequence[float]], NDArray[np.bool_]]  # which of some chains stay, by their losses


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
            network, state = self._begun(run)
            for number in range(1, self.rounds + 2):
                until = number * self._round_steps
                go_on(state, self.stream, given, run.saving, run.after_step, until=until)
                if number <= self.rounds:
                    network.alive = self._shrunk(network, number)
            self._finish(network)

    @property
    def _round_steps(self) -> int:
        return self.recipe.steps // (self.rounds + 1)

    def _begun(self, run: Run) -> tuple[BlockNetwork, State]:
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
        write_file(self.folder / WEIGHTS, save(_weights(network)))
        write_json(self.folder / TABLE, [plain_row(*one) for one in left])


def is_trained(folder: Path) -> bool:
    return rows_or_none(folder / TABLE) is not None and can_be_read(folder / WEIGHTS)


def begun_with(found: list[Chain], most: int, seed: int) -> list[Chain]:
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


def restored(network: BlockNetwork, weights: dict[str, Tensor], alive: Sequence[Chain]) -> BlockNetwork:
    """Give a fresh network the weights of a trained block; what no chain that is left uses stays fresh."""
    network.load_state_dict(weights, strict=False)
    network.alive = tuple(alive)
    return network.eval()


def _weights(network: BlockNetwork) -> dict[str, Tensor]:
    used = {
        f"layers.{chain.width}-{place}-{operation}."
        for chain in network.alive
        for place, operation in enumerate(chain.operations)
    }
    tensors = network.state_dict().items()
    return {name: tensor.cpu().contiguous() for name, tensor in tensors if name[: name.index(".", 7) + 1] in used}
