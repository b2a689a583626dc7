"""How recordings become frames, where a user wants other frames than the usual ones."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from formwright.core.codec import Json
from formwright.core.options import PartReader, option

_LONGEST = 1000  # milliseconds


@dataclass(frozen=True)
class FrameOptions:
    """Window, hop and number of mel bands of the frames of recordings."""

    window_ms: float = option(25.0, "milliseconds of a frame", least=1, most=_LONGEST)
    hop_ms: float = option(10.0, "milliseconds from one frame to the next", least=1, most=_LONGEST)
    bands: int | None = option(
        None, "mel bands of a frame (default: as many as a frame of the design has numbers)", least=1
    )

    def samples(self, rate: int) -> tuple[int, int]:
        """Return window and hop in samples of a recording with `rate` samples a second."""
        return max(1, round(rate * self.window_ms / 1000)), max(1, round(rate * self.hop_ms / 1000))

    def for_fewer(self, frames: int, most: int) -> str:
        """Say with which `--frames` a recording that has some number of frames now has at most `most`.

        Frames overlap by half at least, so that no sample is left out. Empty where frames would be too long.
        """
        hop = math.ceil(frames * self.hop_ms / most)
        if hop > _LONGEST:
            return ""
        window = min(_LONGEST, max(math.ceil(self.window_ms), 2 * hop))
        bands = "" if self.bands is None else f",bands={self.bands}"
        return f"--frames window_ms={window},hop_ms={hop}{bands}"


def frame_options(given: Mapping[str, Json]) -> FrameOptions:
    """Read the options from a mapping; raise with all that is wrong."""
    reader = PartReader()
    found: FrameOptions = reader.read(FrameOptions, given, "frames")
    return reader.finished(found, "frames")
