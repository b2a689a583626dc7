"""The contract that every operation keeps, as tests: inherit `OperationContract` and give a few forms of yours.

class TestMine(OperationContract):
    def examples(self):
        return [MyOperation(), MyOperation(kernel=5)]
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.discover import all_operations
from formwright.arch.embeddings import Embedding, PatchEmbedding, Positions, TokenEmbedding
from formwright.arch.graph import graph_digest, graph_of
from formwright.arch.layers import Block, Branch, Cell, Junction, Layer, Stack
from formwright.arch.ops import Attention, Identity, Operation, Place
from formwright.arch.tensors import MEMORY, STREAM, Factor
from formwright.arch.tensors import Tensor as Declared
from formwright.core.errors import IllegalDesign, IllegalInput
from formwright.cost import macs, params
from formwright.nn.build import build, skeleton
from formwright.nn.deploy import export
from formwright.nn.inherit import Slots, inherit
from formwright.nn.inherit import run as run_inherited
from formwright.nn.latency import measured_table
from formwright.nn.layer_modules import operation_module
from formwright.nn.settings import Settings
from formwright.nn.stack_context import Cache, StackContext
from formwright.report.svg import draw_svg
from formwright.space.elastic_parts import ElasticPart, elastic_parts, resized
from formwright.supernet.groups import axes_of, groups, stream_groups

_MEMORY, _TOKENS, _WORDS = 12, 9, 50
_products = partial(macs, length=_TOKENS)


class OperationContract(ABC):
    """Test an operation against everything that cards, costs, super-networks and exports rely on.

    Every example can stand at every place that the operation names, between vectors of `width`.
    """

    width: ClassVar[int] = 16

    @abstractmethod
    def examples(self) -> Sequence[Operation]:
        """Give the operation in several forms; the author of an operation writes this."""

    def larger(self, operation: Operation) -> Operation:
        """Give the operation at twice the width, out of whose weights the example can read its own."""
        return operation.with_heads(lambda heads: 2 * heads)

    def macs_beyond(self, operation: Operation, tokens: int) -> int:
        """Count the products that the module takes beyond the declared ones, if it runs in another way."""
        return 0

    # --- the declaration ---------------------------------------------------------------------------------------------

    def test_it_is_found_by_its_type_and_names_everything_that_is_shown(self) -> None:
        for operation in self.examples():
            assert all_operations()[operation.TYPE] is type(operation)
            assert re.fullmatch("#[0-9A-Fa-f]{6}", operation.SWATCH.colour)
            assert len(operation.SWATCH.glyph) == 1
            assert operation.describe()
            assert operation.head_count >= 1
            assert operation.with_heads(lambda heads: heads) == operation

    def test_it_stands_where_it_says_and_nowhere_else(self) -> None:
        for operation in self.examples():
            for place in ("mixer", "branch", "cross"):
                if place in operation.PLACES:
                    assert _card(operation, place, self.width).stacks
                else:
                    with pytest.raises(IllegalDesign, match="cannot be"):
                        _card(operation, place, self.width)

    def test_cards_are_read_drawn_and_told_apart(self) -> None:
        digests = set()
        for _, card in self.cards():
            again = Card.loads(json.dumps(card.to_json()))
            assert (again, again.digest) == (card, card.digest)
            assert len(graph_of(card).labels) > 2
            digests.add(graph_digest(card))
            assert str(draw_svg(card)).startswith("<svg")
        assert len(digests) == len({card.digest for _, card in self.cards()})

    # --- what is built and what it takes -----------------------------------------------------------------------------

    def test_what_is_built_is_what_is_declared(self) -> None:
        for _, card in self.cards():
            built = {name: tuple(one.shape) for name, one in skeleton(card).named_parameters()}
            declared = tensors_of(card)
            assert {name: one.shape for name, one in declared.items()} == built
            order = "declared in another order than torch lists them: a module's own parameters before its children's"
            assert list(declared) == list(built), order
            assert params(card) == sum(one.numel() for one in skeleton(card).parameters())

    @torch.no_grad()
    def test_the_products_that_run_are_those_declared(self) -> None:
        for operation, card in self.cards():
            model = skeleton(card, Settings(eager=True)).eval()
            given = [_inputs(stack, 1, "meta") for stack in card.stacks]
            tokens = card.stacks[-1].embedding.tokens_of(_TOKENS)
            with torch.device("meta"), FlopCounterMode(display=False) as counter:
                model(given[0], targets=given[1] if len(given) > 1 else None)
            expected = macs(card, _TOKENS) + self.macs_beyond(operation, tokens)
            assert counter.get_total_flops() / 2 == expected, card.to_json()

    # --- what it may see ---------------------------------------------------------------------------------------------

    @torch.no_grad()
    def test_padding_changes_no_real_token(self) -> None:
        for operation, module, context in self.modules():
            if operation.relative_axes == 2:
                continue  # images have no padding
            x, mask = _normal(2, _TOKENS, self.width), torch.arange(_TOKENS)[None] < torch.tensor([[_TOKENS], [5]])
            seen = module(x, context(mask))
            other = torch.where(mask[..., None], x, 100 * _normal(2, _TOKENS, self.width, seed=9))
            assert _close(module(other, context(mask))[mask], seen[mask])
            assert _close(module(x[1:, :5], context(None, rows=slice(1, 2))), seen[1:, :5])
            assert _close(module(x, context(torch.ones_like(mask))), module(x, context(None)))

    @torch.no_grad()
    def test_a_causal_operation_sees_no_later_token_and_reads_on(self) -> None:
        for operation, module, context in self.modules():
            if not operation.CAUSAL:
                with pytest.raises(IllegalDesign, match="cannot be causal"):
                    _card(operation, operation.PLACES[0], self.width, causal=True)
            elif operation.relative_axes < 2:
                x = _normal(2, _TOKENS, self.width)
                whole = module(x, context(None, causal=True))
                later = torch.cat((x[:, :6], _normal(2, _TOKENS - 6, self.width, seed=9)), 1)
                assert _close(module(later, context(None, causal=True))[:, :6], whole[:, :6])
                cache, read = Cache(), []
                for start, end in ((0, 4), (4, 5), (5, _TOKENS)):
                    read.append(module(x[:, start:end], context(None, causal=True, cache=cache)))
                    cache.length = end
                assert _close(torch.cat(read, 1), whole)

    def test_gradients_reach_every_tensor(self) -> None:
        for _, module, context in self.modules():
            x = _normal(2, _TOKENS, self.width).requires_grad_()
            module(x, context(None)).square().sum().backward()
            assert x.grad is not None
            for name, parameter in module.named_parameters():
                assert parameter.grad is not None, name
                assert parameter.grad.isfinite().all(), name

    # --- weights and exports -----------------------------------------------------------------------------------------

    @torch.no_grad()
    def test_a_smaller_design_reads_its_weights_out_of_a_larger_one(self) -> None:
        for operation, card in self.cards():
            pairs = [(card, card), *((source, card) for source in self.larger_cards(operation, card))]
            pairs += [(card, smaller) for _, smaller in self.smaller_cards(card)]
            for source, target in pairs:
                weights = dict(build(source, seed=3).named_parameters())
                inherited = inherit(weights, source, target)
                assert not inherited.missing, operation
                given, wanted = tensors_of(source), tensors_of(target)
                assert inherited.weights.keys() == wanted.keys()
                for name, read in inherited.weights.items():
                    assert torch.equal(read, _cut_by_hand(weights[name], given[name], wanted[name])), name
                model, rows = skeleton(target).eval(), [_inputs(stack, 2) for stack in target.stacks]
                out = run_inherited(model, inherited, rows[0], targets=rows[1] if len(rows) > 1 else None)
                assert out.hidden.isfinite().all()

    def test_an_elastic_field_changes_the_size_of_its_group_and_nothing_else(self) -> None:
        declared: set[str] = set()
        shrunk: set[str] = set()
        for _, card in self.cards():
            declared |= {part.field for part in _parts_of(card)}
            for part, smaller in self.smaller_cards(card):
                shrunk.add(part.field)
                given, wanted = tensors_of(card), tensors_of(smaller)
                assert given.keys() == wanted.keys()
                for name, tensor in wanted.items():
                    assert tensor.kind == given[name].kind, (name, part.field)
                    own = given[name].part.endswith(f".{part.part}")
                    axes = [[_resized(one, part, smaller) if own else one for one in axis] for axis in given[name].axes]
                    assert list(map(list, tensor.axes)) == axes, (name, part.field)
        assert shrunk == declared, "give an example in which each elastic field is large enough to be lessened"

    def test_its_elastic_parts_are_measured_and_added_up(self) -> None:
        """On a machine that takes a millisecond for a product, parts take what the products of smaller designs say."""
        for operation in self.examples():
            for place in (one for one in operation.PLACES if one != "branch"):  # parts of cells are not measured
                card = _card(operation, place, self.width, operation)
                if not _parts_of(card) and not isinstance(operation, Identity):
                    with pytest.raises(IllegalInput, match=re.escape(operation.TYPE)):
                        measured_table(card, measured=_products)
                    continue
                table, whole = measured_table(card, measured=_products), _products(card)
                assert table(card) == pytest.approx(whole), operation
                for part, smaller in self.smaller_cards(card):
                    # sizes between those that are measured are interpolated, which is not exact
                    saved = pytest.approx(whole - _products(smaller), rel=0.1, abs=1e-6 * whole)
                    assert table(card) - table(smaller) == saved, (operation, part.field)

    @torch.no_grad()
    def test_members_of_a_group_and_the_hidden_size_may_be_put_into_any_order(self) -> None:
        """Importance moves the members of a group to the front in all tensors, which must not change the function."""
        generator = torch.Generator().manual_seed(4)
        for operation, card in self.cards():
            if isinstance(card.stacks[-1].layers[0], Cell):
                continue  # nothing of a cell is scored
            model = _strong(build(card, Settings(dropout=0.0)))
            rows = [_inputs(stack, 2, seed=7) for stack in card.stacks]
            targets = rows[1] if len(rows) > 1 else None
            weights, before = dict(model.named_parameters()), model(rows[0], targets=targets).hidden
            found = groups(card)
            if operation.ordered:
                with pytest.raises(IllegalInput, match="fixed order"):
                    stream_groups(card, None)
            else:
                found += stream_groups(card, None)
            of_output = ("hidden", "decoder hidden")[len(card.stacks) - 1]
            for group in found:
                order = torch.randperm(group.members, generator=generator).roll(1)
                moved = dict(weights)
                for axis in (*group.weights, *group.biases):
                    moved[axis.name] = axis.taken(moved[axis.name], order)
                with Slots(model).lent(moved):
                    after = model(rows[0], targets=targets).hidden
                assert _close(after, before[..., order] if group.kind == of_output else before), group.kind

    @torch.no_grad()
    def test_the_numbers_of_a_vector_have_no_order_unless_the_operation_says_so(self) -> None:
        """This is so for the vectors that it reads and writes, and for those of an encoder, wherever it stands."""
        order, behind = (torch.randperm(size, generator=_generator(3)).roll(1) for size in (self.width, _MEMORY))
        for operation, module, context in self.modules():
            if operation.ordered:
                continue
            x = _normal(2, _TOKENS, self.width)
            before = module(x, context(None))
            stream, weights = Factor(self.width, STREAM), dict(module.named_parameters())
            tensors = list(operation.tensors(stream, stream, Factor(_MEMORY, MEMORY)))
            for _, group, axis in axes_of(tensors):
                if group in (STREAM, MEMORY):
                    taken = axis.taken(weights[axis.name], order if group == STREAM else behind)
                    weights[axis.name] = nn.Parameter(taken)
            with Slots(module).lent(weights):
                after = module(x[..., order], context(None, memory_order=behind))
            assert _close(after, before[..., order]), operation

    def test_it_exports_to_onnx(self, tmp_path: Path) -> None:
        # an export takes seconds, so that forms that can stand in one stack share it
        together: dict[tuple[Place, int, int], list[Operation]] = {}
        for operation in self.examples():
            for place in operation.PLACES:
                key = (place, operation.relative_axes, operation.memory_layers)
                together.setdefault(key, []).append(operation)
        for number, ((place, *_), operations) in enumerate(together.items()):
            model = build(_card(operations[0], place, self.width, *operations[1:]), seed=1, spread="width")
            assert export(model, "onnx", tmp_path / str(number)).largest_difference < 5e-4

    # --- cases -------------------------------------------------------------------------------------------------------

    def cards(self) -> Iterator[tuple[Operation, Card]]:
        """Yield the smallest design with each example at each of its places."""
        for operation in self.examples():
            for place in operation.PLACES:
                yield operation, _card(operation, place, self.width)

    def larger_cards(self, operation: Operation, card: Card) -> Iterator[Card]:
        """Yield the design of twice the width with the larger operation at the place that it has in a card."""
        for place in operation.PLACES:
            if _card(operation, place, self.width) == card:
                yield _card(self.larger(operation), place, 2 * self.width)

    def smaller_cards(self, card: Card) -> Iterator[tuple[ElasticPart, Card]]:
        """Yield a design whose first layer has one less of each elastic field of its operation that can be lessened."""
        stack = card.stacks[-1]
        for part in _parts_of(card):
            size = part.most - (2 if part.cut == "centred" else 1)  # the ends of a kernel go together
            if size >= max(part.least, 1):
                last = replace(stack, layers=(resized(stack.layers[0], {part.name: size}), *stack.layers[1:]))
                in_decoder = card.decoder is stack
                yield part, replace(card, decoder=last) if in_decoder else replace(card, encoder=last)

    def modules(self) -> Iterator[tuple[Operation, nn.Module, "_Contexts"]]:
        """Yield the module of each example with strong weights, and what makes its contexts."""
        for operation in self.examples():
            module = operation_module(operation, self.width, self.width, _MEMORY, Settings())
            yield operation, _strong(module), _Contexts(_grid(operation))


class _Contexts:
    """Make contexts with an encoder of two layers behind them."""

    def __init__(self, grid: tuple[int, int] | None) -> None:
        self._grid = grid
        self._memory = (_normal(2, 7, _MEMORY, seed=5), _normal(2, 7, _MEMORY, seed=6))

    def __call__(
        self,
        mask: Tensor | None,
        *,
        rows: slice = slice(None),
        causal: bool = False,
        cache: Cache | None = None,
        memory_order: Tensor | None = None,
    ) -> StackContext:
        memory = tuple(one[rows] if memory_order is None else one[rows][..., memory_order] for one in self._memory)
        return StackContext(mask, causal=causal, memory=memory, grid=self._grid, cache=cache)


def _layer(operation: Operation, place: Place, width: int) -> Layer:
    if place == "branch":
        return Cell(width, (Junction(Branch(0, operation, width, norm=True), Branch(0, Identity(), width)),))
    mixer = operation if place == "mixer" else Identity()
    return Block(width, mixer, (24,), cross=operation if place == "cross" else None)


def _card(operation: Operation, place: Place, width: int, *others: Operation, causal: bool = False) -> Card:
    """Make a small design with the operation, and others like it in layers of their own, at a place."""
    layers = tuple(_layer(one, place, width) for one in (operation, *others))
    positions: Positions = "relative" if operation.relative_axes else "none"
    table: Embedding = TokenEmbedding(_WORDS, width, positions=positions)
    if operation.relative_axes == 2:
        table = PatchEmbedding(12, 4, width, positions=positions)
    stack = Stack(table, layers, causal=causal)
    if not operation.memory_layers:
        return Card(decoder=stack) if causal else Card(stack)
    below = Block(width, Attention(2, width // 2), (24,))
    encoder = Stack(TokenEmbedding(_WORDS, width), (below,) * operation.memory_layers)
    return Card(encoder, Stack(table, layers, causal=True))


def _grid(operation: Operation) -> tuple[int, int] | None:
    return (3, 0) if operation.relative_axes == 2 else None  # nine tokens


def _parts_of(card: Card) -> list[ElasticPart]:
    """List the elastic fields of the operation that a card is made for."""
    return [part for part in elastic_parts(card.stacks[-1].layers[0]) if part.field]


def _resized(factor: Factor, part: ElasticPart, smaller: Card) -> Factor:
    """Give a factor the size that it has in the smaller design, if it is of the part's group."""
    if factor.group != part.group:
        return factor
    found = {one.name: one.most for one in _parts_of(smaller)}
    return factor._replace(size=found[part.name])


def _cut_by_hand(weight: Tensor, given: Declared, wanted: Declared) -> Tensor:
    """Read a smaller tensor out of a larger one by its declared axes."""
    for axis, (had, has) in enumerate(zip(given.axes, wanted.axes, strict=True)):
        weight = weight.reshape(*weight.shape[:axis], *(one.size for one in had), *weight.shape[axis + 1 :])
        for place, (one, other) in enumerate(zip(had, has, strict=True), axis):
            spare = one.size - other.size
            assert spare == 0 or (spare > 0 and one.cut != "whole"), f"{wanted.name}: {other} is not within {one}"
            weight = weight.narrow(place, spare // 2 if one.cut == "centred" else 0, other.size)
        weight = weight.flatten(axis, axis + len(had) - 1)
    return weight


def _strong(module: nn.Module) -> Any:
    """Give a module large and exact weights, so that no part of it is idle."""
    generator = _generator(0)
    with torch.no_grad():
        for parameter in module.double().eval().parameters():
            parameter.normal_(0.0, 0.3, generator=generator)
    return module


def _inputs(stack: Stack, batch: int, device: str = "cpu", seed: int | None = None) -> Tensor:
    """Give zeros, or with a seed random tokens and pictures."""
    if isinstance(stack.embedding, PatchEmbedding):
        shape = (batch, 3, stack.embedding.image, stack.embedding.image)
        return torch.zeros(shape, device=device) if seed is None else _normal(*shape, seed=seed)
    if seed is None:
        return torch.zeros(batch, _TOKENS, dtype=torch.long, device=device)
    return torch.randint(_WORDS, (batch, _TOKENS), generator=_generator(seed))


def _normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=_generator(seed), dtype=torch.float64)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _close(left: Tensor, right: Tensor) -> bool:
    return bool((left - right).abs().max() <= 1e-9 * max(1.0, float(right.abs().max())))
