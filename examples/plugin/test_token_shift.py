"""The contract kit proves the operation: tensors, products, masks, causality, shared weights, export."""

from formwright_thumb.token_shift import TokenShift

from formwright.testing.operation_contract import OperationContract


class TestTokenShift(OperationContract):
    def examples(self):
        return [TokenShift(), TokenShift(steps=3)]
