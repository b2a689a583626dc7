"""Make transformers' `AutoImageProcessor` know what prepares pictures for our models."""

from transformers import AutoImageProcessor

from formwright.nn.hf import auto_config
from formwright.nn.hf.config import FormwrightConfig
from formwright.nn.hf.image_processor import FormwrightImageProcessor


def register() -> None:
    """Let `AutoImageProcessor` load our processor, without the copy of its code in a folder."""
    auto_config.register()
    AutoImageProcessor.register(FormwrightConfig, slow_image_processor_class=FormwrightImageProcessor, exist_ok=True)
