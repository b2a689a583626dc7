"""AutoTinyBERT (Yin et al., 2021): small BERTs with the same sizes in every layer.

Ranges and steps are those of the authors' released searcher: 1 to 8 layers, width 128 to 768 by 16, feed-forward 128 to
3072 by 32. Trained on masked words, a design has 1 to 12 heads of 64; trained by distillation (`-kd`), 12 heads whose
queries, keys and values are 180 to 768 wide together, by 12. The published model S1 lies on neither grid. The nano
spaces are ours.
"""

from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.space import Choice, Fields, Record, Space
from formwright.space.zoo.bert import VOCABULARY


def small_bert(tokens: TokenEmbedding, layers: int, attention: Attention, feed_forward: int) -> Card:
    block = Block(tokens.width, attention, (feed_forward,))
    return Card(encoder=Stack(tokens, (block,) * layers), pooler=True)


@dataclass(frozen=True)
class SizeGrid:
    """The sizes of a pair of spaces; `heads` counts those of the second space, `qkv` is what they have together."""

    layers: range
    hidden: range
    feed_forward: range
    head_width: int
    heads: int
    qkv: range
    vocabulary: int
    length: int = 512

    def spaces(self, suffix: str) -> tuple[Space, Space]:
        """Make the space of masked words and that of distillation."""
        shape = {"layers": self.layers, "hidden": self.hidden}
        names = (f"autotinybert{suffix}", f"autotinybert-kd{suffix}")
        free = ({"heads": range(1, self.heads + 1)}, {"qkv": self.qkv})
        details = (f"heads of {self.head_width}", f"{self.heads} heads of any width")
        first, second = (
            Space(
                name,
                Record.of(
                    **{
                        key: Choice(tuple(one))
                        for key, one in {**shape, **own, "feed_forward": self.feed_forward}.items()
                    }
                ),
                self._card,
                f"small BERTs with equal layers, {detail} (AutoTinyBERT, Yin et al. 2021)",
            )
            for name, own, detail in zip(names, free, details, strict=True)
        )
        return first, second

    def _card(self, design: Fields) -> Card:
        tokens = TokenEmbedding(self.vocabulary, design.hidden, types=2, length=self.length)
        free = (
            Attention(self.heads, design.qkv // self.heads)
            if "qkv" in design
            else Attention(design.heads, self.head_width)
        )
        return small_bert(tokens, design.layers, free, design.feed_forward)


_PUBLISHED = SizeGrid(range(1, 9), range(128, 769, 16), range(128, 3073, 32), 64, 12, range(180, 769, 12), VOCABULARY)
_SMALL = SizeGrid(range(1, 5), range(32, 129, 16), range(64, 513, 32), 16, 4, range(16, 65, 8), 1_000, 128)
AUTOTINYBERT, KD = _PUBLISHED.spaces("")
NANO, KD_NANO = _SMALL.spaces("-nano")

S1 = small_bert(TokenEmbedding(VOCABULARY, 564, types=2), 5, Attention(8, 64), 1_054)
