"""Make transformers' `AutoConfig` know our configurations."""

from transformers import AutoConfig

from formwright.nn.hf.config import FormwrightConfig


def register() -> None:
    AutoConfig.register(FormwrightConfig.model_type, FormwrightConfig, exist_ok=True)
