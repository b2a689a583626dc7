"""Models with and without the heads of tasks, with the signatures and outputs that users of transformers know."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationMixin
from transformers.loss.loss_utils import ForMaskedLMLoss
from transformers.modeling_outputs import (
    BaseModelOutputWithPooling,
    CausalLMOutputWithPast,
    ImageClassifierOutput,
    MaskedLMOutput,
    ModelOutput,
    QuestionAnsweringModelOutput,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from transformers.utils.generic import can_return_tuple

from formwright.nn.hf.base import FormwrightPreTrainedModel
from formwright.nn.stack_context import Cache
from formwright.nn.transformer import Output, Transformer


class FormwrightModel(FormwrightPreTrainedModel):
    """The model of a card without a head."""

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        input_features: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **options: Any,
    ) -> BaseModelOutputWithPooling | Seq2SeqModelOutput:
        """Return the last vectors, and the pooled one where the card has a pooler."""
        inputs = next((one for one in (input_ids, pixel_values, input_features) if one is not None), None)
        if inputs is None:
            raise ValueError(f"this model reads {self.main_input_name}, which is missing")
        others = (attention_mask, token_type_ids, decoder_input_ids, decoder_attention_mask)
        output, layers = self.run(partial(self.transformer, inputs, *others), output_hidden_states, options)
        if self.config.is_encoder_decoder:
            return Seq2SeqModelOutput(
                last_hidden_state=output.hidden,
                decoder_hidden_states=layers,
                encoder_last_hidden_state=output.memory[-1],
            )
        return BaseModelOutputWithPooling(
            last_hidden_state=output.hidden, pooler_output=output.pooled, hidden_states=layers
        )


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
        output, layers = self.run(partial(self.transformer, *inputs), output_hidden_states, options)
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
        run = partial(self.transformer, pixel_values.to(self.dtype))
        output, layers = self.run(run, output_hidden_states, options)
        logits, loss = self.head(output, None), None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=self.config, **options)
        return ImageClassifierOutput(loss=loss, logits=logits, hidden_states=layers)


class FormwrightForAudioClassification(FormwrightPreTrainedModel):
    """Classify recordings and other series of frames."""

    task = "sequence-classification"

    @can_return_tuple
    def forward(
        self,
        input_features: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **options: Any,
    ) -> SequenceClassifierOutput:
        """Return (batch, labels) for frames (batch, frames, features); the mask is 1 for real ones."""
        run = partial(self.transformer, input_features.to(self.dtype), attention_mask)
        output, layers = self.run(run, output_hidden_states, options)
        logits, loss = self.head(output, attention_mask), None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=self.config, **options)
        return SequenceClassifierOutput(loss=loss, logits=logits, hidden_states=layers)


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
        output, layers = self.run(partial(self.transformer, *inputs), output_hidden_states, options)
        start, end = (scores.contiguous() for scores in self.head(output, attention_mask).unbind(-1))
        loss = None
        if start_positions is not None and end_positions is not None:
            loss = self.loss_function(start, end, start_positions, end_positions, **options)
        return QuestionAnsweringModelOutput(loss=loss, start_logits=start, end_logits=end, hidden_states=layers)


class GeneratingModel(FormwrightPreTrainedModel, GenerationMixin):
    """Generate with our own cache, which also holds the inputs of convolutions."""

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False

    def _reorder_cache(self, past_key_values: Cache, beam_idx: Tensor) -> Cache:
        past_key_values.choose(beam_idx)
        return past_key_values


class FormwrightForCausalLM(GeneratingModel):
    """Predict the next token."""

    task = "causal-lm"

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **options: Any,
    ) -> CausalLMOutputWithPast:
        """Return scores over the vocabulary for what follows every token: (batch, tokens, vocabulary).

        With `past_key_values`, which an earlier call with `use_cache` returned, `input_ids` are the tokens behind those
        that it has read, and `attention_mask` is of them all.
        """
        cache = Cache() if use_cache and past_key_values is None else past_key_values

        def run() -> Output:
            layers = self.transformer.decode(input_ids, attention_mask, types=token_type_ids, cache=cache)
            return Output(layers[-1], layers)

        output, layers = self.run(run, output_hidden_states, options)
        logits = self.head(output.hidden, self.token_table)
        loss = None
        if labels is not None:
            loss = self.loss_function(logits, labels, vocab_size=logits.shape[-1], **options)
        return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=cache, hidden_states=layers)

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        past_key_values: Cache | None = None,
        attention_mask: Tensor | None = None,
        use_cache: bool | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        return {
            "input_ids": _unread(input_ids, past_key_values),
            "attention_mask": attention_mask,
            "past_key_values": past_key_values,
            "use_cache": use_cache,
        }


@dataclass
class EncoderOutput(ModelOutput):
    """What an encoder gives: its last vectors, and those of all layers side by side (batch, tokens, widths)."""

    last_hidden_state: Tensor | None = None
    all_layers: Tensor | None = None


class Encoder:
    """Run the encoder of a transformer alone, as `generate` wants it."""

    def __init__(self, transformer: Transformer) -> None:
        self._transformer = transformer

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> EncoderOutput:
        """Return the outputs of all layers."""
        layers = self._transformer.encode(input_ids, attention_mask)
        return EncoderOutput(layers[-1], torch.cat(layers, -1))

    def __call__(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any) -> EncoderOutput:
        return self.forward(input_ids, attention_mask)


class FormwrightForSeq2SeqLM(GeneratingModel):
    """Predict the next token of a target text from a source text."""

    task = "seq2seq-lm"

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: EncoderOutput | None = None,
        past_key_values: Cache | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **options: Any,
    ) -> Seq2SeqLMOutput:
        """Return scores over the vocabulary for what follows every target token.

        Without `decoder_input_ids` the decoder reads `labels`, shifted by one behind `config.decoder_start_token_id`
        or, where that is not set, behind the padding token. `encoder_outputs` are those of `get_encoder()`, and stand
        for `input_ids`; `past_key_values` are as for a decoder alone.
        """
        targets = self._shifted(labels) if decoder_input_ids is None else decoder_input_ids
        cache = Cache() if options.pop("use_cache", None) and past_key_values is None else past_key_values

        def run() -> Output:
            memory = self._memory(input_ids, attention_mask, encoder_outputs)
            layers = self.transformer.decode(targets, decoder_attention_mask, memory, attention_mask, cache=cache)
            return Output(layers[-1], layers, memory)

        output, layers = self.run(run, output_hidden_states, options)
        logits = self.head(output.hidden, self.token_table)
        loss = None
        if labels is not None:  # as for masked tokens: a label stands where its scores do
            loss = ForMaskedLMLoss(logits, labels, vocab_size=logits.shape[-1], **options)
        return Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            past_key_values=cache,
            decoder_hidden_states=layers,
            encoder_last_hidden_state=output.memory[-1],
        )

    def get_encoder(self, modality: str | None = None) -> Any:
        return Encoder(self.transformer) if modality is None else super().get_encoder(modality)

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        past_key_values: Cache | None = None,
        attention_mask: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: EncoderOutput | None = None,
        use_cache: bool | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        return {
            "decoder_input_ids": _unread(input_ids, past_key_values),
            "decoder_attention_mask": decoder_attention_mask,
            "attention_mask": attention_mask,
            "encoder_outputs": encoder_outputs,
            "past_key_values": past_key_values,
            "use_cache": use_cache,
        }

    def _memory(self, input_ids: Tensor | None, mask: Tensor | None, given: EncoderOutput | None) -> tuple[Tensor, ...]:
        if given is None:
            if input_ids is None:
                raise ValueError("pass input_ids, or the encoder_outputs of get_encoder()")
            return self.transformer.encode(input_ids, mask)
        if getattr(given, "all_layers", None) is None:
            raise ValueError("encoder_outputs must be those of this model's get_encoder()")
        return given.all_layers.split(list(self.transformer.card.encoder.output_widths), -1)

    def _shifted(self, labels: Tensor | None) -> Tensor:
        if labels is None:
            raise ValueError("pass decoder_input_ids, or labels to make them from")
        padding = self.config.pad_token_id or 0
        start = getattr(self.config, "decoder_start_token_id", None)
        first = torch.full_like(labels[:, :1], padding if start is None else start)
        return torch.cat((first, labels[:, :-1].masked_fill(labels[:, :-1] < 0, padding)), 1)


def _unread(tokens: Tensor, cache: Cache | None) -> Tensor:
    return tokens if cache is None else tokens[:, cache.length :]
