"""TF-TAS (Zhou et al., 2022): three vision transformers of AutoFormer's spaces, found without training.

They are those of the authors' configuration files, whose sizes are not the 5.9, 22.8 and 54 million that are published.
"""

from formwright.space.zoo.autoformer import vision_transformer

T = vision_transformer(
    192, [4, 3, 3, 3, 3, 4, 4, 3, 3, 3, 4, 3, 3], [3.5, 4, 3.5, 3.5, 4, 3.5, 3.5, 3.5, 4, 4, 4, 4, 3.5]
)
S = vision_transformer(
    384, [6, 6, 6, 6, 7, 6, 5, 7, 5, 5, 5, 7, 6, 7], [4, 4, 4, 3, 4, 3, 3, 3.5, 4, 3.5, 3.5, 4, 3, 3.5]
)
B = vision_transformer(576, [9, *[10] * 6, 9, 9, 10, *[9] * 5], [3, 3.5, 4, 4, 3, 4, 3, 3, 3.5, 3, 3, 3.5, 4, 3, 4])
