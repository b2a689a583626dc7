"""Models with the heads of tasks, with the signatures and outputs that users of transformers know."""

from typing import Any

from torch import Tensor
from transformers.modeling_outputs import (
    ImageClassifierOutput,
    MaskedLMOutput,
    ModelOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from transformers.utils.generic import can_return_tuple

from formwright.nn.hf.base import FormwrightModel, FormwrightPreTrainedModel
from formwright.nn.hf.language_models import FormwrightForCausalLM, FormwrightForSeq2SeqLM
from formwright.nn.transformer import Output

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


class _TextHead(FormwrightPreTrainedModel):
    """Run a head over text; subclasses say what its scores, their loss and its output are."""

    output: type[ModelOutput]

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **options: Any,
    ) -> ModelOutput:
        """Return the scores, and the loss where there are labels; `options` are those of transformers' losses."""
        inputs = (input_ids, attention_mask, token_type_ids)
        output, layers = self.run(*inputs, all_layers=output_hidden_states, options=options)
        logits = self._scores(output, attention_mask)
        loss = None if labels is None else self._loss(logits, labels, **options)
        return self.output(loss=loss, logits=logits, hidden_states=layers)

    def _scores(self, output: Output, mask: Tensor | None) -> Tensor:
        return self.head(output, mask)

    def _loss(self, logits: Tensor, labels: Tensor, **options: Any) -> Tensor:
        return self.loss_function(logits, labels, self.config, **options)


class FormwrightForMaskedLM(_TextHead):
    """Predict masked tokens by scores over the vocabulary: (batch, tokens, vocabulary)."""

    task = "masked-lm"
    output = MaskedLMOutput

    def _scores(self, output: Output, mask: Tensor | None) -> Tensor:
        return self.head(output.hidden, self.token_table)

    def _loss(self, logits: Tensor, labels: Tensor, **options: Any) -> Tensor:
        return self.loss_function(logits, labels, vocab_size=logits.shape[-1], **options)


class FormwrightForSequenceClassification(_TextHead):
    """Classify or score sentences and pairs of sentences: (batch, labels).

    The loss follows `config.problem_type`, or the labels where that is not set.
    """

    task = "sequence-classification"
    output = SequenceClassifierOutput

    def _loss(self, logits: Tensor, labels: Tensor, **options: Any) -> Tensor:
        return self.loss_function(labels=labels, pooled_logits=logits, config=self.config, **options)


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
        logits, loss = self.head(output, None), None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=self.config, **options)
        return ImageClassifierOutput(loss=loss, logits=logits, hidden_states=layers)


class FormwrightForTokenClassification(_TextHead):
    """Label every token: (batch, tokens, labels)."""

    task = "token-classification"
    output = TokenClassifierOutput


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
        inputs = (input_ids, attention_mask, token_type_ids)
        output, layers = self.run(*inputs, all_layers=output_hidden_states, options=options)
        start, end = (scores.contiguous() for scores in self.head(output, attention_mask).unbind(-1))
        loss = None
        if start_positions is not None and end_positions is not None:
            loss = self.loss_function(start, end, start_positions, end_positions, **options)
        return QuestionAnsweringModelOutput(loss=loss, start_logits=start, end_logits=end, hidden_states=layers)
