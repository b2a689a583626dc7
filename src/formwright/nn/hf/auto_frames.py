"""Make transformers' `AutoFeatureExtractor` know what prepares recordings and series for our models."""

from transformers import AutoFeatureExtractor

from formwright.nn.hf import auto_config
from formwright.nn.hf.config import FormwrightConfig
from formwright.nn.hf.frame_extractor import FormwrightFeatureExtractor


def register() -> None:
    """Let `AutoFeatureExtractor` load our extractor, without the copy of its code in a folder."""
    auto_config.register()
    AutoFeatureExtractor.register(FormwrightConfig, FormwrightFeatureExtractor, exist_ok=True)
