"""Pictures as a model reads them, for models with another number of channels than the three of stock processors."""

from typing import Any, ClassVar

import numpy as np
from transformers.image_processing_utils import BaseImageProcessor, BatchFeature

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # PIL's, by the number of channels


class FormwrightImageProcessor(BaseImageProcessor):
    """Turn pictures into pixels (batch, channels, height, width) with values from 0 to 1.

    A picture is one of PIL or an array (height, width) or (height, width, channels) of whole numbers up to 255. Another
    number of channels is converted as PIL does it, another size is scaled bilinearly.
    """

    model_input_names: ClassVar[list[str]] = ["pixel_values"]

    def __init__(self, size: dict[str, int] | None = None, num_channels: int = 1, **others: Any) -> None:
        super().__init__(**others)
        self.size = size or {"height": 224, "width": 224}
        self.num_channels = num_channels

    def __call__(self, images: Any, return_tensors: str | None = None, **_: Any) -> Any:
        several = list(images) if isinstance(images, list | tuple) else [images]
        pixels = np.stack([self._pixels(image) for image in several])
        return BatchFeature({"pixel_values": pixels}, tensor_type=return_tensors)

    preprocess = __call__

    def _pixels(self, image: Any) -> Any:
        from PIL import Image  # noqa: PLC0415  where pictures are prepared, PIL is there

        picture = image if isinstance(image, Image.Image) else Image.fromarray(np.asarray(image))
        picture = picture.convert(_MODES[self.num_channels])
        wanted = (self.size["width"], self.size["height"])
        if picture.size != wanted:
            picture = picture.resize(wanted, Image.Resampling.BILINEAR)
        pixels = np.asarray(picture).astype(np.float32) / np.float32(255)
        # (height, width) or (height, width, channels) to (channels, height, width)
        return pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, -1, 0)
