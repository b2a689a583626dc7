"""Rows of frames: recordings and series of unequal length, and how they become frames that a design reads."""

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from formwright.arch.embeddings import FrameEmbedding
from formwright.core.errors import IllegalInput
from formwright.core.remember import remembers
from formwright.nn.hf.frame_features import filled, log_mel, series_frames
from formwright.tasks.frame_options import FrameOptions
from formwright.tasks.preprocessor import Preprocessor
from formwright.tasks.rows import Scale, numbers_at

_SPARE = 2  # features of a series without a step: by them a frame that is normalised as a whole keeps its level
_LEAST = 1e-6  # a deviation below this is that of a constant


@dataclass(frozen=True, eq=False)
class FrameRows:
    """Series of steps (steps, dimensions), end to end, and the label of each: series i is `series(i)`.

    Recordings are series of samples from -1 to 1, `rate` of them a second; other series have rate 0. `source` is the
    file or folder of the rows, and `numbers` are their places in it. `options` say how recordings are to become frames,
    where the user wants other frames than the usual ones.
    """

    UNIT: ClassVar[str] = "series"
    values: NDArray[np.float32]
    offsets: NDArray[np.int64]
    labels: NDArray[np.int64]
    rate: int = 0
    options: FrameOptions | None = field(default=None, kw_only=True)
    numbers: tuple[int, ...] = field(default=(), kw_only=True)
    source: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        if len(self.offsets) != len(self.labels) + 1:
            raise IllegalInput(
                f"series and labels must be equally many; got {len(self.offsets) - 1} and {len(self.labels)}"
            )

    @classmethod
    def of(cls, series: Sequence[NDArray[Any]], labels: Sequence[int], **others: Any) -> "FrameRows":
        """Lay series (steps, dimensions) end to end."""
        offsets = np.concatenate(([0], np.cumsum([len(one) for one in series], dtype=np.int64)))
        return cls(np.concatenate(series).astype(np.float32), offsets, np.array(labels, np.int64), **others)

    def __len__(self) -> int:
        return len(self.labels)

    def series(self, row: int) -> NDArray[np.float32]:
        """Return one series (steps, dimensions)."""
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def shown(self) -> dict[str, Sequence[Any]]:
        steps = np.diff(self.offsets).tolist()
        what = f" samples at {self.rate} a second" if self.rate else f" steps of {self.values.shape[1]} numbers"
        return {"series": [f"{number}{what}" for number in steps], "label": self.labels.tolist()}

    @cached_property
    def digest(self) -> str:
        found = hashlib.sha256(json.dumps([self.values.shape, self.rate]).encode())
        for array, form in ((self.values, "<f4"), (self.offsets, "<i8"), (self.labels, "<i8")):
            found.update(array.astype(form).tobytes())
        return found.hexdigest()

    @property
    def contents(self) -> Sequence[Hashable]:
        """Return a hash of each series; equal ones belong to one split."""
        return [hashlib.blake2b(self.series(row).tobytes(), digest_size=16).digest() for row in range(len(self))]

    def take(self, places: Sequence[int]) -> Self:
        """Return the rows at some places."""
        numbers = numbers_at(self.numbers, places)
        found = FrameRows.of([self.series(place) for place in places], [int(self.labels[place]) for place in places])
        return replace(self, values=found.values, offsets=found.offsets, labels=found.labels, numbers=numbers)


@dataclass(frozen=True, eq=False)
class FrameExamples:
    """Frames (all frames, features) of rows end to end: row i has `frames[offsets[i]:offsets[i + 1]]`.

    `uncut` counts the frames of each row before truncation. `options` are how recordings became frames, None for other
    series.
    """

    frames: NDArray[np.float32]
    offsets: NDArray[np.int64]
    labels: NDArray[np.int64]
    uncut: NDArray[np.int64]
    options: FrameOptions | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of frames of each row."""
        return np.diff(self.offsets)

    def padded(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return some rows padded with zeros (rows, frames, features), and the mask of real frames."""
        lengths = self.lengths[rows]
        column = np.arange(lengths.max(initial=0))
        mask = column < lengths[:, None]
        found = np.zeros((*mask.shape, self.frames.shape[1]), np.float32)
        found[mask] = self.frames[(self.offsets[rows][:, None] + column)[mask]]
        return found, mask


@remembers
@dataclass(frozen=True)
class FrameReader(Preprocessor):
    """How series become frames of `features` numbers, normalised by mean and deviation of the training rows.

    Recordings (`rate` samples a second) become log-mel bands of `window` samples every `hop` samples, which are
    normalised; there are as many bands as `scale` has means. Of other series the steps are normalised, and `window`
    steps of all dimensions, every `hop` steps, are a frame. Features that are left over are constants.
    """

    features: int
    window: int
    hop: int
    scale: Scale
    rate: int = 0

    @classmethod
    def fit(cls, rows: FrameRows, embedding: FrameEmbedding) -> Self:
        """Return how a design reads rows: it says how many features a frame has, and training rows give the scale."""
        features, dimensions = embedding.features, rows.values.shape[1]
        if rows.rate:
            wanted = rows.options or FrameOptions()
            bands, (window, hop) = wanted.bands or features, wanted.samples(rows.rate)
            series = [rows.series(row) for row in range(len(rows))]
            values = np.concatenate([log_mel(one, rows.rate, bands, window, hop) for one in series])
            return cls(features, window, hop, _scale(values), rows.rate)
        assert dimensions <= features, "checked by the kind of task"
        window = max(1, (features - _SPARE) // dimensions)
        return cls(features, window, max(1, window // 2), _scale(rows.values))

    @classmethod
    def of_config(cls, config: Mapping[str, Any], embedding: FrameEmbedding) -> Self:
        """Read `preprocessor_config.json` of a model."""
        scale = Scale(tuple(map(float, config["mean"])), tuple(map(float, config["std"])))
        window, hop = int(config["window"]), int(config["hop"])
        return cls(int(config["feature_size"]), window, hop, scale, int(config["sampling_rate"] or 0))

    @property
    def config(self) -> dict[str, Any]:
        """Return what `preprocessor_config.json` says."""
        name = "FormwrightFeatureExtractor"
        return {
            "feature_extractor_type": name,
            "auto_map": {"AutoFeatureExtractor": f"formwright_nn_hf_frame_extractor.{name}"},
            "feature_size": self.features,
            "sampling_rate": self.rate or None,
            "window": self.window,
            "hop": self.hop,
            "mean": list(self.scale.mean),
            "std": list(self.scale.deviation),
            "padding_value": 0.0,
            "return_attention_mask": True,
        }

    def frames(self, series: NDArray[Any]) -> NDArray[np.float32]:
        """Return the frames of one series (steps, dimensions): (frames, features)."""
        mean, deviation = (np.array(one, np.float32) for one in (self.scale.mean, self.scale.deviation))
        if self.rate:
            bands = log_mel(series, self.rate, len(mean), self.window, self.hop)
            return filled((bands - mean) / deviation, self.features)
        if series.shape[1] != len(mean):
            raise IllegalInput(f"a series has {series.shape[1]} numbers a step; the model was trained on {len(mean)}")
        return series_frames((series - mean) / deviation, self.features, self.window, self.hop)

    @property
    def options(self) -> FrameOptions | None:
        """Return window, hop and bands of recordings as a user gives them; None for other series."""
        if not self.rate:
            return None
        window, hop = (1000 * samples / self.rate for samples in (self.window, self.hop))
        bands = len(self.scale.mean)
        return FrameOptions(window, hop, bands if bands < self.features else None)

    def _check_options(self, wanted: FrameOptions | None) -> None:
        """Raise where a trained model reads other frames than the user wants."""
        bands = len(self.scale.mean)
        if wanted is None or (wanted.samples(self.rate), wanted.bands or bands) == ((self.window, self.hop), bands):
            return
        window, hop = (1000 * samples / self.rate for samples in (self.window, self.hop))
        raise IllegalInput(
            f"the model was trained on frames of window_ms={window:g},hop_ms={hop:g},bands={bands}, and reads no "
            "others; leave out --frames"
        )

    def examples(self, rows: FrameRows, length: int) -> FrameExamples:
        """Return the frames of rows, at most `length` of each."""
        if bool(rows.rate) != bool(self.rate):
            kinds = "recordings, and the rows are series" if self.rate else "series, and the rows are recordings"
            raise IllegalInput(f"the model reads {kinds}")
        self._check_options(rows.options)
        series = [rows.series(row) for row in range(len(rows))]
        if rows.rate != self.rate:
            series = [resampled(one[:, 0], rows.rate, self.rate)[:, None] for one in series]
        found = [self.frames(one) for one in series]
        uncut = np.array([len(one) for one in found], np.int64)
        cut = [one[:length] for one in found]
        offsets = np.concatenate(([0], np.cumsum([len(one) for one in cut], dtype=np.int64)))
        frames = np.concatenate(cut) if cut else np.zeros((0, self.features), np.float32)
        return FrameExamples(frames, offsets, rows.labels, uncut, self.options)


def resampled(samples: NDArray[np.float32], rate: int, wanted: int) -> NDArray[np.float32]:
    """Return a recording with another number of samples a second."""
    if rate == wanted:
        return samples
    from scipy.signal import resample_poly  # noqa: PLC0415  a second, and wanted by few recordings

    ratio = Fraction(wanted, rate)
    found: NDArray[np.float32] = resample_poly(samples, ratio.numerator, ratio.denominator).astype(np.float32)
    return found


def unlabelled_frames(series: Sequence[tuple[NDArray[np.float32], int]]) -> FrameRows:
    """Make rows without labels of series and their rates; recordings get the rate of the first."""
    rate = series[0][1]
    found = [resampled(one[:, 0], own, rate)[:, None] if own != rate else one for one, own in series]
    return FrameRows.of(found, [0] * len(found), rate=rate)


def _scale(values: NDArray[np.float32]) -> Scale:
    """Return mean and deviation of each column, to six digits; a column of one value is only shifted."""
    mean, deviation = values.mean(0, dtype=np.float64), values.std(0, dtype=np.float64)
    return Scale(
        tuple(float(f"{one:.6g}") for one in mean),
        tuple(float(f"{one:.6g}") if one > _LEAST else 1.0 for one in deviation),
    )
