"""Kernels that are seen through a trained matrix: one shared kernel serves convolutions of several sizes.

Each size has a matrix of its own, for all channels of a layer, as in once-for-all networks (Cai et al., 2019). It acts
on the kernel as it is stored, before any softmax. What is trained and kept is its difference from the identity: so it
starts as the identity, weight decay leads back there, and nothing is lost by rounding on the way to a file.
"""

from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn.utils import parametrize

from formwright.arch.card import Card
from formwright.nn.heads import HeadSpec
from formwright.nn.inherit import Inherited, extract
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel

KERNEL = "kernel"
CHANGE = "change"  # the name, beside a kernel, of what is added to the identity
_TRAINED = {f"parametrizations.{KERNEL}.original": KERNEL, f"parametrizations.{KERNEL}.0.{CHANGE}": CHANGE}


def seen_through(kernel: Tensor, change: Tensor) -> Tensor:
    """Give (channels, size) kernels as they are through the identity and a (size, size) change of it."""
    return kernel + kernel @ change


class Transformation(nn.Module):
    """The matrix of one layer and size, put before the kernel that is trained with it."""

    def __init__(self, change: Tensor) -> None:
        super().__init__()
        self.change = nn.Parameter(change.detach().clone())

    def forward(self, kernel: Tensor) -> Tensor:
        """Return the kernel that the convolution uses."""
        return seen_through(kernel, self.change)


def to_train(card: Card, weights: Mapping[str, Tensor], head: HeadSpec, settings: Settings) -> TaskModel:
    """Build a model with copies of the weights, in which kernels and the matrices beside them are trained together."""
    model = extract(Inherited(weights, ()), card, settings, head)
    assert isinstance(model, TaskModel)
    for name in [name for name in weights if name.endswith(f".{CHANGE}")]:
        mixer = model.get_submodule(name.removesuffix(f".{CHANGE}"))
        parametrize.register_parametrization(mixer, KERNEL, Transformation(weights[name]))
    return model


def weights_of(model: TaskModel) -> dict[str, Tensor]:
    """Give copies of the weights of a model that `to_train` built, by the names that they had there."""
    found = {}
    for name, parameter in model.named_parameters():
        path, mark, rest = name.partition("parametrizations.")
        found[path + _TRAINED[mark + rest] if mark else name] = parameter.detach().cpu().clone()
    return found


def without_matrices(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give the weights for a plain model: every kernel as it is through its matrix."""
    changes = {name: change for name, change in weights.items() if name.endswith(f".{CHANGE}")}
    plain = {name: tensor for name, tensor in weights.items() if name not in changes}
    for name, change in changes.items():
        kernel = name.removesuffix(CHANGE) + KERNEL
        plain[kernel] = seen_through(weights[kernel], change)
    return plain
