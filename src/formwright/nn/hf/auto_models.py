"""Make transformers' `AutoModel` and its kin know our models."""

import transformers

from formwright.nn.hf import auto_config, models
from formwright.nn.hf.config import FormwrightConfig
from formwright.nn.hf.config_fields import AUTO_CLASSES


def register() -> None:
    auto_config.register()
    for name, auto_class in AUTO_CLASSES.items():
        getattr(transformers, auto_class).register(FormwrightConfig, getattr(models, name), exist_ok=True)
