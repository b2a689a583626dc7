"""What the page of a block-wise compression shows: the candidates of each block, and the best choice for every size."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class BlockCandidate:
    """One candidate of a block: width, operations, loss and costs."""

    width: int
    operations: tuple[str, ...]
    loss: float
    params: int
    latency_ms: float


@dataclass(frozen=True)
class Option:
    """The best choice within `limit` parameters: the width of the token table, and a candidate of each block."""

    limit: int
    table: int
    chosen: tuple[int, ...]
    params: int
    latency_ms: float
    loss: float


@dataclass(frozen=True)
class Model:
    """A delivered model; `before` and `after` are its distances from the teacher before and after distillation."""

    name: str
    params: int
    latency_ms: float
    predicted_ms: float
    before: float
    after: float


@dataclass(frozen=True)
class BlockFacts:
    """Everything that the page shows; `options` are sorted by size."""

    teacher: str
    params: int
    text: str
    blocks: tuple[tuple[BlockCandidate, ...], ...]
    options: tuple[Option, ...]
    models: tuple[Model, ...] = field(default=())
