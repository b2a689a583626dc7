"""The state of a run: what it has learnt so far, in memory and as a checkpoint."""

from dataclasses import asdict, dataclass, field
from functools import cached_property

import torch
from torch import Tensor, nn

from formwright.core.errors import IllegalInput
from formwright.train.checkpoint import Checkpoint
from formwright.train.recipe import Recipe

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass
class State:
    """A model in training, its optimiser, the loss of every step, and the judgements of those who watch it.

    `seconds` is how long it has been trained, however often that was interrupted; `saved` is the step of the checkpoint
    that was last read or written.
    """

    model: nn.Module
    optimiser: torch.optim.Optimizer
    recipe: Recipe
    losses: list[float] = field(default_factory=list)
    judged: list[tuple[int, float]] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)
    seconds: float = 0.0
    saved: int = 0

    @cached_property
    def parameters(self) -> list[nn.Parameter]:
        """List the parameters of the model; finding them anew takes a small model a tenth of its step."""
        return list(self.model.parameters())

    @property
    def best_step(self) -> int:
        """Give the step whose weights were judged best; the last one where nobody judged."""
        return max(self.judged, key=lambda one: one[1])[0] if self.judged else len(self.losses)

    def checkpoint(self) -> Checkpoint:
        """Give everything that is needed to go on."""
        tensors: dict[str, Tensor] = {f"model.{name}": parameter for name, parameter in self.model.named_parameters()}
        tensors |= {f"buffer.{name}": buffer for name, buffer in self.model.named_buffers()}
        for name, parameter in self.model.named_parameters():
            for key, moment in self.optimiser.state.get(parameter, {}).items():
                tensors[f"optimiser.{key}.{name}"] = moment
        tensors |= {f"best.{name}": tensor for name, tensor in self.best.items()}
        told = {"losses": self.losses, "judged": self.judged, "seconds": self.seconds}
        facts = {"recipe": asdict(self.recipe), **told}
        return Checkpoint(len(self.losses), tensors, facts)

    def restore(self, found: Checkpoint) -> None:
        """Take everything from a checkpoint, which must be one of the same recipe and the same model."""
        self._refuse_another(found)
        tensors = found.tensors
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(tensors[f"model.{name}"])
                moments = {key: tensors.get(f"optimiser.{key}.{name}") for key in _MOMENTS}
                self.optimiser.state[parameter] = {
                    key: moment.to(parameter.device) for key, moment in moments.items() if moment is not None
                }
            for name, buffer in self.model.named_buffers():
                buffer.copy_(tensors[f"buffer.{name}"])
        self.losses = list(found.facts["losses"])
        self.judged = [(step, score) for step, score in found.facts["judged"]]
        self.seconds = found.facts.get("seconds", 0.0)  # which older checkpoints do not tell
        self.saved = found.step
        self.best = {name.removeprefix("best."): tensors[name] for name in tensors if name.startswith("best.")}

    def _refuse_another(self, found: Checkpoint) -> None:
        own, other = asdict(self.recipe), found.facts["recipe"]
        differing = [key for key in own | other if key not in own or key not in other or own[key] != other[key]]
        if differing:
            told = ", ".join(f"{key} {other[key]}" if key in other else f"no {key}" for key in differing)
            raise IllegalInput(
                f"the checkpoint at step {found.step} was trained with {told}; give the same, or begin anew"
            )
        wanted = {f"model.{name}": parameter.shape for name, parameter in self.model.named_parameters()}
        wanted |= {f"buffer.{name}": buffer.shape for name, buffer in self.model.named_buffers()}
        parts = ("model.", "buffer.")
        given = {name: tensor.shape for name, tensor in found.tensors.items() if name.startswith(parts)}
        if wrong := sorted({name for name, _ in wanted.items() ^ given.items()}):
            raise IllegalInput(f"the checkpoint at step {found.step} is of another model: {wrong[0]} does not fit")
