"""Models for other runtimes: ONNX and OpenVINO files, checked against torch before they are kept."""

from formwright.nn.deploy.exporters import Exported, Kind, check_installed, export
from formwright.nn.deploy.runtimes import Runtime, open_file

__all__ = ["Exported", "Kind", "Runtime", "check_installed", "export", "open_file"]
