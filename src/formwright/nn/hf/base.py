"""What all models of this package have in common for transformers.

The modules are those of `formwright.nn`, under the same names, so a checkpoint is the same file in plain torch.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalInput
from formwright.nn.build import initialise
from formwright.nn.hf.config import FormwrightConfig
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Output, Transformer

_ENTRIES = ("tokens", "pixels", "features")  # what an embedding calls the part that reads the input
_SHARED = {"transformer.decoder.embedding.tokens.weight": "transformer.encoder.embedding.tokens.weight"}
_UNSUPPORTED = ("encoder_outputs", "head_mask", "inputs_embeds", "output_attentions", "past_key_values", "position_ids")


class FormwrightPreTrainedModel(PreTrainedModel):
    """Build the model of a configuration's card, with the head of `task`."""

    config_class = FormwrightConfig
    base_model_prefix = "transformer"
    task: str | None = None
    _supports_sdpa = True
    _no_split_modules = ("BlockLayer", "CellLayer")

    def __init__(self, config: FormwrightConfig) -> None:
        super().__init__(config)
        # not `config.design`: transformers may hold the configuration's code in a second copy, with classes of its own
        card = Card.from_json(config.card)
        self._tied_weights_keys = _SHARED if card.share_embedding else None
        self.main_input_name = card.stacks[0].embedding.INPUT
        if self.task is None:
            self.transformer = Transformer(card, config.settings)
        else:
            model = TaskModel(card, HeadSpec(self.task, config.num_labels), config.settings)
            self.transformer, self.head = model.transformer, model.head
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if next(module.parameters(recurse=False), None) is None:
            return
        # transformers asks for every module that lacks a weight, and marks the weights that a checkpoint gave
        given = [weight for weight in module.parameters() if getattr(weight, "_is_hf_initialized", False)]
        kept = [weight.clone() for weight in given]
        initialise(module, torch.default_generator)
        for weight, value in zip(given, kept, strict=True):
            weight.copy_(value)

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> None:
        """Save the model, with the code that loads it where this package is not installed."""
        if __package__ == "formwright.nn.hf":  # bundled code is copied on by transformers itself
            bundled_code = import_module("formwright.nn.hf.bundled_code")
            foreign = bundled_code.foreign_operations(self.transformer.card)
            bundled_code.write_code(Path(save_directory), foreign=foreign)
            self.config.auto_map = bundled_code.auto_map()
        super().save_pretrained(save_directory, **options)

    def get_input_embeddings(self) -> nn.Module:
        """Return the token table, or the linear map that reads images or frames."""
        stack = self.transformer.encoder if self.transformer.encoder is not None else self.transformer.decoder
        return next(getattr(stack.embedding, name) for name in _ENTRIES if hasattr(stack.embedding, name))

    def get_output_embeddings(self) -> None:
        """Return None: heads that predict tokens read the token table itself."""

    def resize_token_embeddings(self, *_: Any, **__: Any) -> nn.Module:
        """Raise: the size of the vocabulary is part of the card."""
        raise IllegalInput("the card fixes the vocabulary; build a card with another one and inherit the weights")

    @property
    def token_table(self) -> Tensor:
        """Return the table that heads share to predict tokens: (vocabulary, table width)."""
        return self.transformer.last_stack.embedding.tokens.weight

    def run(
        self, run: Callable[[], Output], all_layers: bool | None, options: dict[str, Any]
    ) -> tuple[Output, tuple[Tensor, ...] | None]:
        """Let `run` run the transformer; where wanted, give the outputs of the embedding and of every layer as well.

        `options` are the other arguments of a call; unsupported ones raise instead of being ignored.
        """
        for name in _UNSUPPORTED:
            value = options.pop(name, None)
            if value is not None and value is not False:
                raise ValueError(f"{name} is not supported by {type(self).__name__}")
        wanted = self.config.output_hidden_states if all_layers is None else all_layers
        if not wanted:
            return run(), None
        seen: list[Tensor] = []
        hook = self.transformer.last_stack.embedding.register_forward_hook(
            lambda _module, _inputs, output: seen.append(output)
        )
        try:
            output = run()
        finally:
            hook.remove()
        return output, (*seen, *output.layers)
