"""One readable training loop, its schedule, its losses and its checkpoints."""

from formwright.core.callable_package import call_package

call_package(__name__, "formwright.api:train")
