"""DynaBERT (Hou et al., 2020): a model with a share of the heads and channels of all layers, and a share of the layers.

The published multipliers of width are 0.25, 0.5, 0.75 and 1, those of depth 0.5, 0.75 and 1: twelve designs.
"""

from formwright.space.multiples import multiples
from formwright.space.zoo.bert import BASE

DYNABERT = multiples(
    BASE,
    widths=(0.25, 0.5, 0.75, 1.0),
    depths=(0.5, 0.75, 1.0),
    name="dynabert",
    about="uniform shares of heads, channels and layers (DynaBERT, Hou et al. 2020)",
)
