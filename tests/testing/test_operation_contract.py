"""Our own operations keep the contract, and the contract notices broken ones."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest
import torch
from tests.nn.cases import BRANCHES, CROSSES, MIXERS
from tests.supernet.experts import Experts, experts_installed

from formwright.arch import ops
from formwright.arch.discover import all_operations
from formwright.arch.tensors import Factor, Product
from formwright.nn.cuts import Piece
from formwright.nn.operations.attention import join_heads
from formwright.testing.operation_contract import OperationContract


class Own(OperationContract):
    KIND: ClassVar[type[ops.Operation]]
    test_it_exports_to_onnx = pytest.mark.long(pytest.mark.timeout(300)(OperationContract.test_it_exports_to_onnx))

    def examples(self) -> Sequence[ops.Operation]:
        known = {*MIXERS.values(), *BRANCHES.values(), *CROSSES.values()}
        return sorted((one for one in known if type(one) is self.KIND), key=repr)


class TestAttention(Own):
    KIND = ops.Attention

    def examples(self) -> Sequence[ops.Operation]:
        return [*super().examples(), ops.Attention(2, 8, relative=ops.Relative(6, axes=2, values=True))]


class TestCrossAttention(Own):
    KIND = ops.CrossAttention


class TestTransform(Own):
    KIND = ops.Transform


class TestDynamicConvolution(Own):
    KIND = ops.DynamicConvolution

    def macs_beyond(self, operation: ops.Operation, tokens: int) -> int:
        """Count kernels laid out over all tokens; the product is the position term's own, where there is one."""
        assert isinstance(operation, ops.DynamicConvolution)
        spread = 0 if operation.relative else tokens
        return operation.heads * operation.head_width * tokens * (spread - operation.kernel)


class TestSeparableConvolution(Own):
    KIND = ops.SeparableConvolution


class TestLightweightConvolution(Own):
    KIND = ops.LightweightConvolution


class TestConvolution(Own):
    KIND = ops.Convolution


class TestGatedLinearUnit(Own):
    KIND = ops.GatedLinearUnit


class TestOpGraph(Own):
    KIND = ops.OpGraph


class TestIdentity(Own):
    KIND = ops.Identity

    def test_cards_are_read_drawn_and_told_apart(self) -> None:
        """Leave this out: a graph with nothing in it has no nodes."""


class TestExperts(OperationContract):
    """An operation of another package, with a group of its own."""

    @pytest.fixture(autouse=True)
    def _installed(self) -> Iterator[None]:
        with experts_installed():
            yield

    test_it_exports_to_onnx = pytest.mark.long(pytest.mark.timeout(300)(OperationContract.test_it_exports_to_onnx))

    def examples(self) -> Sequence[ops.Operation]:
        return [Experts(3, 4), Experts(1, 2)]


def test_every_operation_of_ours_is_tested() -> None:
    assert {kind.KIND for kind in Own.__subclasses__()} == set(all_operations().values())


def fewer(tensors: Any) -> Any:
    return lambda *given: list(tensors(*given))[:-1]


def width_first(heads: int, head_width: int, packed: int = 1) -> Any:
    return Factor(head_width, "head width"), Factor(heads, "heads")


def centred(size: int, group: str = "", cut: Any = "leading") -> Factor:
    return Factor(size, group, "centred" if cut == "whole" else cut)


def from_the_end(given: Factor, wanted: Factor, start: Any) -> Piece:
    return Piece(given.size, wanted.size, given.size - wanted.size)


def running_sum_of_experts(self: Any, x: torch.Tensor, context: Any) -> torch.Tensor:
    inner = torch.tanh(self.inner(x)).unflatten(-1, (self.members, -1)) * self.gate(x).sigmoid()[..., None]
    found: torch.Tensor = self.output(inner.cumsum(-2).flatten(-2))
    return found


def dearer_when_smaller(self: Any, width: int, output: int, tokens: int, memory: Any) -> Iterator[Product]:
    yield Product("map", (tokens, width, 12 // self.experts))


class BareTransform(OperationContract):
    """A transform of any width."""

    def examples(self) -> Sequence[ops.Operation]:
        return [ops.Transform("dft")]


CONVOLUTION, ATTENTION = "formwright.nn.operations.convolution", "formwright.nn.operations.attention"
ANY_ORDER = "test_members_of_a_group_and_the_hidden_size_may_be_put_into_any_order"
UNORDERED = {"formwright.arch.ops.Transform.ordered": False}
NO_ORDER = "test_the_numbers_of_a_vector_have_no_order_unless_the_operation_says_so"
PLANTED: dict[str, tuple[type[OperationContract], str, dict[str, Any]]] = {
    "a tensor is not declared": (
        TestConvolution, "test_what_is_built_is_what_is_declared",
        {"formwright.arch.ops.Convolution.tensors": fewer(ops.Convolution.tensors)},
    ),
    "a product is not declared": (
        TestSeparableConvolution, "test_the_products_that_run_are_those_declared",
        {"formwright.arch.ops.SeparableConvolution.products": fewer(ops.SeparableConvolution.products)},
    ),
    "padding is seen": (
        TestConvolution, "test_padding_changes_no_real_token",
        {"formwright.nn.stack_context.StackContext.real": lambda self, x: x},
    ),
    "heads must be equal": (
        TestAttention, "test_a_smaller_design_reads_its_weights_out_of_a_larger_one",
        {"formwright.arch.ops.Attention.kind": lambda self, output: (self.heads,)},
    ),
    "forms look alike": (
        TestConvolution, "test_cards_are_read_drawn_and_told_apart",
        {f"formwright.arch.{place}.node_label": lambda *_: "node" for place in ("operations.base", "graph")},
    ),
    "later tokens are seen": (
        TestGatedLinearUnit, "test_a_causal_operation_sees_no_later_token_and_reads_on",
        {f"{CONVOLUTION}.GatedUnit.forward": lambda self, x, context: self.value(x) + x.mean(1, keepdim=True)},
    ),
    "numbers are read in a fixed order": (
        TestConvolution, NO_ORDER,
        {f"{CONVOLUTION}.pad_tokens": lambda x, kernel, _: torch.cat((x.cumsum(-1), x[:, 1:kernel]), 1)},
    ),
    "numbers of a layer are read in a fixed order": (
        TestSeparableConvolution, ANY_ORDER,
        {f"{CONVOLUTION}.StackedSeparable.forward": lambda self, x, context: self.parts[0](x.cumsum(-1), context)},
    ),
    "an encoder's numbers are read in a fixed order": (
        TestCrossAttention, NO_ORDER,
        {f"{ATTENTION}.EncoderAttention._packed":
         lambda self, memory: self.key_value(memory[-1].cumsum(-1)).unflatten(-1, (self.heads, 2, self.head_width))},
    ),
    "a fixed order is not declared": (BareTransform, NO_ORDER, UNORDERED),
    "a layer's fixed order is not declared": (BareTransform, ANY_ORDER, UNORDERED),
    "heads are declared the wrong way round": (
        TestDynamicConvolution, ANY_ORDER, {"formwright.arch.operations.convolution.in_heads": width_first},
    ),
    "heads have a fixed order": (
        TestOpGraph, ANY_ORDER, {"formwright.nn.operations.op_graph.join_heads": lambda x: join_heads(x.cumsum(1))},
    ),
    "a whole kernel is declared to be elastic": (
        TestDynamicConvolution, "test_an_elastic_field_changes_the_size_of_its_group_and_nothing_else",
        {"formwright.arch.operations.convolution.Factor": centred,
         "formwright.arch.ops.DynamicConvolution.ELASTIC": {"kernel": "kernel"}},
    ),
    "an elastic field changes two groups": (
        TestLightweightConvolution, "test_an_elastic_field_changes_the_size_of_its_group_and_nothing_else",
        {"formwright.arch.ops.LightweightConvolution.ELASTIC": {"heads": "heads"},
         "formwright.arch.ops.LightweightConvolution.faults": lambda *_: iter(())},
    ),
    "a group has a fixed order": (
        TestExperts, ANY_ORDER, {"tests.supernet.experts.ExpertsModule.forward": running_sum_of_experts},
    ),
    "fewer members take longer": (
        TestExperts, "test_its_elastic_parts_are_measured_and_added_up",
        {"tests.supernet.experts.Experts.products": dearer_when_smaller},
    ),
    "another place is read": (
        TestSeparableConvolution, "test_a_smaller_design_reads_its_weights_out_of_a_larger_one",
        {"formwright.nn.cuts._piece": from_the_end},
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", PLANTED)
def test_the_contract_notices_a_planted_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kit, test, patches = PLANTED[fault]
    unusual = type("Unusual", (kit,), {"width": 24 + 16 * list(PLANTED).index(fault)})()  # nothing of it is cached
    for place, other in patches.items():
        monkeypatch.setattr(place, other)
    with pytest.raises(AssertionError):
        getattr(unusual, test)()
