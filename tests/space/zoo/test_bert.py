from formwright.arch.ops import Attention
from formwright.cost import macs, params_attention
from formwright.space.zoo import bert


def test_published_numbers_of_bert_base() -> None:
    assert f"{macs(bert.BASE, 128) / 1e9:.3f}" == "11.174"
    scores = 12 * 2 * 128**2 * 768
    pooler = 768**2
    assert f"{(macs(bert.BASE, 128) - scores - pooler) / 1e9:.3f}" == "10.872"
    assert f"{macs(bert.bert(6, 768), 128) / 1e9:.3f}" == "5.587"
    assert params_attention(bert.BASE) == 12 * 3 * (768 * 768 + 768) == 21_261_312
    assert bert.bert(3, 320).stacks[0].layers[0].mixer == Attention(5, 64)
