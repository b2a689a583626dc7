import pytest
import torch

from formwright.core.errors import IllegalInput
from formwright.train.device import DEVICES, choose_device, precision, threads


def test_the_fastest_device_is_chosen_and_absent_ones_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device().type in DEVICES
    with precision(torch.device("cpu")):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device() == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device() == torch.device("cuda")
    assert choose_device("cpu") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(IllegalInput, match="no device is called 'gpu'; devices are auto, cuda, mps, cpu"):
        choose_device("gpu")
    with pytest.raises(IllegalInput, match="no cuda device that torch can use"):
        choose_device("cuda")


@pytest.mark.parametrize("fails", [False, True])
def test_the_number_of_threads_is_restored(fails: bool) -> None:
    before = torch.get_num_threads()
    try:
        with threads(before + 1):
            assert torch.get_num_threads() == before + 1
            if fails:
                raise KeyError
    except KeyError:
        assert fails
    assert torch.get_num_threads() == before
