import pytest

from formwright.arch.ops import Attention
from formwright.cost import macs, params, params_attention
from formwright.space.zoo import bert, load_card


@pytest.mark.parametrize(
    ("size", "published"),
    [
        ("tiny", 4_385_920),
        ("mini", 11_170_560),
        ("small", 28_763_648),
        ("medium", 41_373_184),
        ("base", 109_482_240),
        ("large", 335_141_888),
    ],
)
def test_published_parameters(size: str, published: int) -> None:
    assert params(load_card(f"bert-{size}")) == published


def test_published_numbers_of_bert_base() -> None:
    assert f"{macs(bert.BASE, 128) / 1e9:.3f}" == "11.174"
    scores = 12 * 2 * 128**2 * 768
    pooler = 768**2
    assert f"{(macs(bert.BASE, 128) - scores - pooler) / 1e9:.3f}" == "10.872"
    assert f"{macs(bert.bert(6, 768), 128) / 1e9:.3f}" == "5.587"
    assert params_attention(bert.BASE) == 12 * 3 * (768 * 768 + 768) == 21_261_312
    assert bert.bert(3, 320).stacks[0].layers[0].mixer == Attention(5, 64)
