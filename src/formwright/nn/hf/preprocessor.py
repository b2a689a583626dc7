"""Say in a folder how pictures become what its model reads, so that `pipeline("image-classification")` works."""

from pathlib import Path
from typing import Any

from formwright.arch.card import Card
from formwright.arch.layers import PatchEmbedding
from formwright.nn.hf.files import write_json
from formwright.nn.hf.travel import write_image_processor

PREPROCESSOR = "preprocessor_config.json"
_COLOURS = 3  # channels that the stock processor gives


def write_preprocessor(card: Card, folder: Path) -> None:
    """Describe the pictures that a design reads: values from 0 to 1, as our tasks have them.

    A description that is there already, which came with the model, stays.
    """
    embedding = card.stacks[0].embedding
    if not isinstance(embedding, PatchEmbedding):
        return
    if embedding.channels != _COLOURS:
        write_image_processor(folder)
    if not (folder / PREPROCESSOR).exists():
        write_json(folder / PREPROCESSOR, _description(embedding))


def _description(embedding: PatchEmbedding) -> dict[str, Any]:
    size = {"height": embedding.image, "width": embedding.image}
    if embedding.channels != _COLOURS:
        return {
            "image_processor_type": "FormwrightImageProcessor",
            "auto_map": {"AutoImageProcessor": "formwright_nn_hf_image_processor.FormwrightImageProcessor"},
            "size": size,
            "num_channels": embedding.channels,
        }
    return {
        "image_processor_type": "ViTImageProcessor",
        "size": size,
        "do_convert_rgb": True,
        "do_resize": True,
        "resample": 2,  # PIL's bilinear
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": False,
    }
