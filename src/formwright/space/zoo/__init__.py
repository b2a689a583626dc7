"""Published spaces and designs, by name; one file for each publication. Other packages add theirs by an entry point."""

from formwright.arch.card import Card
from formwright.core.registry import Registry
from formwright.space.space import Space

_ZOO = "formwright.space.zoo"

SPACES: Registry[Space] = Registry(
    "space",
    {
        "flexibert": f"{_ZOO}.flexibert:S2",
        "flexibert-s1": f"{_ZOO}.flexibert:S1",
        "flexibert-s1star": f"{_ZOO}.flexibert:S1_STAR",
        "flexibert-nano": f"{_ZOO}.flexibert:NANO",
        "flexibert-nano-s1": f"{_ZOO}.flexibert:NANO_S1",
        "flexibert-nano-s1star": f"{_ZOO}.flexibert:NANO_S1_STAR",
        "nas-bert": f"{_ZOO}.nas_bert:NAS_BERT",
        "autoformer-nano": f"{_ZOO}.autoformer:NANO_SPACE",
        "autoformer-tiny": f"{_ZOO}.autoformer:TINY_SPACE",
        "autoformer-small": f"{_ZOO}.autoformer:SMALL_SPACE",
        "autoformer-base": f"{_ZOO}.autoformer:BASE_SPACE",
        "hat": f"{_ZOO}.hat:HAT",
        "lighthubert-small": f"{_ZOO}.lighthubert:SMALL",
        "lighthubert-base": f"{_ZOO}.lighthubert:BASE",
        "supershaper": f"{_ZOO}.supershaper:SUPERSHAPER",
        "autotinybert": f"{_ZOO}.autotinybert:AUTOTINYBERT",
        "elastic": f"{_ZOO}.elastic:BERT_BASE",
        "autobert-zero": f"{_ZOO}.autobert_zero:BASE",
        "autobert-zero-nano": f"{_ZOO}.autobert_zero:NANO",
        "evolved-transformer": f"{_ZOO}.evolved_transformer:SPACE",
        "evolved-transformer-nano": f"{_ZOO}.evolved_transformer:NANO",
    },
    "formwright.spaces",
    Space,
)


def _named(module: str, **cards: str) -> dict[str, str]:
    return {name.replace("_", "-"): f"{_ZOO}.{module}:{attribute}" for name, attribute in cards.items()}


_FLEXIBERT_INITIAL = [
    f"{family}_{size}" for family in ("bert", "fnet", "convbert") for size in ("tiny", "2_256", "4_128", "mini")
]
CARDS: Registry[Card] = Registry(
    "card",
    {
        **_named(
            "bert", **{f"bert_{size}": size.upper() for size in ("tiny", "mini", "small", "medium", "base", "large")}
        ),
        **_named(
            "flexibert",
            flexibert_mini="MINI",
            flexibert_mini_without_second_order="MINI_WITHOUT_SECOND_ORDER",
            flexibert_mini_without_heteroscedastic="MINI_WITHOUT_HETEROSCEDASTIC",
            flexibert_large="LARGE",
            **{f"flexibert_{name}": name.upper() for name in _FLEXIBERT_INITIAL},
        ),
        **_named(
            "eftnas",
            **{f"eftnas_s1_{task}": task.upper() for task in ("mnli", "qnli", "qqp", "sst2", "cola", "mrpc", "rte")},
        ),
        **_named(
            "autoformer",
            autoformer_t="TINY",
            autoformer_s="SMALL",
            autoformer_b="BASE",
            autoformer_supernet_t="SUPERNET_TINY",
        ),
        **_named("autobert_zero", autobert_zero_layer_2="LAYER_2", autobert_zero_layer_12="LAYER_12"),
        **_named(
            "translation",
            transformer_base="TRANSFORMER_BASE",
            transformer_big="TRANSFORMER_BIG",
            evolved_transformer_base="EVOLVED_BASE",
            evolved_transformer_big="EVOLVED_BIG",
            transformer_tiny="TRANSFORMER_TINY",
            evolved_transformer_tiny="EVOLVED_TINY",
            transformer_writer_tiny="TRANSFORMER_WRITER_TINY",
            evolved_transformer_writer_tiny="EVOLVED_WRITER_TINY",
        ),
    },
    "formwright.cards",
    Card,
)


def load_space(name: str) -> Space:
    return SPACES.get(name)


def load_card(name: str) -> Card:
    return CARDS.get(name)
