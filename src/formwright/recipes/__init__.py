"""Published methods by name: one file each, which composes a space, a searcher, an evaluator and a training.

Other packages add theirs by an entry point.
"""

from formwright.core.registry import Registry
from formwright.recipes.recipe import Recipe

RECIPES: Registry[Recipe] = Registry(
    "recipe",
    {
        "flexibert": "formwright.recipes.flexibert:FLEXIBERT",
        "autobert-zero": "formwright.recipes.autobert_zero:AUTOBERT_ZERO",
    },
    "formwright.recipes",
    Recipe,
)

__all__ = ["RECIPES", "Recipe"]
