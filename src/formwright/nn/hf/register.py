"""Make transformers' Auto classes know our models."""

import warnings


def register_config() -> None:
    """Let `AutoConfig` read our configurations."""
    try:
        from transformers import AutoConfig

        from formwright.nn.hf.config import FormwrightConfig
    except ImportError as error:  # must not break `import transformers` for those who never load our models
        return _warn(error)
    AutoConfig.register(FormwrightConfig.model_type, FormwrightConfig, exist_ok=True)


def register_models() -> None:
    """Let `AutoModel` and its kin load our models."""
    register_config()
    try:
        import transformers

        from formwright.nn.hf import models
        from formwright.nn.hf.config import FormwrightConfig
        from formwright.nn.hf.fields import AUTO_CLASSES
    except ImportError as error:
        return _warn(error)
    for name, auto in AUTO_CLASSES.items():
        getattr(transformers, auto).register(FormwrightConfig, getattr(models, name), exist_ok=True)


def _warn(error: ImportError) -> None:
    warnings.warn(f"this transformers cannot load the models of formwright: {error}", stacklevel=2)
