import pytest

from formwright.arch.layers import Block
from formwright.arch.ops import Attention, Identity, SeparableConvolution
from formwright.space import Fields
from formwright.space.zoo.chains import candidate, kind_of
from formwright.space.zoo.magic import FAST_BERT_NANO, NANO, PARTS, fast_bert


@pytest.mark.parametrize(
    ("operation", "kind", "layer"),
    [
        ("attention", "attention", Block(64, Attention(4, 16))),
        ("attention-3", "attention", Block(64, Attention(3, 16))),
        ("feed-forward", "feed-forward", Block(64, Identity(), (256,))),
        ("feed-forward-128", "feed-forward", Block(64, Identity(), (128,))),
        ("separable-5", "separable", Block(64, SeparableConvolution(5))),
        ("identity", "identity", Block(64, Identity())),
    ],
)
def test_operations_are_layers(operation: str, kind: str, layer: Block) -> None:
    assert (kind_of(operation), candidate(operation, 64, 16)) == (kind, layer)


def test_chains_of_any_menu() -> None:
    assert (NANO.count(), FAST_BERT_NANO.count()) == (5**6, len(PARTS) ** 6)
    narrow = fast_bert(("attention-1", "separable-3"))
    assert narrow.count() == 2**6
    design = Fields.of(layers=("attention-1", "separable-3") * 3)
    assert narrow.card(design) == FAST_BERT_NANO.card(design)
