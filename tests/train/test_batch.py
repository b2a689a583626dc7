from dataclasses import fields

import torch

from formwright.train.batch import Batch


def test_a_batch_moves_whole_and_only_when_it_must() -> None:
    names = [field.name for field in fields(Batch)]
    batch = Batch(**{name: torch.ones(2, 3) for name in names})
    assert batch.to(torch.device("cpu")) is batch
    moved = batch.to(torch.device("meta"))
    assert {getattr(moved, name).device.type for name in names} == {"meta"}


def test_what_is_absent_stays_absent() -> None:
    moved = Batch(torch.ones(1), torch.ones(1)).to(torch.device("meta"))
    assert moved.mask is None
    assert moved.follows is None
