"""Find the transformer that fits a task, a data set and a device.

The front door is small and light: names are imported when first used, and `import formwright` alone loads neither numpy
nor torch. Where transformers is in use, its Auto classes know the models of this package.
"""

import importlib
from typing import TYPE_CHECKING, Any

from formwright.core.after_import import after_import

if TYPE_CHECKING:
    from formwright.arch.card import Card as Card
    from formwright.core.errors import FormwrightError as FormwrightError
    from formwright.space.space import Space as Space
    from formwright.space.zoo import load_card as load_card
    from formwright.space.zoo import load_space as load_space

__version__ = "0.1.0"

_HOMES = {
    "Card": "formwright.arch.card",
    "FormwrightError": "formwright.core.errors",
    "Space": "formwright.space.space",
    "load_card": "formwright.space.zoo",
    "load_space": "formwright.space.zoo",
}
__all__ = ["Card", "FormwrightError", "Space", "__version__", "load_card", "load_space"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


after_import("transformers.models.auto.configuration_auto", "formwright.nn.hf.auto_config:register")
after_import("transformers.models.auto.modeling_auto", "formwright.nn.hf.auto_models:register")
after_import("transformers.models.auto.image_processing_auto", "formwright.nn.hf.auto_images:register")
