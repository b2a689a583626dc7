"""Published methods by name: each a function of one file that returns a pipeline of parts.

Other packages add theirs by an entry point in the group `formwright.recipes`.
"""

from formwright.core.registry import Registry
from formwright.recipes.recipe import Recipe, recipe

RECIPES: Registry[Recipe] = Registry(
    "recipe",
    {
        "plain": "formwright.recipes.plain:plain",
        "flexibert": "formwright.recipes.flexibert:flexibert",
        "autobert-zero": "formwright.recipes.autobert_zero:autobert_zero",
        "nas-bert": "formwright.recipes.nas_bert:nas_bert",
        "evolved-transformer": "formwright.recipes.evolved_transformer:evolved_transformer",
        "eftnas": "formwright.recipes.eftnas:eftnas",
        "spos": "formwright.recipes.spos:spos",
        "ofa": "formwright.recipes.ofa:ofa",
    },
    "formwright.recipes",
    Recipe,
)

__all__ = ["RECIPES", "Recipe", "recipe"]
