"""How fast blocks and students are trained here."""

from pathlib import Path

import pytest
from tests.compress.blockwise.small import job

from formwright.compress.blockwise.speeds import measured_speeds


@pytest.mark.slow
def test_everything_takes_some_time(tmp_path: Path) -> None:
    started = job(tmp_path).started()
    before = {name: tensor.clone() for name, tensor in started.teacher.state_dict().items()}
    speeds = measured_speeds(started)
    assert 0 < speeds.block < 60
    assert 0 < speeds.student < 60
    assert 0 <= speeds.judging < 600
    assert speeds.once > 0
    after = started.teacher.state_dict()
    assert all(tensor.equal(after[name]) for name, tensor in before.items())
