"""Published methods by name: one file each, which composes a space, a searcher, an evaluator and a training.

Other packages add theirs by an entry point.
"""

from formwright.core.registry import Registry
from formwright.recipes.recipe import Recipe
from formwright.recipes.summary import Summary

RECIPES: Registry[Recipe] = Registry(
    "recipe",
    {
        "flexibert": "formwright.recipes.flexibert:FLEXIBERT",
        "autobert-zero": "formwright.recipes.autobert_zero:AUTOBERT_ZERO",
        "evolved-transformer": "formwright.recipes.evolved_transformer:EVOLVED_TRANSFORMER",
    },
    "formwright.recipes",
    Recipe,
)

# methods that compress a pretrained model: the command asks for them itself, and lists name them
COMPRESSIONS: Registry[Summary] = Registry(
    "recipe of compression",
    {"eftnas": "formwright.recipes.eftnas:SUMMARY", "nas-bert": "formwright.recipes.nas_bert:SUMMARY"},
    "formwright.compressions",
    Summary,
)

__all__ = ["COMPRESSIONS", "RECIPES", "Recipe", "Summary"]
