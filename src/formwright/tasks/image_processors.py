"""What the image processors of transformers do to a picture, read from the `preprocessor_config.json` of a model."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from formwright.arch.embeddings import PatchEmbedding
from formwright.core.errors import IllegalInput
from formwright.tasks.rows import Scale

_FILTERS = range(6)  # Pillow's numbers of them
_BILINEAR, _BICUBIC = 2, 3
_STOCK_CHANNELS = 3


@dataclass(frozen=True)
class _Processor:
    """What a processor does if its configuration does not say: files from older versions leave much out.

    A single number as `size` is that of a square for some processors, and that of the shorter side for others. With
    `middle`, the middle of a picture is taken where its shorter side was resized.
    """

    size: Any
    crop: int | None = None
    square: bool = True
    middle: bool = False
    resample: int = _BILINEAR
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    deviation: tuple[float, ...] = (0.5, 0.5, 0.5)


_MEAN, _DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)  # of CLIP's pictures
_PROCESSORS = {
    "ViT": _Processor(224),
    "DeiT": _Processor(256, 224, resample=_BICUBIC),
    "CLIP": _Processor({"shortest_edge": 224}, 224, square=False, resample=_BICUBIC, mean=_MEAN, deviation=_DEVIATION),
    "Formwright": _Processor(224, middle=True, mean=(), deviation=()),
    "": _Processor(None, middle=True, mean=(), deviation=()),  # no name: what is not said is not done
}
_NAME = re.compile(r"(\w*?)(FeatureExtractor|ImageProcessor)(Fast|Pil)?")
_KNOWN = ("do_resize", "do_center_crop", "do_rescale", "do_normalize")
_HARMLESS = ("do_convert_rgb", "do_reduce_labels")  # pictures are converted in any case; the other changes labels only
_OTHER_STEPS = ("crop_pct", "rescale_offset")
_ROUNDING = 1e-6


def picture_settings(config: Mapping[str, Any], embedding: PatchEmbedding) -> dict[str, Any]:
    """Return the fields of a `PictureReader` that a configuration describes; refuse by name what it cannot do."""
    config = {name: value for name, value in config.items() if value is not None}  # null says nothing
    usual = _processor(config)
    steps = [name for name in config if name.startswith("do_") and name not in (*_KNOWN, *_HARMLESS)]
    strange = next((name for name in (*steps, *_OTHER_STEPS) if config.get(name)), None)
    if strange is not None:
        raise IllegalInput(f"{strange} of an image processor is not supported; use a model that does without it")
    side, resize = embedding.image, bool(config.get("do_resize", True))
    squeeze, resized = _size(config.get("size", usual.size), usual, side)
    crop = _crop(config, usual)
    if crop is None and not resize:
        raise IllegalInput("do_resize is false without do_center_crop, which leaves pictures in their own sizes")
    if crop is None and not squeeze and not usual.middle:
        raise IllegalInput("size has a shortest_edge without do_center_crop, and designs read squares")
    if (crop or resized) != side:
        raise IllegalInput(f"pictures have {crop or resized} pixels a side, and the design reads {side}")
    if embedding.channels != _STOCK_CHANNELS and (not resize or resized != side):
        raise IllegalInput(f"crop_size other than size is not supported for {embedding.channels} channels")
    resample = config.get("resample", usual.resample)
    if resample not in _FILTERS:
        raise IllegalInput(f"resample {resample} of the image processor is not one of Pillow's filters (0 to 5)")
    return {
        "scale": _scale(config, usual, embedding.channels),
        "squeeze": squeeze,
        "resample": int(resample),
        "resized": None if resized == side else resized,
        "resize": resize,
    }


def _processor(config: Mapping[str, Any]) -> _Processor:
    name = str(config.get("image_processor_type") or config.get("feature_extractor_type") or "ImageProcessor")
    found = _NAME.fullmatch(name)
    if found is None or found[1] not in _PROCESSORS:
        known = ", ".join(f"{family}ImageProcessor" for family in _PROCESSORS if family)
        raise IllegalInput(f"the image processor {name} is not supported; supported are {known}")
    return _PROCESSORS[found[1]]


def _size(size: Any, usual: _Processor, side: int) -> tuple[bool, int]:
    """Return whether pictures are resized to a square, and the pixels of its side or of their shorter side."""
    if size is None:
        return False, side
    if isinstance(size, int):
        return usual.square, size
    if isinstance(size, Mapping) and set(size) == {"shortest_edge"}:
        return False, int(size["shortest_edge"])
    return True, _square("size", size)


def _crop(config: Mapping[str, Any], usual: _Processor) -> int | None:
    """Return the side of the middle that is taken of a picture; None if it is taken whole."""
    if not config.get("do_center_crop", usual.crop is not None):
        return None
    size = config.get("crop_size", usual.crop)
    if size is None:
        raise IllegalInput("do_center_crop needs a crop_size")
    return _square("crop_size", size)


def _square(name: str, size: Any) -> int:
    sides = size
    if isinstance(size, Mapping):
        sides = [size.get("height"), size.get("width")] if set(size) == {"height", "width"} else []
    sides = [sides] * 2 if isinstance(sides, int) else sides
    if len(sides) != 2 or sides[0] != sides[1]:
        raise IllegalInput(f"{name} {size} of the image processor is not supported: designs read squares")
    return int(sides[0])


def _scale(config: Mapping[str, Any], usual: _Processor, channels: int) -> Scale | None:
    """Return the normalisation of pixels from 0 to 1, into which another factor of the pixels is multiplied."""
    factor = 255 * float(config.get("rescale_factor", 1 / 255)) if config.get("do_rescale", True) else 255.0
    mean, deviation = (
        _by_channel(config.get(name, usual_one), channels)
        for name, usual_one in (("image_mean", usual.mean), ("image_std", usual.deviation))
    )
    if not config.get("do_normalize", bool(mean)) or not mean or not deviation:
        return None if abs(factor - 1) < _ROUNDING else Scale((0.0,) * channels, (1 / factor,) * channels)
    if len(mean) != channels or len(deviation) != channels:
        raise IllegalInput(f"image_mean and image_std are for {len(mean)} channels, and the design reads {channels}")
    if abs(factor - 1) >= _ROUNDING:
        mean, deviation = (tuple(one / factor for one in values) for values in (mean, deviation))
    return Scale(mean, deviation)


def _by_channel(values: Any, channels: int) -> tuple[float, ...]:
    """Return the mean or the deviation of each channel; a single number is that of all."""
    return (float(values),) * channels if isinstance(values, int | float) else tuple(map(float, values or ()))
