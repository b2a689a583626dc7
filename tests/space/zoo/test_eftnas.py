import pytest

from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.cost import macs, params
from formwright.space.zoo import bert, load_card

TASKS = {"mnli": 5.651, "qnli": 5.673, "qqp": 5.632, "sst2": 5.594, "cola": 5.617, "mrpc": 5.695, "rte": 5.677}


@pytest.mark.parametrize("task", TASKS)
def test_each_is_bert_base_with_narrower_layers_and_has_the_published_size(task: str) -> None:
    card = load_card(f"eftnas-s1-{task}")
    assert round(macs(card, 128) / 1e9, 3) == TASKS[task]
    assert 66.8 <= round(params(card) / 1e6, 1) <= 67.5
    encoder, full = card.encoder, bert.BASE.encoder
    assert (encoder.embedding, len(encoder.layers)) == (full.embedding, 12)
    for layer in encoder.layers:
        assert (layer.width, layer.mixer.head_width) == (768, 64)
        assert 2 <= layer.mixer.heads <= 12
        assert 1 <= layer.feed_forward[0] <= 3072


def test_a_row_of_the_figure_is_read_in_pairs() -> None:
    encoder = load_card("eftnas-s1-mnli").encoder
    assert encoder.layers[0] == Block(768, Attention(12, 64), (3044,))
    assert encoder.layers[-1] == Block(768, Attention(4, 64), (213,))
