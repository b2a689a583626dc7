"""The configuration of a design, as transformers reads and writes it."""

from dataclasses import fields
from typing import Any

from transformers import PretrainedConfig

from formwright.arch.card import Card
from formwright.nn.hf.config_fields import MODEL_TYPE, standard_fields
from formwright.nn.settings import Settings


class FormwrightConfig(PretrainedConfig):
    """Hold a card and the settings of its model.

    `card` is the card as JSON data and says everything about the design; sizes such as `hidden_size` follow from it
    and are there for other code to read.
    """

    model_type = MODEL_TYPE

    def __init__(
        self,
        card: dict[str, Any] | None = None,
        *,
        dropout: float = 0.1,
        norm_epsilon: float = 1e-12,
        pooler_activation: str = "tanh",
        pooling: str = "first",
        pad_token_id: int | None = None,
        **others: Any,
    ) -> None:
        self.card = card
        self.dropout, self.norm_epsilon = dropout, norm_epsilon
        self.pooler_activation, self.pooling = pooler_activation, pooling
        self.pad_token_id = pad_token_id
        if card is not None:
            others |= standard_fields(self.design)
        super().__init__(**others)

    def __getattribute__(self, key: str) -> Any:
        # transformers raises for a size that differs from layer to layer, but the width of the output is known
        return object.__getattribute__(self, key) if key == "hidden_size" else super().__getattribute__(key)

    @property
    def design(self) -> Card:
        return Card.from_json(self.card)

    @property
    def settings(self) -> Settings:
        named = {field.name: getattr(self, field.name) for field in fields(Settings) if field.name != "eager"}
        return Settings(**named, eager=self._attn_implementation == "eager")
