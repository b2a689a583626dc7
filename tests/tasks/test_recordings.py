"""WAV files, and tasks of them."""

import struct
import wave
from pathlib import Path

import numpy as np
import pytest

from formwright.arch.embeddings import FrameEmbedding
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.rng import derive
from formwright.tasks import load_task
from formwright.tasks.frame_kinds import features_reason
from formwright.tasks.frames import FrameReader, resampled, unlabelled_frames
from formwright.tasks.recordings import read_wav
from formwright.tasks.task import _made


def write_wav(path: Path, samples: np.ndarray, rate: int = 8000, width: int = 2, channels: int = 1) -> None:
    """Write samples from -1 to 1, (samples,) or (samples, channels)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = np.round(samples * (2 ** (8 * width - 1) - 1)).astype(np.int64).ravel()
    content = b"".join(
        struct.pack("B", value + 128) if width == 1 else int(value).to_bytes(width, "little", signed=True)
        for value in whole
    )
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(content)


def tone(hertz: float, seconds: float = 0.1, rate: int = 8000) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(round(rate * seconds)) / rate)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_samples_of_every_width_are_read(tmp_path: Path, width: int) -> None:
    samples = derive(0, "samples").uniform(-1, 1, 50)
    write_wav(tmp_path / "x.wav", samples, 4000, width)
    found, rate = read_wav(tmp_path / "x.wav")
    assert rate == 4000
    np.testing.assert_allclose(found, samples, atol=2 * 2.0 ** (1 - 8 * width) + 1e-7)


@pytest.mark.parametrize(("encoding", "form"), [(3, "<f4"), (3, "<f8"), (1, "<i2")])
@pytest.mark.parametrize("extensible", [False, True])
def test_floats_and_the_extensible_form_are_read(tmp_path: Path, encoding: int, form: str, extensible: bool) -> None:
    samples = derive(0, "samples").uniform(-1, 1, 50)
    data = (samples * 32767 if form == "<i2" else samples).astype(form).tobytes()
    width = np.dtype(form).itemsize
    head = struct.pack("<HHIIHH", 0xFFFE if extensible else encoding, 1, 4000, 4000 * width, width, 8 * width)
    head += struct.pack("<HHIH14s", 22, 8 * width, 4, encoding, b"") if extensible else b""
    parts = ((b"fmt ", head), (b"LIST", b"odd"), (b"data", data))
    body = b"".join(struct.pack("<4sI", name, len(one)) + one + b"\0" * (len(one) % 2) for name, one in parts)
    (tmp_path / "x.wav").write_bytes(b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body)
    found, rate = read_wav(tmp_path / "x.wav")
    assert rate == 4000
    np.testing.assert_allclose(found, samples, atol=1e-4)


def test_channels_are_averaged(tmp_path: Path) -> None:
    both = np.stack([np.full(9, 0.5), np.full(9, -0.25)], 1)
    write_wav(tmp_path / "x.wav", both, channels=2)
    np.testing.assert_allclose(read_wav(tmp_path / "x.wav")[0], 0.125, atol=1e-4)


def test_what_is_no_wav_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.wav").write_bytes(b"RIFF and so on")
    with pytest.raises(IllegalInput, match=r"x\.wav"):
        read_wav(tmp_path / "x.wav")
    write_wav(tmp_path / "y.wav", np.zeros(0))
    write_wav(tmp_path / "z.wav", np.zeros(500))
    (tmp_path / "z.wav").write_bytes((tmp_path / "z.wav").read_bytes()[:600])
    (tmp_path / "e.wav").write_bytes(b"")
    head = struct.pack("<4sIHHIIHH", b"fmt ", 16, 3, 1, 4000, 16000, 4, 32)
    samples = np.array([0.5, np.nan], "<f4").tobytes()
    body = b"WAVE" + head + struct.pack("<4sI", b"data", len(samples)) + samples
    (tmp_path / "n.wav").write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)
    for name, fact in (("y", "no samples"), ("z", "1,000 bytes"), ("e", "WAV"), ("n", "NaN")):
        with pytest.raises(IllegalInput, match=fact):
            read_wav(tmp_path / f"{name}.wav")


def test_a_resampled_tone_is_the_same_tone() -> None:
    found = resampled(tone(200, 0.5, 8000).astype(np.float32), 8000, 6000)
    assert len(found) == 3000
    assert np.abs(np.fft.rfft(found)).argmax() == 100  # 200 Hz in half a second


def test_a_folder_of_recordings_is_a_task_of_unequal_lengths(tmp_path: Path) -> None:
    for row in range(30):
        write_wav(tmp_path / ("low", "high")[row % 2] / f"{row}.wav", tone((200, 2000)[row % 2], 0.1 + row / 300))
    task = load_task(str(tmp_path))
    rows = task.search_view().train
    assert (task.kind, task.labels, rows.rate, rows.values.shape[1]) == (
        "frame-classification",
        ("high", "low"),
        8000,
        1,
    )
    reader = FrameReader.fit(rows, FrameEmbedding(16, 8))
    examples = reader.examples(rows, 512)
    assert examples.lengths.tolist() == [1 + (len(rows.series(row)) - 200) // 80 for row in range(len(rows))]
    assert abs(examples.frames.mean()) < 1e-3
    padded, mask = examples.padded(np.arange(3))
    assert padded.shape == (3, examples.lengths[:3].max(), 16)
    assert (padded[~mask] == 0).all()
    assert (padded[1][mask[1]] == examples.frames[examples.offsets[1] : examples.offsets[2]]).all()
    assert FrameReader.of_config(reader.config, FrameEmbedding(16, 8)) == reader
    short = reader.examples(rows, 4)
    assert short.lengths.max() == 4
    assert short.uncut.tolist() == examples.lengths.tolist()


def write_tones(folder: Path) -> Path:
    for row in range(20):
        write_wav(folder / ("low", "high")[row % 2] / f"{row}.wav", tone((200, 2000)[row % 2], 0.2 + row / 300))
    return folder


def test_frames_have_the_window_hop_and_bands_that_are_wanted(tmp_path: Path) -> None:
    folder, embedding = write_tones(tmp_path), FrameEmbedding(16, 8)
    frames = {"window_ms": 32, "hop_ms": 16, "bands": 11}
    usual, task = load_task(str(folder)), load_task(str(folder), frames=frames)
    rows = task.search_view().train
    assert task.load["frames"] == frames
    assert rows.digest == usual.search_view().train.digest  # the rows are the same
    reader = FrameReader.fit(rows, embedding)
    found = reader.examples(rows, 512)
    assert found.lengths.tolist() == [1 + (len(rows.series(row)) - 256) // 128 for row in range(len(rows))]
    assert (found.frames[:, 11:] == [1, 0, 1, 0, 1]).all()  # what is left over
    assert np.abs(found.frames[:, :11].mean(0)).max() < 1e-3
    assert FrameReader.of_config(reader.config, embedding) == reader
    assert reader.frames(rows.series(0)).shape == (found.lengths[0], 16)


def test_frames_that_cannot_be_are_refused(tmp_path: Path) -> None:
    folder, embedding = write_tones(tmp_path), FrameEmbedding(16, 8)
    for wrong, named in (({"window_ms": 0}, "window_ms"), ({"bands": -1}, "bands"), ({"windw_ms": 9}, "window_ms")):
        with pytest.raises(FormwrightError, match=named):
            load_task(str(folder), frames=wrong)
    for other in ("digits", "mini-glue/sst2"):
        with pytest.raises(IllegalInput, match="frames"):
            load_task(other, frames={"bands": 5})
    many = load_task(str(folder), frames={"bands": 17}).search_view().train
    assert "17" in features_reason(many, embedding)
    trained = FrameReader.fit(load_task(str(folder)).search_view().train, embedding)
    with pytest.raises(IllegalInput, match="window_ms=25,hop_ms=10,bands=16"):
        trained.examples(load_task(str(folder), frames={"hop_ms": 5}).search_view().train, 512)


def test_spoken_digits_have_their_official_test_set(tmp_path: Path) -> None:
    for digit in range(10):
        for number in range(10):
            samples = derive(digit, "digit", number).uniform(-1, 1, 300)
            write_wav(tmp_path / "recordings" / f"{digit}_ann_{number}.wav", samples)
    for task in (load_task("fsdd", tmp_path), load_task(str(tmp_path / "recordings")), load_task(str(tmp_path))):
        view, test = task.search_view(), _made(task).test
        assert (len(view.train) + len(view.validation), len(test)) == (50, 50)
        assert np.bincount(test.labels).tolist() == [5] * 10


def test_spoken_digits_of_the_official_test_set_alone_are_refused(tmp_path: Path) -> None:
    for row in range(10):
        write_wav(tmp_path / f"{row % 2}_ann_{row // 2}.wav", tone(200 + row))
    with pytest.raises(IllegalInput, match="test set"):
        load_task(str(tmp_path))


@pytest.mark.parametrize("option", ["text", "label", "series"])
@pytest.mark.parametrize("digits", [False, True])
def test_recordings_have_no_columns_to_name(tmp_path: Path, option: str, digits: bool) -> None:
    for row in range(20):
        name = f"{row % 2}_ann_{row}.wav" if digits else f"{'ab'[row % 2]}/{row}.wav"
        write_wav(tmp_path / name, tone(200 + row))
    given = ("x",) if option == "text" else "x"
    with pytest.raises(IllegalInput, match=rf"recordings.*--{option}"):
        load_task(str(tmp_path), **{option: given})
    assert load_task(str(tmp_path)).labels


def test_spoken_digits_have_no_validation_set_to_keep_whole(tmp_path: Path) -> None:
    for row in range(20):
        write_wav(tmp_path / f"{row % 2}_ann_{row}.wav", tone(200 + row))
    with pytest.raises(IllegalInput, match="--official-dev"):
        load_task(str(tmp_path), official_dev=True)
    assert load_task(str(tmp_path)).load["official_dev"] is False


def test_recordings_of_another_rate_are_converted(tmp_path: Path) -> None:
    write_wav(tmp_path / "x.wav", tone(200, 0.1, 4000), 4000)
    samples, rate = read_wav(tmp_path / "x.wav")
    rows = unlabelled_frames([(samples[:, None], rate)])
    reader = FrameReader.fit(unlabelled_frames([(resampled(samples, rate, 8000)[:, None], 8000)]), FrameEmbedding(8, 8))
    assert reader.examples(rows, 512).lengths.tolist() == [1 + (800 - 200) // 80]
    both = unlabelled_frames([(resampled(samples, rate, 8000)[:, None], 8000), (samples[:, None], rate)])
    assert (both.rate, np.diff(both.offsets).tolist()) == (8000, [800, 800])  # the rate of the first
    with pytest.raises(IllegalInput, match="recordings"):
        reader.examples(unlabelled_frames([(samples[:, None], 0)]), 512)


@pytest.mark.parametrize("whole", [True, False])
def test_folders_for_validation_are_kept_whole_where_that_is_wanted(tmp_path: Path, whole: bool) -> None:
    for row in range(30):
        part = "train" if row < 20 else "validation"
        write_wav(tmp_path / part / ("a", "b")[row % 2] / f"{row:02}.wav", tone(200 + row))
    task = load_task(str(tmp_path), official_dev=whole)
    assert (len(task.search_view().validation), task.has_test) == ((10, False) if whole else (5, True))


def test_recordings_have_the_rate_of_most_of_them(tmp_path: Path) -> None:
    for row in range(20):
        rate = 4000 if row < 2 else 8000
        write_wav(tmp_path / ("a", "b")[row % 2] / f"{row:02}.wav", tone(200 + row, 0.1, rate), rate)
    rows = _made(load_task(str(tmp_path)))
    assert {part.rate for part in (rows.train, rows.validation, rows.test)} == {8000}
    assert set(np.diff(rows.train.offsets)) == {800}


@pytest.mark.data
def test_the_published_digits_are_divided_officially(data_dir: Path, tmp_path: Path) -> None:
    import tarfile

    with tarfile.open(data_dir / "fsdd" / "recordings_subset.tar.gz") as file:
        file.extractall(tmp_path, filter="data")
    task = load_task("fsdd", tmp_path)
    view = task.search_view()
    assert (len(view.train) + len(view.validation), len(_made(task).test)) == (720, 300)
    assert view.train.rate == 8000
