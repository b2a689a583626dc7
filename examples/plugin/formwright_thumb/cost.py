"""A cost: the number of layers, for limits such as `layers<=4` and goals such as `layers:min`."""

from formwright.cost import Convention

LAYERS = Convention("layers", "layers", "layers of the encoder", lambda card, length: len(card.encoder.layers))
