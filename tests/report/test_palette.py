"""The palette: a colour, a glyph and a name for everything, all of them different."""

from itertools import combinations

from tests.report.cards import MIXERS, bert_base, evolved

from formwright.arch import ops
from formwright.report.palette import luminance, swatch, swatches_of

ALL = [
    swatch(operation)
    for operation in (
        ops.Attention(1, 1),
        ops.CrossAttention(1, 1),
        ops.Transform("dft"),
        ops.DynamicConvolution(1, 1, 1),
        ops.SeparableConvolution(1),
        ops.LightweightConvolution(1, 1),
        ops.Convolution(1),
        ops.GatedLinearUnit(),
        MIXERS["op-graph"],
        ops.Identity(),
    )
]


def test_no_two_kinds_look_alike() -> None:
    for one, other in combinations(ALL, 2):
        assert one.colour != other.colour
        assert one.glyph != other.glyph
        assert one.name != other.name


def test_ink_can_be_read_on_its_colour() -> None:
    for item in ALL:
        low, high = sorted((luminance(item.colour), luminance(item.ink)))
        assert (high + 0.05) / (low + 0.05) >= 4.5, item.name


def test_luminance_runs_from_black_to_white() -> None:
    assert luminance("#000000") == 0
    assert abs(luminance("#FFFFFF") - 1) < 1e-9
    assert luminance("#00FF00") > luminance("#FF0000") > luminance("#0000FF")


def test_legend_names_what_is_used_and_nothing_else() -> None:
    assert [item.name for item in swatches_of(bert_base())] == ["self-attention"]
    assert [item.name for item in swatches_of(evolved())] == [
        "self-attention",
        "cross-attention",
        "separable convolution",
        "convolution or dense map",
        "gated linear unit",
        "identity",
    ]
