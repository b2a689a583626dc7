"""Tasks of pictures from a folder of files for each label, and how pictures become pixels that a design reads."""

import hashlib
import math
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from formwright.arch.embeddings import PatchEmbedding
from formwright.core.errors import IllegalInput
from formwright.core.extras import need
from formwright.core.remember import remember, remembers
from formwright.tasks.idx import has_idx_files, idx_pictures, idx_task, read_idx_pictures
from formwright.tasks.image_processors import picture_settings
from formwright.tasks.labelled_folders import LabelledFiles, classes_task, has_labelled_files, labelled_files
from formwright.tasks.preprocessor import Preprocessor
from formwright.tasks.rows import ImageRows, Scale, Splits, numbers_at
from formwright.tasks.splitting import divided
from formwright.tasks.tables import WholeTable
from formwright.tasks.task import Task
from formwright.tasks.text_files import file_digests

PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # Pillow's, by the number of channels
_GREY = ("1", "L", "LA", "I;16", "I", "F")
_LOOKED_AT = 20  # pictures whose headers tell the usual size
_BILINEAR = 2  # Pillow's number of it


@dataclass(frozen=True, eq=False)
class PictureFiles:
    """Files of pictures of any size, and the label of each; they become pixels for the designs that read them.

    `digests` are those of the files' bytes. `source` is their folder, and `numbers` are their places among its files.
    """

    UNIT: ClassVar[str] = "pictures"
    files: tuple[Path, ...]
    labels: NDArray[np.int64]
    digests: tuple[str, ...]
    numbers: tuple[int, ...] = field(default=(), kw_only=True)
    source: str = field(default="", kw_only=True)

    def __len__(self) -> int:
        return len(self.files)

    @cached_property
    def digest(self) -> str:
        content = "".join(self.digests).encode() + self.labels.astype("<i8").tobytes()
        return hashlib.sha256(content).hexdigest()

    @property
    def contents(self) -> Sequence[Hashable]:
        """Return the digest of each file; equal pictures belong to one split."""
        return self.digests

    def take(self, places: Sequence[int]) -> Self:
        """Return the rows at some places."""
        files, digests = tuple(self.files[place] for place in places), tuple(self.digests[place] for place in places)
        numbers = numbers_at(self.numbers, places)
        labels = self.labels[np.asarray(places, np.int64)]
        return replace(self, files=files, labels=labels, digests=digests, numbers=numbers)

    @property
    def usual_size(self) -> tuple[int, int]:
        """Return the shorter side in pixels and the channels of a picture in the middle of some; 0 if none is read."""
        pillow, found = need("PIL.Image", "pictures"), [(0, 0)]
        for path in self.files[:: max(1, len(self) // _LOOKED_AT)]:
            with suppress(OSError, ValueError, SyntaxError, pillow.DecompressionBombError), pillow.open(path) as file:
                found.append((min(file.size), 1 if file.mode in _GREY else len("RGB")))
        return sorted(found)[len(found) // 2]

    @property
    def shown(self) -> dict[str, Sequence[Any]]:
        return {"image": [str(file) for file in self.files], "label": self.labels.tolist()}


@remembers
@dataclass(frozen=True)
class PictureReader(Preprocessor):
    """How pictures become pixels: `channels` squares of `side` pixels, normalised by `scale` if there is one.

    A picture of another size is resized so that its shorter side has `resized` pixels (by default `side`), and its
    middle is taken; with `squeeze` it is resized to a square whatever its shape. Without `resize` only the middle is
    taken. `resample` is the number of one of Pillow's filters.
    """

    side: int
    channels: int
    scale: Scale | None = None
    squeeze: bool = False
    resample: int = _BILINEAR
    resized: int | None = None
    resize: bool = True

    @classmethod
    def fit(cls, rows: ImageRows | PictureFiles, embedding: PatchEmbedding) -> Self:
        """Return what a design reads, normalised by mean and deviation of training rows; numbers stay as they are."""
        plain = cls(embedding.image, embedding.channels)
        pixels: Any = plain.examples(rows).pixels
        return replace(plain, scale=pixel_scale(pixels)) if pixels.dtype == np.uint8 else plain

    @classmethod
    def of_config(cls, config: Mapping[str, Any], embedding: PatchEmbedding) -> Self:
        """Read `preprocessor_config.json` of a model; without one, pixels are read as they are."""
        return cls(embedding.image, embedding.channels, **picture_settings(config, embedding))

    @property
    def digest(self) -> str | None:
        """Return the SHA-256 of the configuration; None for the plain reader of pixels as they are."""
        return None if self == type(self)(self.side, self.channels) else super().digest

    @property
    def config(self) -> dict[str, Any]:
        """Return what `preprocessor_config.json` says; three channels are read by a stock class of transformers."""
        crop, resized = {"height": self.side, "width": self.side}, self.resized or self.side
        scale = {}
        if self.scale is not None:
            scale = {"image_mean": list(self.scale.mean), "image_std": list(self.scale.deviation)}
        common = {
            "size": {"height": resized, "width": resized} if self.squeeze else {"shortest_edge": resized},
            "resample": self.resample,
            "do_normalize": bool(scale),
            **scale,
        }
        if self.channels != len("RGB"):
            name = "FormwrightImageProcessor"
            code = {"AutoImageProcessor": f"formwright_nn_hf_image_processor.{name}"}
            return {**common, "image_processor_type": name, "auto_map": code, "num_channels": self.channels}
        return {
            **common,
            "image_processor_type": "CLIPImageProcessor",
            "crop_size": crop,
            "do_center_crop": not self.squeeze or self.resized is not None or not self.resize,
            "do_convert_rgb": True,
            "do_resize": self.resize,
            "do_rescale": True,
            "rescale_factor": 1 / 255,
        }

    def examples(self, rows: ImageRows | PictureFiles) -> ImageRows:
        """Return rows as pixels of this size; arrays must have it already."""
        if isinstance(rows, PictureFiles):
            return replace(_decoded(rows, self), scale=self.scale)
        wanted = (self.channels, self.side, self.side)
        if (found := rows.pixels.shape[1:]) != wanted:  # the kind checks training rows only
            raise IllegalInput(f"pictures of {rows.source or 'the task'} have the shape {found}; expected {wanted}")
        return replace(rows, scale=self.scale)

    def pixels(self, path: Path) -> NDArray[np.uint8]:
        """Read a picture as (channels, side, side)."""
        pillow, ops = need("PIL.Image", "pictures"), need("PIL.ImageOps", "pictures")
        try:
            with pillow.open(path) as file:
                picture = ops.exif_transpose(file).convert(_MODES[self.channels])
        except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
            reason = "its form is unknown" if isinstance(error, pillow.UnidentifiedImageError) else error
            raise IllegalInput(f"cannot read the picture {path}: {reason}; replace or remove the file") from None
        wide, high = self._resized(*picture.size)
        if (wide, high) != picture.size:
            picture = picture.resize((wide, high), pillow.Resampling(self.resample))
        left, top = (wide - self.side) // 2, (high - self.side) // 2  # outside of a picture all is black
        found = np.asarray(picture.crop((left, top, left + self.side, top + self.side)))
        return found[None] if found.ndim == 2 else np.moveaxis(found, -1, 0)

    def _resized(self, width: int, height: int) -> tuple[int, int]:
        """Return width and height before the middle is taken."""
        side = self.resized or self.side
        if not self.resize:
            return width, height
        if self.squeeze:
            return side, side
        longer = int(side * max(width, height) / min(width, height))  # as transformers rounds
        return (side, longer) if width <= height else (longer, side)


def _decoded(rows: PictureFiles, reader: PictureReader) -> ImageRows:
    """Read the pictures of files, once for each size: a split is read for its statistics and for its examples."""
    kept: dict[Any, ImageRows] = rows.__dict__.setdefault("_pixels", {})
    key = replace(reader, scale=None)
    if key not in kept:
        pixels = np.empty((len(rows), reader.channels, reader.side, reader.side), np.uint8)
        for place, path in enumerate(rows.files):
            pixels[place] = reader.pixels(path)
        kept[key] = ImageRows(pixels, rows.labels, numbers=rows.numbers, source=rows.source)
    return kept[key]


def pixel_scale(pixels: NDArray[np.uint8]) -> Scale:
    """Return mean and standard deviation of each channel, on the scale from 0 to 1, rounded to four digits."""
    steps = np.arange(256) / 255
    found = []
    for channel in range(pixels.shape[1]):
        counts = np.bincount(pixels[:, channel].ravel(), minlength=256)
        mean = (counts * steps).sum() / counts.sum()
        deviation = math.sqrt((counts * (steps - mean) ** 2).sum() / counts.sum())
        found.append((round(float(mean), 4), round(deviation, 4) or 1.0))  # a channel of one value is only shifted
    return Scale(tuple(mean for mean, _ in found), tuple(deviation for _, deviation in found))


def read_picture_files(path: Path, _: Sequence[str] = ()) -> WholeTable:
    """List a picture, or all pictures in a folder and in the folders within it; of IDX files, read the pixels."""
    if (idx := idx_pictures(path)) is not None:
        pixels = read_idx_pictures(idx)
        if not len(pixels):
            raise IllegalInput(f"{idx} has no pictures")
        rows = tuple({"picture": place} for place in range(len(pixels)))
        return WholeTable(("picture",), rows, tuple((picture,) for picture in pixels))
    found = sorted(file for file in path.rglob("*") if file.suffix.lower() in PICTURES) if path.is_dir() else [path]
    if not found:
        raise IllegalInput(f"no pictures in {path}: expected files that end in {', '.join(PICTURES)}, or IDX files")
    names = [str(file.relative_to(path)) if path.is_dir() else str(file) for file in found]
    return WholeTable(("file",), tuple({"file": name} for name in names), tuple((str(file),) for file in found))


def unlabelled_pictures(files: Sequence[tuple[str | NDArray[np.uint8]]]) -> PictureFiles | ImageRows:
    """Make rows without labels of files, or of grey pictures as arrays of one size."""
    if not isinstance(files[0][0], str):
        return ImageRows(np.stack([pixels for (pixels,) in files])[:, None], np.zeros(len(files), np.int64))
    paths = tuple(Path(str(file)) for (file,) in files)
    return PictureFiles(paths, np.zeros(len(paths), np.int64), file_digests(paths))


@remembers
@dataclass(frozen=True)
class PictureFolder:
    """Read the splits of a folder of pictures; `digests` are those of the files' bytes."""

    folder: str
    files: LabelledFiles
    official_dev: bool
    digests: tuple[str, ...]

    def __call__(self) -> Splits[PictureFiles]:
        """Return all rows, read on the first call in a process."""
        return _picture_splits(self)


def has_pictures(path: Path) -> str:
    """Say why a path seems to have pictures; empty if it does not."""
    if has_idx_files(path):
        return "the folder has IDX files"
    return "the folder has pictures by label" if has_labelled_files(path, PICTURES) else ""


def own_pictures(path: Path | str, text: Sequence[str] = (), label: str = "", official_dev: bool = False) -> Task:
    """Make a task of a user's folder of pictures: of IDX files, or a folder for each label."""
    if text or label:
        raise IllegalInput(f"{path} has pictures and no columns; leave out --text and --label")
    if has_idx_files(Path(path)):
        return idx_task(str(path), Path(path), official_dev)
    return picture_folder_task(str(path), official_dev)


def picture_folder_task(name: str, official_dev: bool = False) -> Task:
    """Make a task of the pictures in `DIR/LABEL/`, or in `DIR/train/LABEL/`, `DIR/test/LABEL/` and so on.

    Missing splits are divided off, stratified by class; equal files stay together.
    """
    need("PIL.Image", "pictures")
    found = labelled_files(Path(name), PICTURES)
    source = PictureFolder(name, found, official_dev, file_digests(found.paths))
    return classes_task(name, "image-classification", source, found.labels, f"pictures in {Path(name).name}")


@remember
def _picture_splits(source: PictureFolder) -> Splits[PictureFiles]:
    digests, rows = iter(source.digests), {}
    for split, files, labels in source.files.files:
        own, places = tuple(next(digests) for _ in files), tuple(range(len(files)))
        rows[split] = PictureFiles(files, np.array(labels, np.int64), own, numbers=places, source=source.folder)
    return divided(rows, source.official_dev, by_class=True)
