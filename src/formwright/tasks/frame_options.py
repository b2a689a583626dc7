"""How recordings become frames, where a user wants other frames than the usual ones."""

from collections.abc import Mapping
from dataclasses import dataclass

from formwright.core.codec import Json
from formwright.core.options import PartReader, option


@dataclass(frozen=True)
class FrameOptions:
    """Window, hop and number of mel bands of the frames of recordings."""

    window_ms: float = option(25.0, "milliseconds of a frame", least=1, most=1000)
    hop_ms: float = option(10.0, "milliseconds from one frame to the next", least=1, most=1000)
    bands: int | None = option(
        None, "mel bands of a frame (default: as many as a frame of the design has numbers)", least=1
    )

    def samples(self, rate: int) -> tuple[int, int]:
        """Return window and hop in samples of a recording with `rate` samples a second."""
        return max(1, round(rate * self.window_ms / 1000)), max(1, round(rate * self.hop_ms / 1000))


def frame_options(given: Mapping[str, Json]) -> FrameOptions:
    """Read the options from a mapping; raise with all that is wrong."""
    reader = PartReader()
    found: FrameOptions = reader.read(FrameOptions, given, "frames")
    return reader.finished(found, "frames")
