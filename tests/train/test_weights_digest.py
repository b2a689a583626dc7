import torch

from formwright.train.weights_digest import weights_digest


def test_weights_are_told_apart_by_name_type_and_value() -> None:
    zero = torch.zeros(2, 3)
    different = [
        {"a": zero},
        {"b": zero},
        {"a": zero.reshape(3, 2)},
        {"a": zero.bfloat16()},
        {"a": zero + 1},
        {"a": zero, "b": torch.tensor(1.0)},
    ]
    assert len({weights_digest(weights) for weights in different}) == len(different)
    assert weights_digest({"b": zero, "a": zero.T}) == weights_digest({"a": zero.T.contiguous(), "b": zero})
