"""The training of one block: rounds of steps, after each of which the worse half of alike chains is dropped."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from safetensors.torch import save
from torch import Tensor

from formwright.compress.blockwise.costs import PartCosts
from formwright.compress.blockwise.folders import Folders
from formwright.compress.blockwise.job import Job, Started
from formwright.compress.blockwise.plan import Plan
from formwright.compress.blockwise.sizes import LATENCY, PARAMS
from formwright.compress.folders import read_json, write, write_json
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.search.shrinking import bins, survivors
from formwright.space.zoo.chains import Chain, chains
from formwright.supernet.bases import Basis
from formwright.supernet.blockwise import BlockNetwork, Lesson, given
from formwright.train.device import choose_device, threads
from formwright.train.fit import Run
from formwright.train.loop import begin, go_on
from formwright.train.recipe import Recipe
from formwright.train.state import State

_JUDGED, _RATED = 2, 6  # batches of held-out text: in a round, and for the table at the end


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
        if self.folders.table(self.block).is_file():
            return
        network = self.network()
        with threads(1):  # the sum of floats depends on their number
            state = begin(network, self.recipe, run.saving)
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

    def _train(self, state: State, number: int, run: Run) -> None:
        until = number * self.plan.round_steps
        later = self.folders.round(self.block, number)
        if len(state.losses) > until and not later.is_file():
            raise IllegalInput(
                f"{later} is missing, though block {self.block} was trained on; use --force to begin anew"
            )
        go_on(state, self.started.stream(self._seed), given, run.saving, run.after_step, until=until)

    def _shrunk(self, network: BlockNetwork, number: int) -> tuple[Chain, ...]:
        """Judge the chains and drop the worse half of each bin, or read who stayed when that was done before."""
        path = self.folders.round(self.block, number)
        if not path.is_file():
            losses = network.losses(network.alive, self.started.held_batches(_JUDGED))
            stays = self._stays(network.alive, losses)
            judged = zip(network.alive, losses, stays, strict=True)
            write_json(path, [{**_plain(chain), "loss": loss, "stays": bool(kept)} for chain, loss, kept in judged])
        return tuple(chain for chain, row in read_rows(path) if row["stays"])

    def _stays(self, alive: Sequence[Chain], losses: Sequence[float]) -> Any:
        method = self.started.job.method
        costs = np.array([[self.costs.chain(chain)[name] for name in (PARAMS, LATENCY)] for chain in alive])
        stays = survivors(losses, bins(costs, method.bins), method.least)
        # the shortest stay, so that a size that could be met in the beginning still can
        return stays | np.array([len(chain.operations) == 1 for chain in alive])

    def _finish(self, network: BlockNetwork) -> None:
        losses = network.losses(network.alive, self.started.held_batches(_RATED))
        path = self.folders.weights(self.block)
        write(path, save(_weights(network)))
        rows = [{**_plain(chain), "loss": loss} for chain, loss in zip(network.alive, losses, strict=True)]
        write_json(self.folders.table(self.block), rows)
        shutil.rmtree(self.folders.checkpoints(f"block-{self.block}"), ignore_errors=True)


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


def read_rows(path: Any) -> list[tuple[Chain, dict[str, Any]]]:
    """Read the chains of a round or of a table, and what is told of each."""
    try:
        return [(Chain(row["width"], tuple(row["operations"])), row) for row in read_json(path)]
    except (KeyError, TypeError) as error:
        raise IllegalInput(f"cannot read {path}: {error}; use --force to begin anew") from None


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


def _plain(chain: Chain) -> dict[str, Any]:
    return {"width": chain.width, "operations": list(chain.operations)}
