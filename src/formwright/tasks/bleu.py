"""BLEU, as sacrebleu computes it."""

from collections.abc import Sequence

from formwright.core.errors import IllegalInput
from formwright.core.extras import need

_EXTRA = "translation"


def check_bleu() -> None:
    """Raise `MissingExtra` where translations could not be scored in the end."""
    need("sacrebleu", _EXTRA)


def bleu(translations: Sequence[str], references: Sequence[str]) -> float:
    """Give the BLEU of a corpus, from 0 to 100: sacrebleu's own, cased, with tokens `13a` and one reference each."""
    if len(translations) != len(references) or not references:
        raise IllegalInput(
            f"BLEU needs as many translations as references, not {len(translations)} and {len(references)}"
        )
    found = need("sacrebleu", _EXTRA).corpus_bleu(list(translations), [list(references)])
    return float(found.score)


def same_text(translations: Sequence[str], references: Sequence[str]) -> float:
    """Give the share of translations that are, letter by letter, what was wanted."""
    rows = same_text_rows(translations, references)
    return sum(rows) / len(rows)


def same_text_rows(translations: Sequence[str], references: Sequence[str]) -> list[float]:
    """Give 1 for each translation that is, letter by letter, what was wanted, and 0 for the others."""
    if len(translations) != len(references) or not references:
        raise IllegalInput(f"as many translations as references are compared, not {len(translations)}")
    return [float(one == other) for one, other in zip(translations, references, strict=True)]
