"""The kinds of frames: recordings and series."""

from dataclasses import replace

from formwright.arch.embeddings import FrameEmbedding
from formwright.core.registry import Late
from formwright.tasks.frames import FrameExamples, FrameReader, FrameRows, unlabelled_frames
from formwright.tasks.series import has_frames, own_frames, read_frames_files
from formwright.tasks.text_kinds import SEQUENCE_CLASSIFICATION


def frames(rows: FrameRows, reader: FrameReader, length: int) -> FrameExamples:
    """Return series as their reader makes frames of them."""
    return reader.examples(rows, length)


def fewer_frames(examples: FrameExamples, frames: int, most: int) -> str:
    """Name the options by which a recording has fewer frames; empty for other series."""
    return "" if examples.options is None else examples.options.for_fewer(frames, most)


def features_reason(rows: FrameRows, embedding: FrameEmbedding) -> str:
    """Say that a step of the series, or what is wanted of a recording, has more numbers than a frame."""
    if rows.options is not None and (rows.options.bands or 0) > embedding.features:
        return f"{rows.options.bands} mel bands are wanted, and a frame has {embedding.features} numbers"
    dimensions = rows.values.shape[1]
    if rows.rate or dimensions <= embedding.features:
        return ""
    return f"a step of the series has {dimensions} numbers, and a frame {embedding.features}: it needs {dimensions}"


FRAME_CLASSIFICATION = replace(
    SEQUENCE_CLASSIFICATION,
    name="frame-classification",
    about="one class for a recording or a series",
    short="series",
    suits=has_frames,
    own_task=own_frames,
    in_hub=False,
    in_steps=True,
    reads="frames",
    examples=frames,
    preprocessor=FrameReader,
    fewer=fewer_frames,
    check=features_reason,
    batch=Late("formwright.train.streams:frames"),
    read=read_frames_files,
    unlabelled=unlabelled_frames,
    binary_metrics=(),
    pretrainable=False,
)
