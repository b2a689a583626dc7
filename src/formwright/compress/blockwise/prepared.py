"""What all blocks share, made once: the times of operations, the bases between blocks, and narrower embeddings."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from formwright.compress.blockwise.folders import Folders
from formwright.compress.blockwise.job import Started
from formwright.compress.folders import read_json, read_stored, write, write_json
from formwright.core.errors import IllegalInput
from formwright.cost.operation_times import OperationTimes
from formwright.space.zoo.chains import REAL, Menu
from formwright.supernet.bases import Basis, fit_bases, from_tensors, to_tensors
from formwright.supernet.narrow_embedding import NarrowEmbedding, fit_embedding
from formwright.train.device import choose_device, threads

_FITTED = 32  # batches of text that bases and embeddings are fitted to
_HELD = 4  # batches of held-out text that embeddings are judged by


@dataclass(frozen=True, eq=False)
class Prepared:
    """The bases of all boundaries, and the embeddings by their width."""

    bases: list[Basis]
    embeddings: Mapping[int, NarrowEmbedding]

    @property
    def losses(self) -> dict[int, float]:
        """Give the losses of the embeddings by their width."""
        return {width: found.loss for width, found in self.embeddings.items()}


def prepare(started: Started, folders: Folders) -> Prepared:
    """Fit bases and embeddings to the teacher, or read what was fitted before where all of it can be read."""
    with threads(1):  # so that it comes to the same with any number of them, and whenever it is done anew
        try:
            found = read_prepared(folders)
        except (IllegalInput, AttributeError, KeyError, TypeError, ValueError):
            found = None
        if found is None or set(found.embeddings) != set(started.menu.embeddings):
            _fit(started, folders)
            return read_prepared(folders)
        return found


def read_prepared(folders: Folders) -> Prepared:
    """Read what was fitted before; fail where a file of it is missing or damaged."""
    losses = {int(width): float(loss) for width, loss in read_json(folders.embeddings.with_suffix(".json")).items()}
    tensors = read_tensors(folders.embeddings)
    found = {width: NarrowEmbedding(_below(tensors, f"{width}/"), loss) for width, loss in losses.items()}
    return Prepared(from_tensors(read_tensors(folders.bases)), found)


def read_times(folders: Folders, menu: Menu) -> OperationTimes:
    """Read the times of operations that were measured before; refuse a file that lacks one of a menu."""
    times = read_stored(folders.latency, OperationTimes.from_json)
    operations = {(name, width) for name in REAL for width in menu.widths}
    lacking = (
        {*menu.embeddings} - times.embeddings.keys(),
        operations - times.operations.keys(),
        {*combinations(menu.sizes, 2)} - times.joints.keys(),
    )
    if any(lacking):
        raise IllegalInput(f"{folders.latency} lacks times of operations; remove it, and they are measured anew")
    return times


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read tensors that a stage kept."""
    try:
        return load(path.read_bytes())
    except (OSError, SafetensorError) as error:
        raise IllegalInput(f"cannot read {path}: {error}; remove it, and its stage is done anew") from None


def _fit(started: Started, folders: Folders) -> None:
    device, stream = choose_device(started.job.device), started.stream(started.job.seed)
    batches = [stream.batch(step).to(device) for step in range(_FITTED)]
    bases = fit_bases(started.teacher, batches, started.ends)
    held = started.held_batches(_HELD)
    found = {width: fit_embedding(started.teacher, bases[0], width, batches, held) for width in started.menu.embeddings}
    named = {f"{width}/{name}": tensor for width, one in found.items() for name, tensor in one.weights.items()}
    write(folders.embeddings, save({name: tensor.cpu().contiguous() for name, tensor in named.items()}))
    write_json(folders.embeddings.with_suffix(".json"), {str(width): one.loss for width, one in found.items()})
    write(folders.bases, save(to_tensors(bases)))


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
