import pytest
from tests.pipeline.compressions import BERT

from formwright.core.errors import IllegalInput
from formwright.space.multiples import multiples


def test_every_layer_keeps_a_head_and_a_channel_and_every_stack_a_layer() -> None:
    space = multiples(BERT, (0.01, 1.0), (0.01, 1.0))
    (layer,) = space.card(space.from_json({"width": 0.01, "depth": 0.01})).encoder.layers
    assert (layer.mixer.heads, layer.feed_forward) == (1, (1,))
    for widths, depths in (((), (1.0,)), ((1.5,), (1.0,)), ((1.0,), (0.0,))):
        with pytest.raises(IllegalInput, match="multipliers"):
            multiples(BERT, widths, depths)
