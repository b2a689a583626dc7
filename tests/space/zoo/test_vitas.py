import pytest

from formwright.cost import macs
from formwright.cost.authors_counters import vitas_flops
from formwright.space.zoo import load_card


@pytest.mark.parametrize(
    ("name", "operations", "published", "own"),
    [
        ("a", 858_652_480, "858M", 833_487_568),
        ("b", 990_624_768, "1.0G", 958_618_176),
        ("c", 1_303_042_496, "1.3G", 1_265_114_864),
        ("e", 2_706_797_632, "2.7G", 2_653_906_672),
        ("f", 4_930_994_656, "4.9G", 4_898_506_168),
    ],
)
def test_published_operations(name: str, operations: int, published: str, own: int) -> None:
    card = load_card(f"vitas-{name}")
    assert (vitas_flops(card), macs(card)) == (operations, own)
    shown = f"{operations // 10**6}M" if operations < 9e8 else f"{operations / 1e9:.1f}G"
    assert shown == published
