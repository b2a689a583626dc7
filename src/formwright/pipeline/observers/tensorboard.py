"""Write TensorBoard event files; torch and TensorFlow are not needed."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from formwright.core.extras import need
from formwright.core.options import option
from formwright.pipeline.observers import ObserverPart, Scalars, folder_of

if TYPE_CHECKING:
    from formwright.pipeline.run import PipelineRun


@dataclass(frozen=True)
class TensorBoard(ObserverPart):
    """Write event files that `tensorboard --logdir FOLDER` shows: losses by stage, trials, and delivered models."""

    NAME: ClassVar[str] = "tensorboard"
    MODULE: ClassVar[str] = "tensorboard.summary.writer.event_file_writer"

    folder: str = option("", "folder of the event files; by default observers/tensorboard in the folder of the run")
    every: int = option(10, "training steps between two losses")

    def start(self, run: "PipelineRun") -> "_Events":
        folder = folder_of(run, self.NAME, self.folder)
        events = _Events(need(self.MODULE, self.NAME).EventFileWriter(str(folder)), max(1, self.every))
        shown = json.dumps(run.pipeline.to_json(), indent=1)
        events.text("pipeline", "\n".join(f"    {line}" for line in shown.splitlines()))
        return events


class _Events(Scalars):
    """One event file."""

    def __init__(self, writer: Any, every: int) -> None:
        self._writer, self.every, self._stages = writer, every, 0
        self._event = need("tensorboard.compat.proto.event_pb2", "tensorboard").Event
        self._summary = need("tensorboard.compat.proto.summary_pb2", "tensorboard")
        self._tensor = need("tensorboard.compat.proto.tensor_pb2", "tensorboard").TensorProto

    def text(self, tag: str, text: str, step: int = 0) -> None:
        plugin = self._summary.SummaryMetadata.PluginData(plugin_name="text")
        tensor = self._tensor(dtype=7, string_val=[text.encode()])  # 7: strings
        tensor.tensor_shape.dim.add(size=1)
        value = self._summary.Summary.Value(
            tag=f"{tag}/text_summary", tensor=tensor, metadata=self._summary.SummaryMetadata(plugin_data=plugin)
        )
        self._add([value], step)

    def scalars(self, values: Mapping[str, float], kind: str, step: int) -> None:
        self._add([self._summary.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()], step)

    def _add(self, values: list[Any], step: int) -> None:
        self._writer.add_event(
            self._event(wall_time=time.time(), step=step, summary=self._summary.Summary(value=values))
        )

    def stage(self, name: str) -> None:
        self.text("stage", name, self._stages)
        self._stages += 1

    def trial(self, number: int, metrics: Mapping[str, float], reason: str) -> None:
        super().trial(number, metrics, reason)
        if reason:
            self.text("failures", reason, number)
        self._writer.flush()

    def end(self, run: "PipelineRun", state: str) -> None:
        self._writer.close()
