"""What turns rows into the arrays that a model reads, and is kept in its folder, for rows that are not text."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.files import read_json, write_json

_FILE = "preprocessor_config.json"


class Preprocessor(ABC):
    """A reader of rows that are not text, such as pictures; next to a model it is what a tokeniser is for text.

    The record of a kind names the class of its preprocessor.
    """

    @classmethod
    @abstractmethod
    def fit(cls, rows: Any, embedding: Any) -> Self:
        """Return how a design with this embedding reads rows; what it needs to know of them, training rows tell."""

    @classmethod
    @abstractmethod
    def of_config(cls, config: Mapping[str, Any], embedding: Any) -> Self:
        """Return the preprocessor that `config` describes; it is empty if the folder of the model has no file."""

    @property
    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Return the content of `preprocessor_config.json`."""

    @property
    def digest(self) -> str | None:
        """Return the SHA-256 of the configuration."""
        return hashlib.sha256(json.dumps(self.config, sort_keys=True).encode()).hexdigest()

    @property
    def tokenizer(self) -> Self:
        """Return what `save_pretrained_folder` writes."""
        return self

    def save_pretrained(self, folder: Path) -> None:
        """Write the configuration into the folder of a model."""
        write_json(folder / _FILE, self.config)

    @classmethod
    def read(cls, folder: Path, embedding: Any) -> Self:
        """Read the preprocessor of the model in a folder."""
        path = folder / _FILE
        try:
            return cls.of_config(read_json(path) if path.is_file() else {}, embedding)
        except FormwrightError as error:  # what the file asks for is not supported
            raise IllegalInput(f"{path}: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            state = "is damaged" if path.is_file() else "is not there"
            raise IllegalInput(
                f"{path} {state} ({error!r}): expected how the rows become numbers; take the file of the trained model"
            ) from None
