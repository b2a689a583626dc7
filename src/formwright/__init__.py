"""Find the transformer that fits a task, a data set and a device.

The front door is small and light: names are imported when first used, and `import formwright` alone loads neither numpy
nor torch. Where transformers is in use, its Auto classes know the models of this package.
"""

import importlib
from typing import TYPE_CHECKING, Any

from formwright.core.after_import import after_import

if TYPE_CHECKING:
    from formwright import recipes as recipes
    from formwright.api import Study as Study
    from formwright.api import compress as compress
    from formwright.api import resume as resume
    from formwright.api import run as run
    from formwright.api import search as search
    from formwright.api import train as train
    from formwright.arch.card import Card as Card
    from formwright.core.errors import FormwrightError as FormwrightError
    from formwright.pipeline.pipeline import Pipeline as Pipeline
    from formwright.result import Result as Result
    from formwright.space.combinators import Choice as Choice
    from formwright.space.combinators import Record as Record
    from formwright.space.combinators import Switch as Switch
    from formwright.space.repeat import Repeat as Repeat
    from formwright.space.space import Space as Space
    from formwright.space.zoo import load_card as load_card
    from formwright.space.zoo import load_space as load_space

__version__ = "0.1.0"

_NAMES = {
    "formwright.api": "Study compress resume run",
    "formwright.arch.card": "Card",
    "formwright.core.errors": "FormwrightError",
    "formwright.pipeline.pipeline": "Pipeline",
    "formwright.result": "Result",
    "formwright.space.combinators": "Choice Record Switch",
    "formwright.space.repeat": "Repeat",
    "formwright.space.space": "Space",
    "formwright.space.zoo": "load_card load_space",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
_PACKAGES = ("recipes", "search", "train")  # the last two are functions as well
__all__ = [
    "Card", "Choice", "FormwrightError", "Pipeline", "Record", "Repeat", "Result", "Space", "Study", "Switch",
    "__version__", "compress", "load_card", "load_space", "recipes", "resume", "run", "search", "train",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


after_import("transformers.models.auto.configuration_auto", "formwright.nn.hf.auto_config:register")
after_import("transformers.models.auto.modeling_auto", "formwright.nn.hf.auto_models:register")
after_import("transformers.models.auto.image_processing_auto", "formwright.nn.hf.auto_images:register")
after_import("transformers.models.auto.feature_extraction_auto", "formwright.nn.hf.auto_frames:register")
