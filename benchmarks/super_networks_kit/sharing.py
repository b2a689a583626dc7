"""Three ways in which designs share weights: entangled, disjoint, and paths.

The library of the package (`formwright.supernet.library`) would not do: its tensors of one kind share numbers whatever
their sizes. Here every value of a choice, or every path, owns all tensors that it has, norms and biases too.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

from torch import nn

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.core.rng import derive
from formwright.nn.build import skeleton
from formwright.nn.inherit import InheritedWeights, extract
from formwright.nn.task_model import HeadSpec, TaskModel
from formwright.space.space import Space
from formwright.supernet.hull import Hull
from formwright.supernet.network import SuperNetwork
from formwright.supernet.rules import Draw
from formwright.train.fit import Training, fresh_model
from formwright.train.prepare import Prepared

Sharing = Literal["entangled", "disjoint", "paths"]
SHARINGS: tuple[Sharing, ...] = ("entangled", "disjoint", "paths")


def owner(name: str, card: Card, sharing: Sharing) -> str:
    """Say who owns a tensor of a design: the sizes that a design must have in common with another to share it.

    With `disjoint` weights every value of a choice has tensors of its own: an attention those of its heads, a
    feed-forward layer those of its width. With `paths` a layer is owned as a whole. Both are of one width.
    """
    assert card.encoder is not None
    words = name.split(".")
    if "layers" not in words:
        return f"{name}@{card.output_width}"
    layer = card.encoder.layers[int(words[words.index("layers") + 1])]
    assert isinstance(layer, Block)
    heads: Any = layer.mixer
    attention, inner = f"heads={heads.heads}", f"inner={layer.feed_forward[0]}"
    own = f"{attention},{inner}" if sharing == "paths" else attention if "mixer" in name else inner
    return f"{name}@{layer.width},{own}"


class SeparateNetwork(SuperNetwork):
    """A super-network whose designs have tensors of their own for every value of a choice, or for every path."""

    def __init__(self, models: list[TaskModel], draw: Draw, sharing: Sharing) -> None:
        """Collect the tensors of models that have every value of every choice at every place between them."""
        super().__init__(models[0], draw)
        self.model.requires_grad_(False)
        self._sharing = sharing
        self.own = nn.ParameterDict()
        for model in models:
            for name, tensor in model.named_parameters():
                key = self._key(name, model.transformer.card)
                if key not in self.own:
                    self.own[key] = nn.Parameter(tensor.detach().clone())

    def _key(self, name: str, card: Card) -> str:
        return owner(name, card, self._sharing).replace(".", "/")

    def views(self, card: Card) -> InheritedWeights:
        return InheritedWeights({name: self.own[self._key(name, card)] for name in _names(card, self.model.spec)}, ())

    def extracted(self, card: Card) -> TaskModel:
        model = extract(self.views(card), card, None, self.model.spec)
        assert isinstance(model, TaskModel)
        return model.eval()


@lru_cache(maxsize=256)
def _names(card: Card, head: HeadSpec) -> tuple[str, ...]:
    return tuple(name for name, _ in skeleton(card, head=head).named_parameters())


def uniform_designs(space: Space, depth: int) -> list[Card]:
    """List the deepest designs whose layers are all alike: between them they have every value at every place."""
    root: dict[str, Any] = dict(space.root.fields)  # type: ignore[attr-defined]
    layer: dict[str, Any] = dict(root["layers"].part.fields)
    return [
        space.card(space.from_json({"width": width, "layers": [{"heads": heads, "ratio": ratio}] * depth}))
        for width in root["width"].options
        for heads in layer["heads"].options
        for ratio in layer["ratio"].options
    ]


def network(sharing: Sharing, hull: Hull, prepared: Prepared, training: Training, draw: Draw) -> SuperNetwork:
    """Make a super-network with fresh weights."""
    if sharing == "entangled":
        return SuperNetwork(fresh_model(hull.largest, prepared, training), draw)
    designs, recipe = uniform_designs(hull.space, len(hull.largest.stacks[0].layers)), training.recipe
    seeds = derive(recipe.seed, "separate weights").integers(1 << 31, size=len(designs)).tolist()
    models = [
        fresh_model(card, prepared, replace(training, recipe=replace(recipe, seed=seed)))
        for card, seed in zip(designs, seeds, strict=True)
    ]
    return SeparateNetwork(models, draw, sharing)


def held(model: nn.Module) -> int:
    """Count the numbers that a training may change."""
    return sum(tensor.numel() for tensor in model.parameters() if tensor.requires_grad)
