"""EFTNAS (Munoz et al., 2024): the seven sub-networks of BERT-base in Figure 4, one for each GLUE task."""

from formwright.arch.card import Card
from formwright.space.design import Fields
from formwright.space.elastic import elastic
from formwright.space.zoo.bert import BASE

_FULL = elastic(BASE, heads=range(1, 13), feed_forward=range(1, 3073), name="eftnas-s1")


def _card(row: str) -> Card:
    """Read a row of the figure: `attention/feed-forward` widths of each layer in turn; heads are 64 wide."""
    pairs = [layer.split("/") for layer in row.split()]
    layers = tuple(Fields.of(heads=int(attention) // 64, feed_forward=int(hidden)) for attention, hidden in pairs)
    return _FULL.card(Fields.of(layers=layers))


MNLI = _card(
    "768/3044 256/2465 256/1891 320/1877 640/1825 384/1790 576/1678 256/1544 256/1223 256/1277 192/345 256/213"
)
QNLI = _card("576/1708 448/1066 320/1126 768/1102 640/1067 512/2233 448/1048 448/1670 512/3072 448/772 384/609 576/205")
QQP = _card("384/3072 768/1666 320/1787 192/1791 256/1772 256/1751 768/1709 384/2980 192/1320 192/762 192/348 512/115")
SST2 = _card(
    "320/1585 256/1570 256/1775 256/1717 384/1679 768/2215 768/2786 320/2114 256/1188 192/930 128/1501 128/654"
)
COLA = _card("512/949 704/959 320/2733 448/1096 640/2771 768/1774 768/1719 640/1014 576/670 256/436 384/348 320/370")
MRPC = _card("768/2120 704/2097 768/928 768/1494 768/3072 768/787 640/672 512/579 576/409 320/291 384/678 192/308")
RTE = _card("576/608 576/3072 704/589 768/542 704/576 768/589 768/3072 576/537 704/562 768/453 512/376 640/424")
