"""A model that came out of files: its card, its settings and its weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.nn.build import skeleton
from formwright.nn.heads import HeadSpec
from formwright.nn.hf.files import TOKENIZER_FILES
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer


@dataclass(frozen=True)
class Imported:
    """A model from elsewhere.

    `weights` has the names of a `TaskModel` where there is a head, and those of a `Transformer` otherwise. `labels` are
    the names of a classifier's labels in order, empty where there are none. `dropped` lists tensors of the checkpoint
    that the design has no place for, such as heads of pretraining.
    """

    card: Card
    settings: Settings
    weights: Mapping[str, Tensor]
    head: HeadSpec | None = None
    labels: tuple[str, ...] = ()
    tokenizer_files: tuple[Path, ...] = ()
    dropped: tuple[str, ...] = ()

    def model(self) -> TaskModel | Transformer:
        """Build the model in plain torch, ready for evaluation; it shares its memory with `weights`."""
        model = skeleton(self.card, self.settings, self.head)
        model.load_state_dict(dict(self.weights), assign=True)
        return model.eval()

    def checked(self, folder: Path) -> "Imported":
        """Give itself, or refuse the checkpoint in `folder` because its tensors do not fit the card."""
        wanted = {name: tuple(tensor.shape) for name, tensor in _shapes(self).items()}
        found = {name: tuple(tensor.shape) for name, tensor in self.weights.items()}
        wrong = [name for name in wanted if found.get(name) != wanted[name]] + sorted(found.keys() - wanted.keys())
        if wrong:
            first = wrong[0]
            raise IllegalInput(
                f"the weights in {folder} do not fit its configuration: {len(wrong)} tensors are wrong, the first "
                f"being {first}, which is {found.get(first, 'absent')} instead of {wanted.get(first, 'absent')}"
            )
        return self


def _shapes(imported: Imported) -> Mapping[str, Tensor]:
    shapes: Mapping[str, Tensor] = skeleton(imported.card, imported.settings, imported.head).state_dict()
    return shapes


def tokenizer_files(folder: Path) -> tuple[Path, ...]:
    """List the files of a folder that belong to a tokenizer or an image processor."""
    return tuple(folder / name for name in TOKENIZER_FILES if (folder / name).is_file())
