"""Our own operations keep the contract, and the contract notices broken ones."""

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from tests.nn.cases import BRANCHES, CROSSES, MIXERS

from formwright.arch import ops
from formwright.arch.discover import all_operations
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


def test_every_operation_of_ours_is_tested() -> None:
    assert {kind.KIND for kind in Own.__subclasses__()} == set(all_operations().values())


def fewer(tensors: Any) -> Any:
    return lambda *given: list(tensors(*given))[:-1]


PLANTED: dict[str, tuple[type[OperationContract], str, str, Any, str]] = {
    "a tensor is not declared": (
        TestConvolution, "formwright.arch.ops.Convolution.tensors", "test_what_is_built_is_what_is_declared",
        fewer(ops.Convolution.tensors), "",
    ),
    "a product is not declared": (
        TestSeparableConvolution, "formwright.arch.ops.SeparableConvolution.products",
        "test_the_products_that_run_are_those_declared", fewer(ops.SeparableConvolution.products), "",
    ),
    "padding is seen": (
        TestConvolution, "formwright.nn.stack_context.StackContext.real", "test_padding_changes_no_real_token",
        lambda self, x: x, "",
    ),
    "heads must be equal": (
        TestAttention, "formwright.arch.ops.Attention.kind",
        "test_a_smaller_design_reads_its_weights_out_of_a_larger_one", lambda self, output: (self.heads,), "",
    ),
    "forms look alike": (
        TestConvolution, "formwright.arch.operations.base.node_label", "test_cards_are_read_drawn_and_told_apart",
        lambda *_: "node", "formwright.arch.graph.node_label",
    ),
    "later tokens are seen": (
        TestGatedLinearUnit, "formwright.nn.operations.convolution.GatedUnit.forward",
        "test_a_causal_operation_sees_no_later_token_and_reads_on",
        lambda self, x, context: self.value(x) + x.mean(1, keepdim=True), "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", PLANTED)
def test_the_contract_notices_a_planted_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kit, place, test, other, also = PLANTED[fault]
    unusual = type("Unusual", (kit,), {"width": 24 + 16 * list(PLANTED).index(fault)})()  # nothing of it is cached
    for name in filter(None, (place, also)):
        monkeypatch.setattr(name, other)
    with pytest.raises(AssertionError):
        getattr(unusual, test)()
