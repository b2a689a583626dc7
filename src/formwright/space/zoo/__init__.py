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
        "autoformer-nano-28": f"{_ZOO}.autoformer:NANO_28_SPACE",
        "autoformer-nano-32": f"{_ZOO}.autoformer:NANO_32_SPACE",
        "autoformer-tiny": f"{_ZOO}.autoformer:TINY_SPACE",
        "autoformer-small": f"{_ZOO}.autoformer:SMALL_SPACE",
        "autoformer-base": f"{_ZOO}.autoformer:BASE_SPACE",
        "hat": f"{_ZOO}.hat:HAT",
        "hat-nano": f"{_ZOO}.hat:NANO",
        "lighthubert-nano": f"{_ZOO}.lighthubert:NANO",
        "lighthubert-small": f"{_ZOO}.lighthubert:SMALL",
        "lighthubert-base": f"{_ZOO}.lighthubert:BASE",
        "supershaper": f"{_ZOO}.supershaper:SUPERSHAPER",
        "supershaper-nano": f"{_ZOO}.supershaper:NANO",
        "autotinybert": f"{_ZOO}.autotinybert:AUTOTINYBERT",
        "autotinybert-kd": f"{_ZOO}.autotinybert:KD",
        "autotinybert-nano": f"{_ZOO}.autotinybert:NANO",
        "autotinybert-kd-nano": f"{_ZOO}.autotinybert:KD_NANO",
        "lts": f"{_ZOO}.gpt:LTS",
        "lts-nano": f"{_ZOO}.gpt:LTS_NANO",
        "gpt-nano": f"{_ZOO}.gpt:NANO",
        "magic-nano": f"{_ZOO}.magic:NANO",
        "fast-bert-nano": f"{_ZOO}.fast_bert:NANO",
        "elastic": f"{_ZOO}.bert:ELASTIC",
        "dynabert": f"{_ZOO}.dynabert:DYNABERT",
        "autobert-zero": f"{_ZOO}.autobert_zero:BASE",
        "autobert-zero-nano": f"{_ZOO}.autobert_zero:NANO",
        "evolved-transformer": f"{_ZOO}.evolved_transformer:SPACE",
        "evolved-transformer-nano": f"{_ZOO}.evolved_transformer:NANO",
    },
    "formwright.spaces",
    Space,
)


def _named(module: str, prefix: str, *names: str) -> dict[str, str]:
    return {f"{prefix}{name}".replace("_", "-"): f"{_ZOO}.{module}:{name.upper()}" for name in names}


CARDS: Registry[Card] = Registry(
    "card",
    {
        **_named("bert", "bert-", "tiny", "mini", "small", "medium", "base", "large"),
        **_named("flexibert", "flexibert-", "mini", "mini_without_second_order", "mini_without_heteroscedastic"),
        **_named("flexibert", "flexibert-", "large", "bert_tiny", "bert_2_256", "bert_4_128", "bert_mini"),
        **_named("flexibert", "flexibert-", "fnet_tiny", "fnet_2_256", "fnet_4_128", "fnet_mini"),
        **_named("flexibert", "flexibert-", "convbert_tiny", "convbert_2_256", "convbert_4_128", "convbert_mini"),
        **_named("eftnas", "eftnas-s1-", "mnli", "qnli", "qqp", "sst2", "cola", "mrpc", "rte"),
        "autoformer-t": f"{_ZOO}.autoformer:TINY",
        "autoformer-s": f"{_ZOO}.autoformer:SMALL",
        "autoformer-b": f"{_ZOO}.autoformer:BASE",
        "autoformer-supernet-t": f"{_ZOO}.autoformer:SUPERNET_TINY",
        **_named("plain", "", "vit_nano_8", "vit_nano_28", "vit_nano_32", "frames_nano"),
        **_named("tf_tas", "tf-tas-", "t", "s", "b"),
        **_named("vitas", "vitas-", "a", "b", "c", "e", "f"),
        **{f"supershaper-{size}m": f"{_ZOO}.supershaper:M{size}" for size in (37, 47, 56, 61, 87, 91)},
        "autotinybert-s1": f"{_ZOO}.autotinybert:S1",
        **_named("gpt", "", "lts_1m", "lts_3m", "lts_4m", "lts_6m", "lts_7m", "lts_9m"),
        **_named("gpt", "", "lts_13m", "lts_19m", "lts_25m", "lts_30m", "lts_33m", "lts_50m"),
        **_named("autobert_zero", "autobert-zero-", "layer_2", "layer_12"),
        **_named(
            "translation", "", "transformer_base", "transformer_big", "transformer_tiny", "transformer_writer_tiny"
        ),
        **_named("translation", "", "evolved_transformer_base", "evolved_transformer_big", "evolved_transformer_tiny"),
        **_named("translation", "", "transformer_writer_tiny", "evolved_transformer_writer_tiny"),
    },
    "formwright.cards",
    Card,
)


def load_space(name: str) -> Space:
    return SPACES.get(name)


def load_card(name: str) -> Card:
    return CARDS.get(name)
