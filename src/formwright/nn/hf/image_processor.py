"""Pictures as a model reads them, for models with another number of channels than the three of stock processors."""

from typing import Any, ClassVar

import numpy as np
from transformers.image_processing_utils import BaseImageProcessor, BatchFeature

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # PIL's, by the number of channels
_BILINEAR = 2


class FormwrightImageProcessor(BaseImageProcessor):
    """Turn pictures into pixels (batch, channels, height, width) with values from 0 to 1, then normalise each channel.

    A picture is one of PIL or an array (height, width) or (height, width, channels) of whole numbers up to 255. Another
    number of channels is converted as PIL does it. With a `size` of `shortest_edge` a picture is resized so that its
    shorter side fits, and its middle is taken; with `height` and `width` it is resized to them whatever its shape.
    """

    model_input_names: ClassVar[list[str]] = ["pixel_values"]

    def __init__(
        self,
        size: dict[str, int] | None = None,
        num_channels: int = 1,
        image_mean: list[float] | None = None,
        image_std: list[float] | None = None,
        resample: int = _BILINEAR,
        **others: Any,
    ) -> None:
        super().__init__(**others)
        self.size = size or {"height": 224, "width": 224}
        self.num_channels = num_channels
        self.image_mean = image_mean or [0.0] * num_channels
        self.image_std = image_std or [1.0] * num_channels
        self.resample = resample

    def __call__(self, images: Any, return_tensors: str | None = None, **_: Any) -> Any:
        several = list(images) if isinstance(images, list | tuple) else [images]
        pixels = np.stack([self._pixels(image) for image in several])
        return BatchFeature({"pixel_values": pixels}, tensor_type=return_tensors)

    preprocess = __call__

    def _pixels(self, image: Any) -> Any:
        from PIL import Image  # noqa: PLC0415  where pictures are prepared, PIL is there

        picture = image if isinstance(image, Image.Image) else Image.fromarray(np.asarray(image))
        picture = picture.convert(_MODES[self.num_channels])
        edge = self.size.get("shortest_edge")
        wide, high = _fitting(picture.size, edge) if edge else (self.size["width"], self.size["height"])
        if picture.size != (wide, high):
            picture = picture.resize((wide, high), Image.Resampling(self.resample))
        if edge:
            left, top = (wide - edge) // 2, (high - edge) // 2
            picture = picture.crop((left, top, left + edge, top + edge))
        pixels = np.asarray(picture).astype(np.float32) / np.float32(255)
        # (height, width) or (height, width, channels) to (channels, height, width)
        pixels = pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, -1, 0)
        mean, deviation = (np.array(one, np.float32)[:, None, None] for one in (self.image_mean, self.image_std))
        return (pixels - mean) / deviation


def _fitting(size: tuple[int, int], edge: int) -> tuple[int, int]:
    """Return width and height of which the shorter is `edge`, rounded as transformers does."""
    width, height = size
    longer = int(edge * max(size) / min(size))
    return (edge, longer) if width <= height else (longer, edge)
