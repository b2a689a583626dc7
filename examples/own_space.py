"""Write a search space of your own: parts, a function from design to card, and a limit; then search it."""

import sys

import formwright as fw
from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, LightweightConvolution
from formwright.core.rng import derive
from formwright.cost import limit
from formwright.space import Choice, Record, Repeat, Space, Switch

layer = Record.of(
    mixer=Switch.of(attention=Choice((2, 4)), convolution=Choice((3, 7, 15))),  # a conditional: heads, or a kernel
    feed_forward=Choice((128, 256)),
)
root = Record.of(width=Choice((64, 128)), layers=Repeat(layer, times=(2, 3, 4)))


def build(design):
    blocks = []
    for choice in design.layers:
        if choice.mixer.tag == "attention":
            mixer = Attention(choice.mixer.value, design.width // choice.mixer.value)
        else:
            mixer = LightweightConvolution(kernel=choice.mixer.value, heads=4)
        blocks.append(Block(design.width, mixer, (choice.feed_forward,)))
    return Card(encoder=Stack(TokenEmbedding(1000, design.width), tuple(blocks)))


space = Space("mine", root, build).restrict(*limit("params<=4e5"))
print(space.estimate_count(derive(0)), space.card(space.sample(derive(1))).digest)

if __name__ == "__main__":
    out = sys.argv[1] if len(sys.argv) > 1 else "runs/own-space"
    settings = {"training.steps": 20, "deliver.steps": 20, "deliver.baseline": False}
    result = fw.search(space, "mini-glue/sst2", trials=4, rows=300, out=out, settings=settings)
    print(result.best.name, result.best.scores, "in", result.best.path)
