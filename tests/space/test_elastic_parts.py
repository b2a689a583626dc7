"""What may be smaller in a layer, as operations declare it."""

from collections.abc import Iterator

import pytest
from tests.nn.cases import MIXERS
from tests.supernet.experts import Bottleneck, Experts, Lobes

from formwright.arch.layers import Block
from formwright.arch.ops import (
    Attention,
    CrossAttention,
    DynamicConvolution,
    Identity,
    Operation,
    SeparableConvolution,
    Transform,
)
from formwright.arch.tensors import Tensor
from formwright.core.errors import IllegalInput
from formwright.nn.cuts import cuts
from formwright.space.elastic_parts import elastic_parts, resized

CHANNELS, WIDTH = 64, 16


@pytest.mark.parametrize("mixer", [*MIXERS.values(), Experts(4, 3), Lobes(4, 3)], ids=repr)
def test_whatever_is_offered_reads_all_its_weights_from_the_whole(mixer: Operation) -> None:
    block = Block(WIDTH, mixer, (CHANNELS,))
    for part in elastic_parts(block):
        size = part.most - (2 if part.cut == "centred" else 1)
        if size < 1:
            continue
        whole, wanted = (dict(_named(one)) for one in (block, resized(block, {part.name: size})))
        assert wanted.keys() == whole.keys()
        assert cuts(whole, wanted, {name: name for name in wanted}).keys() == wanted.keys()
        assert sum(one.size for one in wanted.values()) < sum(one.size for one in whole.values())


def _named(block: Block) -> Iterator[tuple[str, Tensor]]:
    return ((one.name, one) for one in block.tensors(WIDTH))


def test_what_an_operation_offers_is_what_it_declares() -> None:
    def offered(mixer: Operation, cross: Operation | None = None) -> list[tuple[str, str, str, str]]:
        parts = elastic_parts(Block(WIDTH, mixer, cross=cross))
        return [(part.name, part.option, part.part, part.group) for part in parts]

    heads = ("heads", "heads", "mixer", "heads")
    assert offered(Attention(2, 4)) == [heads]
    assert offered(DynamicConvolution(5, 2, 4)) == [heads]
    assert offered(SeparableConvolution(5)) == [("kernel", "kernels", "mixer", "kernel")]
    assert offered(Experts(4, 3)) == [("mixer_experts", "mixer_experts", "mixer", "members")]
    assert offered(Lobes(4, 3)) == offered(Transform("dft")) == offered(Identity()) == []
    assert offered(Attention(2, 4), CrossAttention(2, 4)) == [heads, ("cross", "cross", "cross", "heads")]


@pytest.mark.parametrize("elastic_fields", [{"experts": "heads"}, {"channels": "members"}])
def test_a_group_that_a_field_does_not_size_is_refused(
    elastic_fields: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Experts, "ELASTIC", elastic_fields)
    (field, group) = next(iter(elastic_fields.items()))
    with pytest.raises(IllegalInput) as caught:
        elastic_parts(Block(WIDTH, Experts(7, 5)))
    assert all(fact in str(caught.value) for fact in ("experts", field, repr(group)))


def test_single_channels_are_rounded_and_members_of_several_numbers_are_not() -> None:
    parts = [part for mixer in MIXERS.values() for part in elastic_parts(Block(WIDTH, mixer, (CHANNELS, CHANNELS)))]
    assert {part.option for part in parts if part.rounded} == {"feed_forward"}
    assert {part.option for part in parts if not part.rounded} >= {"heads", "kernels"}
    cross = elastic_parts(Block(WIDTH, Identity(), cross=CrossAttention(2, 4)))
    assert [(part.option, part.rounded) for part in cross] == [("cross", False)]
    (members,) = elastic_parts(Block(WIDTH, Experts(4, 3)))
    (channels,) = elastic_parts(Block(WIDTH, Bottleneck(48)))
    assert (members.rounded, channels.rounded) == (False, True)
