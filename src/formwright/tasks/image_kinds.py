"""The kinds of pictures."""

from dataclasses import replace

from formwright.arch.embeddings import PatchEmbedding
from formwright.core.registry import Late
from formwright.tasks.pictures import (
    PictureFiles,
    PictureReader,
    has_pictures,
    own_pictures,
    read_picture_files,
    unlabelled_pictures,
)
from formwright.tasks.rows import ImageRows
from formwright.tasks.text_kinds import SEQUENCE_CLASSIFICATION


def pixels(rows: ImageRows | PictureFiles, reader: PictureReader, _: int) -> ImageRows:
    """Return pictures as their reader makes pixels of them."""
    return reader.examples(rows)


def size_reason(rows: ImageRows | PictureFiles, embedding: PatchEmbedding) -> str:
    """Say that pictures have another size than an embedding reads; files are resized, so that they have any."""
    wanted = (embedding.channels, embedding.image)
    if isinstance(rows, PictureFiles) or rows.pixels.shape[1:3] == wanted:
        return ""
    channels, side = rows.pixels.shape[1:3]
    return f"images have {channels} channels and {side} pixels a side; it reads {wanted[0]} and {wanted[1]}"


def shrunk(rows: ImageRows | PictureFiles, embedding: PatchEmbedding) -> str:
    """Say that pictures are read at less than half of their size, or without their colours."""
    side, channels = rows.usual_size if isinstance(rows, PictureFiles) else (0, 0)
    if side <= 2 * embedding.image and channels <= embedding.channels:
        return ""
    grey = ", without their colours" if channels > embedding.channels else ""
    return (
        f"pictures whose shorter side has about {side} pixels are read as {embedding.image} x {embedding.image}{grey}; "
        "another space may lose less (`formwright list spaces`)"
    )


IMAGE_CLASSIFICATION = replace(
    SEQUENCE_CLASSIFICATION,
    name="image-classification",
    about="one class for an image",
    short="pictures",
    suits=has_pictures,
    own_task=own_pictures,
    in_hub=False,
    reads="patches",
    examples=pixels,
    preprocessor=PictureReader,
    check=size_reason,
    remark=shrunk,
    batch=Late("formwright.train.streams:pictures"),
    read=read_picture_files,
    unlabelled=unlabelled_pictures,
    cuts=False,
    binary_metrics=(),
    pretrainable=False,
    augmentations=("shift", "flip"),
)
