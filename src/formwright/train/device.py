"""The device and precision of training, chosen by what the machine has."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from formwright.core.errors import IllegalInput

DEVICES = ("cuda", "mps", "cpu")


def choose_device(name: str = "auto") -> torch.device:
    """Return the device of that name, or with `auto` the fastest that this machine has."""
    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device_name(name) == "auto":
        return torch.device(next(device for device in DEVICES if present[device]))
    if not present[name]:
        raise IllegalInput(
            f"this machine has no {name} device that torch can use; choose another with --device, such as cpu"
        )
    return torch.device(name)


def device_name(name: str) -> str:
    """Return the name of a device, whether or not this machine has it; raise for an unknown name."""
    if name not in ("auto", *DEVICES):
        raise IllegalInput(f"no device is called {name!r}; devices are auto, {', '.join(DEVICES)}")
    return name


def precision(device: torch.device) -> AbstractContextManager[object]:
    """Compute in bfloat16 where the device supports it, otherwise in float32."""
    if device.type == "cuda" and torch.cuda.is_bf16_supported():
        return torch.autocast("cuda", torch.bfloat16)
    return nullcontext()


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Set the number of threads within the block: float sums, and so every loss, depend on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
