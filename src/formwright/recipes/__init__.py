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
        "dynabert": "formwright.recipes.dynabert:dynabert",
        "spos": "formwright.recipes.spos:spos",
        "ofa": "formwright.recipes.ofa:ofa",
        "hat": "formwright.recipes.hat:hat",
        "linas": "formwright.recipes.linas:linas",
        "autoformer": "formwright.recipes.autoformer:autoformer",
        "supershaper": "formwright.recipes.supershaper:supershaper",
        "autotinybert": "formwright.recipes.autotinybert:autotinybert",
        "autotinybert-kd": "formwright.recipes.autotinybert:autotinybert_kd",
        "magic": "formwright.recipes.magic:magic",
        "fast-bert-search": "formwright.recipes.fast_bert_search:fast_bert_search",
        "lighthubert": "formwright.recipes.lighthubert:lighthubert",
    },
    "formwright.recipes",
    Recipe,
)

__all__ = ["RECIPES", "Recipe", "recipe"]
