"""Write a search space of your own: parts, a function from design to card, and a limit."""

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
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
