from types import SimpleNamespace
from typing import Any

from tests.pipeline.compressions import BERT

from formwright.cost import macs
from formwright.pipeline.draw_multiples import DrawMultiples


def test_the_smallest_version_has_the_least_width_and_the_least_depth() -> None:
    teacher: Any = SimpleNamespace(card=lambda _: BERT, training=SimpleNamespace(length=16))
    stage, run = DrawMultiples(teacher, widths=(1.0, 0.5), depths=(0.5, 1.0)), None
    small: Any = stage.smallest(run)  # type: ignore[arg-type]
    whole = BERT.encoder.layers
    assert len(small.encoder.layers) == len(whole) // 2
    assert {layer.mixer.heads for layer in small.encoder.layers} == {whole[0].mixer.heads // 2}
    assert stage.smallest_share(run) == macs(small, 16) / macs(BERT, 16)  # type: ignore[arg-type]
