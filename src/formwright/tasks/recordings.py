"""Tasks of recordings in WAV files: a folder for each label, or the names of the Free Spoken Digit Dataset."""

import re
import struct
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.core.remember import remember, remembers
from formwright.tasks.frame_options import FrameOptions
from formwright.tasks.frames import FrameRows, resampled
from formwright.tasks.labelled_folders import LabelledFiles, classes_task, labelled_files
from formwright.tasks.rows import Splits
from formwright.tasks.splitting import divided
from formwright.tasks.task import Task
from formwright.tasks.text_files import MOST_WHOLE, data_folder, file_digests, reading

RECORDINGS = (".wav",)
FSDD = "fsdd"  # spoken digits: 0_jackson_12.wav is the twelfth time that jackson says zero
_FSDD_FOLDER = "recordings"
_FSDD_NAME = re.compile(r"(\d)_[a-z]+_(\d+)\.wav")
_FSDD_TEST = 5  # recordings with a number below this are the official test set


@remembers
@dataclass(frozen=True)
class Recordings:
    """Read the splits from WAV files; `digests` are those of their bytes."""

    folder: str
    files: LabelledFiles
    official_dev: bool
    digests: tuple[str, ...]

    def __call__(self) -> Splits[FrameRows]:
        """Return all rows, read on the first call in a process."""
        return _splits(self)


def has_fsdd_names(folder: Path) -> bool:
    """Return whether WAV files of a folder, or of its folder `recordings`, are named as those of FSDD."""
    inner = folder / _FSDD_FOLDER
    names = [path.name for path in (inner if inner.is_dir() else folder).glob("*.wav")] if folder.is_dir() else []
    return bool(names) and all(_FSDD_NAME.fullmatch(name) for name in names)


def fsdd_task(name: str, folder: Path | None, official_dev: bool = False) -> Task:
    """Make the task of spoken digits, with the official test set: of every digit and speaker the first recordings."""
    if official_dev:
        raise IllegalInput(f"the spoken digits of {name} come without a validation set; leave out --official-dev")
    if folder is None:
        raise IllegalInput(f"the task {name!r} is read from its files; give the folder of WAV files with --data DIR")
    folder = data_folder(data_folder(folder, FSDD), _FSDD_FOLDER)
    if not has_fsdd_names(folder):
        raise IllegalInput(f"no recordings in {folder}: expected files called DIGIT_SPEAKER_NUMBER.wav")
    rows: dict[str, list[tuple[Path, int]]] = {"train": [], "test": []}
    for path in sorted(folder.glob("*.wav")):
        digit, number = _FSDD_NAME.fullmatch(path.name).groups()  # type: ignore[union-attr]
        rows["test" if int(number) < _FSDD_TEST else "train"].append((path, int(digit)))
    if not rows["train"]:
        raise IllegalInput(
            f"all recordings in {folder} have numbers below {_FSDD_TEST}, which are the official test set: expected "
            "others to train on"
        )
    files = tuple((split, *map(tuple, zip(*pairs, strict=True))) for split, pairs in rows.items() if pairs)
    found = LabelledFiles(files, tuple(str(digit) for digit in range(10)))  # type: ignore[arg-type]
    return _task(name, folder, found, official_dev=False, about="spoken digits")


def recordings_task(name: str, official_dev: bool = False) -> Task:
    """Make a task of the WAV files in `DIR/LABEL/`, or in `DIR/train/LABEL/`, `DIR/test/LABEL/` and so on."""
    found = labelled_files(Path(name), RECORDINGS)
    return _task(name, Path(name), found, official_dev, f"recordings in {Path(name).name}")


def with_frame_options(task: Task, options: FrameOptions) -> Task:
    """Return a task of recordings whose models read frames with these options."""
    if not getattr(task.search_view().train, "rate", 0):
        raise IllegalInput(f"the task {task.name!r} has no recordings; --frames is for these")
    return replace(task, splits=_OtherFrames(task, options))


@dataclass(frozen=True)
class _OtherFrames:
    """Make the rows of a task; how they become frames follows from the training rows."""

    task: Task
    options: FrameOptions

    def __call__(self) -> Splits[FrameRows]:
        made = self.task.splits()
        return replace(made, train=replace(made.train, options=self.options))


def _task(name: str, folder: Path, found: LabelledFiles, official_dev: bool, about: str) -> Task:
    source = Recordings(str(folder), found, official_dev, file_digests(found.paths))
    return classes_task(name, "frame-classification", source, found.labels, about)


@remember
def _splits(source: Recordings) -> Splits[FrameRows]:
    read = {split: [read_wav(path) for path in files] for split, files, _ in source.files.files}
    rate = Counter(rate for _, rate in read["train"]).most_common(1)[0][0]
    rows = {
        split: FrameRows.of(
            [resampled(samples, own, rate)[:, None] for samples, own in read[split]],
            labels,
            rate=rate,
            numbers=tuple(range(len(labels))),
            source=source.folder,
        )
        for split, _, labels in source.files.files
    }
    return divided(rows, source.official_dev, by_class=True)


def read_wav(path: Path) -> tuple[NDArray[np.float32], int]:
    """Return the samples of a WAV file, from -1 to 1 and the mean of its channels, and their number a second.

    Samples are PCM of 8 to 32 bits, or floats.
    """
    with reading(path):
        if path.stat().st_size > MOST_WHOLE:
            raise IllegalInput(f"{path} has more than {MOST_WHOLE:,} bytes, which is more than is read at once")
        chunks = _chunks(path.read_bytes())
    try:
        (_, form), (size, content) = chunks[b"fmt "], chunks[b"data"]
        encoding, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", form)
        if encoding == _EXTENSIBLE:
            (encoding,) = struct.unpack_from("<H", form, 24)
        samples = _SAMPLES[encoding, bits]
    except (KeyError, struct.error):
        raise IllegalInput(f"cannot read {path}: expected a WAV file of PCM or float samples, not compressed") from None
    if len(content) < size:
        raise IllegalInput(
            f"{path} is cut short: it has {len(content):,} of {size:,} bytes; replace or remove the file"
        )
    whole = len(content) // max(1, channels * bits // 8) * channels * bits // 8
    if not whole or not rate:
        raise IllegalInput(f"{path} has no samples; replace or remove the file")
    found = samples(content[:whole])
    if not np.isfinite(found).all():
        raise IllegalInput(f"the samples of {path} contain NaN or infinity; replace or remove the file")
    return found.reshape(-1, channels).mean(1).astype(np.float32), rate


def _chunks(content: bytes) -> dict[bytes, tuple[int, bytes]]:
    """Return the parts of a WAV file by name: how long each should be, and what there is of it."""
    found: dict[bytes, tuple[int, bytes]] = {}
    place = 12 if content[:4] == b"RIFF" and content[8:12] == b"WAVE" else len(content)
    while place + 8 <= len(content):
        name, size = struct.unpack_from("<4sI", content, place)
        found.setdefault(name, (size, content[place + 8 : place + 8 + size]))
        place += 8 + size + size % 2
    return found


def _whole_numbers(content: bytes, bits: int) -> NDArray[np.float64]:
    """Return samples of 8 bits (unsigned), or of 16, 24 or 32 bits, as numbers from -1 to 1."""
    if bits == 8:
        return (np.frombuffer(content, np.uint8).astype(np.float64) - 128) / 128
    if bits == 24:  # as the upper three of four bytes
        wide = np.zeros((len(content) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(content, np.uint8).reshape(-1, 3)
        content, bits = wide.tobytes(), 32
    found: NDArray[np.float64] = np.frombuffer(content, f"<i{bits // 8}") / 2 ** (bits - 1)
    return found


def _floats(content: bytes, bits: int) -> NDArray[np.float64]:
    return np.frombuffer(content, f"<f{bits // 8}").astype(np.float64)


_EXTENSIBLE = 0xFFFE  # the encoding follows later in the same part
_SAMPLES = {
    **{(1, bits): partial(_whole_numbers, bits=bits) for bits in (8, 16, 24, 32)},
    **{(3, bits): partial(_floats, bits=bits) for bits in (32, 64)},
}  # by encoding and bits
