"""The training of one block: rounds of steps, after each of which the worse half of alike chains is dropped."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import save
from torch import Tensor

from formwright.compress.blockwise.costs import PartCosts
from formwright.compress.blockwise.folders import Folders
from formwright.compress.blockwise.job import Job, Started
from formwright.compress.blockwise.plan import Plan
from formwright.compress.blockwise.rows import is_trained, plain_row, read_rows, rows_or_none
from formwright.compress.blockwise.sizes import LATENCY, PARAMS
from formwright.compress.folders import write, write_json
from formwright.core.rng import derive
from formwright.search.shrinking import bins, survivors
from formwright.space.zoo.chains import Chain, chains
from formwright.supernet.bases import Basis
from formwright.supernet.blockwise import BlockNetwork, Lesson, given
from formwright.train.device import choose_device, threads
from formwright.train.fit import Run
from formwright.train.loop import Diverged, begin, go_on
from formwright.train.recipe import Recipe
from formwright.train.state import State

JUDGED, _RATED = 3, 6  # batches of held-out text: in a round, and for the table at the end


@dataclass(frozen=True)
class BlockTraining:
    """One block of a compression that has begun, counted from 0."""

    started: Started
    plan: Plan
    costs: PartCosts
    bases: Sequence[Basis]
    folders: Folders
    block: int

    @property
    def steps(self) -> int:
        """Count the steps of all rounds, and those of the chains that are left."""
        return steps_of_block(self.started.job, self.plan)

    def run(self, run: Run) -> None:
        """Train the block and write its table; go on where an earlier run was stopped."""
        if is_trained(self.folders, self.block):
            return
        with threads(1):  # the sum of floats depends on their number
            network, state = self._begun(run)
            for number in range(1, self.started.job.method.rounds + 2):
                self._train(state, number, run)
                if number <= self.started.job.method.rounds:
                    network.alive = self._shrunk(network, number)
            self._finish(network)

    @property
    def recipe(self) -> Recipe:
        """Give the recipe of all rounds together."""
        method = self.started.job.method
        return Recipe(self.steps, method.batch, method.learning_rate, decay="cosine", seed=self._seed)

    def network(self) -> BlockNetwork:
        """Make the super-network of the block, yet to be trained, with all chains that may be drawn."""
        method, started = self.started.job.method, self.started
        ends = started.ends[self.block], started.ends[self.block + 1]
        lesson = Lesson(started.teacher, ends, (self.bases[self.block], self.bases[self.block + 1]))
        alive = begun_with(list(chains(started.menu)), method.candidates, self._seed)
        network = BlockNetwork(started.menu, lesson, alive, method.paths, self._seed)
        return network.to(choose_device(started.job.device))

    @property
    def _seed(self) -> int:
        return int(derive(self.started.job.seed, "block", self.block).integers(1 << 31))

    def _begun(self, run: Run) -> tuple[BlockNetwork, State]:
        """Begin where an earlier run was stopped, or anew where it is not known any more which chains were left."""
        network = self.network()
        state = begin(network, self.recipe, run.saving)
        past = range(1, min(self.started.job.method.rounds, (len(state.losses) - 1) // self.plan.round_steps) + 1)
        if all(rows_or_none(self.folders.round(self.block, number)) is not None for number in past):
            return network, state
        for folder in (self.folders.table(self.block).parent, self._checkpoints):
            shutil.rmtree(folder, ignore_errors=True)
        network = self.network()
        return network, begin(network, self.recipe, run.saving)

    @property
    def _checkpoints(self) -> Path:
        return self.folders.checkpoints(f"block-{self.block}")

    def _train(self, state: State, number: int, run: Run) -> None:
        until = number * self.plan.round_steps
        go_on(state, self.started.stream(self._seed), given, run.saving, run.after_step, until=until)

    def _shrunk(self, network: BlockNetwork, number: int) -> tuple[Chain, ...]:
        """Judge the chains and drop the worse half of each bin, or read who stayed when that was done before."""
        path = self.folders.round(self.block, number)
        if rows_or_none(path) is None:
            losses = network.losses(network.alive, self.started.held_batches(JUDGED))
            stays = self._stays(network.alive, losses)
            judged = zip(network.alive, losses, stays, strict=True)
            write_json(path, [{**plain_row(chain, loss), "stays": bool(kept)} for chain, loss, kept in judged])
        return tuple(chain for chain, row in read_rows(path) if row["stays"])

    def _stays(self, alive: Sequence[Chain], losses: Sequence[float]) -> Any:
        method, finite = self.started.job.method, self._finite(losses)
        costs = np.array([[self.costs.chain(chain)[name] for name in (PARAMS, LATENCY)] for chain in alive])
        stays = survivors(np.where(finite, losses, np.inf), bins(costs, method.bins), method.least)
        # the shortest stay, so that a size that could be met in the beginning still can
        return (stays | np.array([len(chain.operations) == 1 for chain in alive])) & finite

    def _finite(self, losses: Sequence[float]) -> Any:
        """Tell which losses are numbers: chains without one are of no use, however few are left."""
        finite = np.isfinite(losses)
        if not finite.any():
            rate = self.started.job.method.learning_rate
            raise Diverged(
                f"no chain of block {self.block} answers with numbers any more; lower --learning-rate ({rate:g}), and "
                "use --force to begin anew"
            )
        return finite

    def _finish(self, network: BlockNetwork) -> None:
        losses = network.losses(network.alive, self.started.held_batches(_RATED))
        judged = zip(network.alive, losses, self._finite(losses), strict=True)
        left = [(chain, loss) for chain, loss, finite in judged if finite]
        network.alive = tuple(chain for chain, _ in left)
        write(self.folders.weights(self.block), save(_weights(network)))
        write_json(self.folders.table(self.block), [plain_row(*one) for one in left])
        shutil.rmtree(self._checkpoints, ignore_errors=True)


def steps_of_block(job: Job, plan: Plan) -> int:
    """Count the steps that one block is trained."""
    return (job.method.rounds + 1) * plan.round_steps


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


def restored(training: BlockTraining, weights: dict[str, Tensor], alive: Sequence[Chain]) -> BlockNetwork:
    """Give a trained block again; what no chain that is left uses has fresh weights."""
    network = training.network()
    network.load_state_dict(weights, strict=False)
    network.alive = tuple(alive)
    return network.eval()


def _weights(network: BlockNetwork) -> dict[str, Tensor]:
    """Give the weights of all layers that a chain which is left uses."""
    used = {
        f"layers.{chain.width}-{place}-{operation}."
        for chain in network.alive
        for place, operation in enumerate(chain.operations)
    }
    tensors = network.state_dict().items()
    return {name: tensor.cpu().contiguous() for name, tensor in tensors if name[: name.index(".", 7) + 1] in used}
