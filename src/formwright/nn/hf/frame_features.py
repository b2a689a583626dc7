"""Frames of numbers from recordings and series, with numpy alone: a model's folder has a copy of this file."""

import numpy as np

_FLOOR = 1e-10  # power below which a band is silent


def log_mel(samples: np.ndarray, rate: int, bands: int, window: int, hop: int) -> np.ndarray:
    """Return the natural logarithm of the power in mel bands, (frames, bands), of samples from -1 to 1.

    Every frame is `window` samples under a periodic Hann window, `hop` samples after the one before; a recording that
    is shorter than a window is padded with zeros. Its power spectrum has as many points as the smallest power of two
    that is at least twice the window, and is summed under triangles that `mel_filters` gives.
    """
    size = 1 << (2 * window - 1).bit_length()
    frames = windows(np.asarray(samples, np.float64).reshape(-1), window, hop)
    shape = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    power = np.abs(np.fft.rfft(frames * shape, size)) ** 2
    return np.log(np.maximum(power @ mel_filters(rate, bands, size), _FLOOR)).astype(np.float32)


def mel_filters(rate: int, bands: int, size: int) -> np.ndarray:
    """Return triangles of height 1, (points, bands), evenly spaced from 0 to half the rate in mel.

    The mel of f hertz is 2595 log10(1 + f / 700).
    """
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + rate / 1400), bands + 2) / 2595) - 1)
    points = np.arange(size // 2 + 1)[:, None] * rate / size
    rising = (points - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - points) / (edges[2:] - edges[1:-1])
    return np.maximum(0, np.minimum(rising, falling))


def windows(values: np.ndarray, window: int, hop: int) -> np.ndarray:
    """Cut values (steps, ...) into whole windows, (frames, window, ...); fewer steps than a window are padded."""
    if len(values) < window:
        values = np.concatenate([values, np.zeros((window - len(values), *values.shape[1:]), values.dtype)])
    starts = np.arange(0, len(values) - window + 1, hop)
    return values[starts[:, None] + np.arange(window)]


def series_frames(values: np.ndarray, features: int, window: int, hop: int) -> np.ndarray:
    """Return windows of a series (steps, dimensions) as frames (frames, features).

    Steps after the last whole window are padded with zeros to one more. Spare features are constants (`filled`): a
    frame that is normalised as a whole keeps its level and its spread by them.
    """
    rest = (len(values) - window) % hop if len(values) > window else 0
    if rest:
        values = np.concatenate([values, np.zeros((hop - rest, values.shape[1]), values.dtype)])
    return filled(windows(values, window, hop).reshape(-1, window * values.shape[1]), features)


def filled(frames: np.ndarray, features: int) -> np.ndarray:
    """Give every frame `features` numbers: those that are left over are 1 and 0 in turn."""
    spare = features - frames.shape[1]
    constants = np.broadcast_to(1 - np.arange(spare) % 2, (len(frames), spare))
    return np.concatenate([frames, constants], axis=1).astype(np.float32)
