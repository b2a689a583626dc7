"""Recordings and series as a model reads them, in the form of transformers' feature extractors."""

from typing import Any, ClassVar

import numpy as np
from transformers import BatchFeature, FeatureExtractionMixin

from formwright.nn.hf.frame_features import filled, log_mel, series_frames


class FormwrightFeatureExtractor(FeatureExtractionMixin):
    """Turn recordings or series into frames (batch, frames, features) and the mask of real ones.

    With a `sampling_rate`, an input is the samples of a recording, from -1 to 1: its frames are log-mel bands of
    `window` samples every `hop` samples, normalised by `mean` and `std` of each band. Without one, it is a series
    (steps,) or (steps, dimensions): its steps are normalised, and `window` of them, every `hop` steps, are a frame.
    """

    model_input_names: ClassVar[list[str]] = ["input_features", "attention_mask"]

    def __init__(
        self,
        feature_size: int = 40,
        sampling_rate: int | None = None,
        window: int = 1,
        hop: int = 1,
        mean: list[float] | None = None,
        std: list[float] | None = None,
        max_length: int | None = None,
        **others: Any,
    ) -> None:
        super().__init__(**others)
        self.feature_size, self.sampling_rate = feature_size, sampling_rate
        self.window, self.hop = window, hop
        self.mean, self.std = mean or [0.0], std or [1.0]
        self.max_length = max_length

    def __call__(
        self, inputs: Any, sampling_rate: int | None = None, return_tensors: str | None = None, **_: Any
    ) -> BatchFeature:
        """Prepare one input or a list of them; frames beyond `max_length` are left out."""
        if sampling_rate is not None and self.sampling_rate is not None and sampling_rate != self.sampling_rate:
            raise ValueError(f"this model reads {self.sampling_rate} samples a second, not {sampling_rate}")
        several = list(inputs) if isinstance(inputs, list | tuple) and np.ndim(inputs[0]) else [inputs]
        frames = [self._frames(np.asarray(one, np.float32))[: self.max_length] for one in several]
        longest = max(map(len, frames))
        padded = [np.pad(one, ((0, longest - len(one)), (0, 0))) for one in frames]
        mask = [[1] * len(one) + [0] * (longest - len(one)) for one in frames]
        found = {"input_features": np.stack(padded), "attention_mask": np.array(mask, np.int64)}
        return BatchFeature(found, tensor_type=return_tensors)

    def _frames(self, series: Any) -> Any:
        mean, deviation = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        if self.sampling_rate is not None:
            bands = log_mel(series, self.sampling_rate, len(mean), self.window, self.hop)
            return filled((bands - mean) / deviation, self.feature_size)
        steps = (series.reshape(len(series), -1) - mean) / deviation
        return series_frames(steps, self.feature_size, self.window, self.hop)
