"""Packing query, key and value head by head, row by row."""

import torch
from tests.nn.hf.helpers import lively

from formwright.nn.hf.tensor_names import BERT, DEIT, DISTILBERT, ELECTRA, ROBERTA, VIT, packed, unpacked


def test_rows_stand_head_by_head() -> None:
    heads, width = 3, 4
    parts = [torch.randn(heads * width, 5, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]
    rows = packed(parts, heads)
    for head in range(heads):
        for part in range(3):
            for row in range(width):
                assert torch.equal(rows[(head * 3 + part) * width + row], parts[part][head * width + row])
    assert all(torch.equal(one, other) for one, other in zip(unpacked(rows, heads), parts, strict=True))


def test_names_exist_and_biases_are_packed_alike() -> None:
    parts = [torch.arange(6.0) + 10 * part for part in range(3)]
    assert packed(parts, 2).tolist() == [0, 1, 2, 10, 11, 12, 20, 21, 22, 3, 4, 5, 13, 14, 15, 23, 24, 25]
    assert [part.tolist() for part in unpacked(packed(parts, 2), 2)] == [part.tolist() for part in parts]
    known = {*lively("bert-bare").state_dict(), *lively("viewer").state_dict(), *lively("varied").state_dict()}
    outside = {name.split("encoder.", 1)[1] for name in known if "encoder." in name}
    for names in (BERT, ROBERTA, DISTILBERT, ELECTRA, VIT, DEIT):
        assert set(names.outside) <= outside
        assert len(set(names.in_layer.values())) == len(names.in_layer)
        assert len(set(names.outside.values())) == len(names.outside)
