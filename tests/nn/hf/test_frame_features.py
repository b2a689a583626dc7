"""Log-mel bands and windows, against direct computations and known tones."""

import numpy as np
import pytest

from formwright.core.rng import derive
from formwright.nn.hf.frame_features import log_mel, mel_filters, series_frames, windows


def direct_log_mel(samples, rate, bands, window, hop):
    """Sum the power of every frequency under every triangle, one by one."""
    size = 1
    while size < 2 * window:
        size *= 2
    mel = np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), bands + 2)
    edges = 700 * (10 ** (mel / 2595) - 1)
    found = []
    for start in range(0, len(samples) - window + 1, hop):
        power = []
        for point in range(size // 2 + 1):
            place = np.arange(window)
            hann = np.sin(np.pi * place / window) ** 2
            wave = samples[start : start + window] * hann * np.exp(-2j * np.pi * point * place / size)
            power.append(abs(wave.sum()) ** 2)
        frame = []
        for band in range(bands):
            low, middle, high = edges[band : band + 3]
            total = 0.0
            for point, value in enumerate(power):
                hertz = point * rate / size
                if low < hertz <= middle:
                    total += value * (hertz - low) / (middle - low)
                elif middle < hertz < high:
                    total += value * (high - hertz) / (high - middle)
            frame.append(np.log(max(total, 1e-10)))
        found.append(frame)
    return np.array(found)


def test_log_mel_equals_the_direct_computation() -> None:
    samples = derive(0, "noise").uniform(-1, 1, 130)
    found = log_mel(samples, 8000, 6, 40, 16)
    assert found.shape == (6, 6)
    np.testing.assert_allclose(found, direct_log_mel(samples, 8000, 6, 40, 16), rtol=1e-5)


@pytest.mark.parametrize("hertz", [440, 1000, 3000])
def test_a_tone_is_loudest_in_its_own_band(hertz: int) -> None:
    rate, bands = 8000, 40
    samples = np.sin(2 * np.pi * hertz * np.arange(rate) / rate)
    found = log_mel(samples, rate, bands, 200, 80)
    centres = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + rate / 1400), bands + 2) / 2595) - 1)[1:-1]
    nearest = int(np.abs(centres - hertz).argmin())
    assert (np.abs(found.argmax(1) - nearest) <= 1).all()
    assert found.shape == (1 + (rate - 200) // 80, bands)


def test_twice_the_volume_adds_the_logarithm_of_four() -> None:
    samples = derive(0, "noise").uniform(-0.5, 0.5, 400)
    np.testing.assert_allclose(
        log_mel(2 * samples, 8000, 20, 200, 80) - log_mel(samples, 8000, 20, 200, 80), np.log(4), rtol=1e-4
    )


@pytest.mark.parametrize(("rate", "bands"), [(8000, 40), (8000, 80), (16000, 80), (44100, 128)])
def test_no_band_is_empty(rate: int, bands: int) -> None:
    size = 1 << (2 * round(rate * 0.025) - 1).bit_length()
    assert (mel_filters(rate, bands, size).sum(0) > 0).all()


def test_a_recording_shorter_than_a_window_is_one_frame_and_silence_has_a_floor() -> None:
    assert log_mel(np.zeros(10), 8000, 8, 200, 80).tolist() == [[pytest.approx(np.log(1e-10))] * 8]


def test_windows_of_a_series_have_all_its_steps() -> None:
    values = np.arange(14, dtype=np.float32).reshape(7, 2)
    found = series_frames(values, 7, 3, 2)
    assert found.tolist() == [[0, 1, 2, 3, 4, 5, 1], [4, 5, 6, 7, 8, 9, 1], [8, 9, 10, 11, 12, 13, 1]]
    assert series_frames(values[:3], 10, 3, 2)[0, 6:].tolist() == [1, 0, 1, 0]
    assert series_frames(values[:2], 6, 3, 1).tolist() == [[0, 1, 2, 3, 0, 0]]
    assert series_frames(values[:6], 6, 3, 2)[-1].tolist() == [8, 9, 10, 11, 0, 0]
    assert windows(values, 7, 1).shape == (1, 7, 2)
