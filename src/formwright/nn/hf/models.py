"""Models with the heads of tasks, with the signatures and outputs that users of transformers know."""

from typing import Any

from torch import Tensor
from transformers.modeling_outputs import (
    ImageClassifierOutput,
    MaskedLMOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from transformers.utils.generic import can_return_tuple

from formwright.nn.hf.base import FormwrightModel, FormwrightPreTrainedModel
from formwright.nn.hf.writers import FormwrightForCausalLM, FormwrightForSeq2SeqLM

__all__ = [
    "FormwrightForCausalLM",
    "FormwrightForImageClassification",
    "FormwrightForMaskedLM",
    "FormwrightForQuestionAnswering",
    "FormwrightForSeq2SeqLM",
    "FormwrightForSequenceClassification",
    "FormwrightForTokenClassification",
    "FormwrightModel",
]


class FormwrightForMaskedLM(FormwrightPreTrainedModel):
    """Predict masked tokens."""

    task = "masked-lm"

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **options: Any,
    ) -> MaskedLMOutput:
        """Return scores over the vocabulary for every token: (batch, tokens, vocabulary).

        Here and below, `options` are those of transformers' losses.
        """
        output, layers = self.run(
            input_ids, attention_mask, token_type_ids, all_layers=output_hidden_states, options=options
        )
        logits = self.head(output.hidden, self.token_table)
        loss = None
        if labels is not None:
            loss = self.loss_function(logits, labels, vocab_size=logits.shape[-1], **options)
        return MaskedLMOutput(loss=loss, logits=logits, hidden_states=layers)


class FormwrightForSequenceClassification(FormwrightPreTrainedModel):
    """Classify or score sentences and pairs of sentences."""

    task = "sequence-classification"

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **options: Any,
    ) -> SequenceClassifierOutput:
        """Return (batch, labels); the loss follows `config.problem_type`, or the labels where that is not set."""
        output, layers = self.run(
            input_ids, attention_mask, token_type_ids, all_layers=output_hidden_states, options=options
        )
        logits = self.head(output, attention_mask)
        loss = None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=self.config, **options)
        return SequenceClassifierOutput(loss=loss, logits=logits, hidden_states=layers)


class FormwrightForImageClassification(FormwrightPreTrainedModel):
    """Classify images."""

    task = "sequence-classification"

    @can_return_tuple
    def forward(
        self,
        pixel_values: Tensor,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **options: Any,
    ) -> ImageClassifierOutput:
        """Return (batch, labels) for images (batch, channels, side, side)."""
        output, layers = self.run(pixel_values.to(self.dtype), all_layers=output_hidden_states, options=options)
        logits = self.head(output, None)
        loss = None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=self.config, **options)
        return ImageClassifierOutput(loss=loss, logits=logits, hidden_states=layers)


class FormwrightForTokenClassification(FormwrightPreTrainedModel):
    """Label every token."""

    task = "token-classification"

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **options: Any,
    ) -> TokenClassifierOutput:
        """Return (batch, tokens, labels)."""
        output, layers = self.run(
            input_ids, attention_mask, token_type_ids, all_layers=output_hidden_states, options=options
        )
        logits = self.head(output, attention_mask)
        loss = None if labels is None else self.loss_function(logits, labels, self.config, **options)
        return TokenClassifierOutput(loss=loss, logits=logits, hidden_states=layers)


class FormwrightForQuestionAnswering(FormwrightPreTrainedModel):
    """Find where an answer starts and ends."""

    task = "span-extraction"

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **options: Any,
    ) -> QuestionAnsweringModelOutput:
        """Return scores of every token as a start and as an end: two times (batch, tokens)."""
        output, layers = self.run(
            input_ids, attention_mask, token_type_ids, all_layers=output_hidden_states, options=options
        )
        start, end = (scores.contiguous() for scores in self.head(output, attention_mask).unbind(-1))
        loss = None
        if start_positions is not None and end_positions is not None:
            loss = self.loss_function(start, end, start_positions, end_positions, **options)
        return QuestionAnsweringModelOutput(loss=loss, start_logits=start, end_logits=end, hidden_states=layers)
