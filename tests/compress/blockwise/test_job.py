"""What a block-wise compression begins with, and what it refuses before anything is trained."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from tests.compress.blockwise.small import job, pretended
from tests.compress.tiny import vit

from formwright.compress.blockwise.costs import PartCosts, untimed
from formwright.compress.blockwise.sizes import PARAMS
from formwright.core.errors import IllegalInput
from formwright.nn.operation_times import measured_operations


def test_a_job_travels_to_other_processes_and_into_files(tmp_path: Path) -> None:
    found = job(tmp_path)
    assert pickle.loads(pickle.dumps(found)) == found
    options = json.loads(json.dumps(found.options()))
    assert options["rounds"] == 2
    assert options["seed"] == 0
    assert not {"menu", "method"} & set(options)


def test_trained_blocks_serve_other_sizes_and_longer_lessons(tmp_path: Path) -> None:
    found = job(tmp_path)
    other = replace(found, sizes="4k", method=replace(found.method, student_steps=7))
    assert other.options() == found.options()
    assert replace(found, method=replace(found.method, round_steps=7)).options() != found.options()


def test_the_teacher_is_divided_into_blocks(tmp_path: Path) -> None:
    started = job(tmp_path).started()
    assert started.ends == (0, 1, 2)
    assert started.menu.widths == (4, 6, 8, 12, 16)
    assert started.name == "bert"
    assert not any(weight.requires_grad and weight.grad is not None for weight in started.teacher.parameters())


def test_other_text_weights_or_words_are_another_beginning(tmp_path: Path) -> None:
    first = job(tmp_path).started().digests()
    fewer = job(tmp_path, rows=30).started().digests()
    assert first.keys() == fewer.keys() == {"card", "weights", "text", "held text", "tokeniser"}
    assert {name for name in first if first[name] != fewer[name]} == {"text"}


def test_held_out_batches_are_spread_over_the_lengths(tmp_path: Path) -> None:
    started = job(tmp_path, text="", length=16, rows=40).started()
    found = started.held_batches(4)
    lengths = [batch.inputs.shape[1] for batch in found]
    assert len(found) == 4
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]
    every = [batch.inputs.shape[1] for batch in started.held_batches(10**6)]
    assert len(every) > 8
    assert lengths == [every[int((place + 0.5) * len(every) / 4)] for place in range(4)]
    assert lengths[0] > every[0]  # not the headings of a few words


@pytest.mark.parametrize("sizes", ["100", "1M", "3k,9000000"])
def test_sizes_out_of_reach_are_refused_with_the_range(tmp_path: Path, sizes: str) -> None:
    with pytest.raises(IllegalInput, match=r"cannot be met: with this model, sizes reach from 0\.\d+k to 8\.68k"):
        job(tmp_path, sizes=sizes).started().refuse()


@pytest.mark.parametrize("sizes", ["0.001ms", "1000ms"])
def test_milliseconds_out_of_reach_are_refused(tmp_path: Path, sizes: str) -> None:
    started = job(tmp_path, sizes=sizes).started()
    started.refuse()
    costs = PartCosts(started.menu, measured_operations(started.menu, measured=pretended))
    with pytest.raises(IllegalInput, match="sizes reach from"):
        started.refuse_slow(costs)


def test_limits_that_only_exclude_each_other_are_refused(tmp_path: Path) -> None:
    started = job(tmp_path, sizes="0.5k@1ms").started()
    started.refuse()
    times = untimed(started.menu).times
    slow = {key: 5.0 if key[1] < 16 else 0.1 for key in times.operations}  # only the widest is fast
    costs = PartCosts(started.menu, replace(times, operations=slow))
    most = costs.extremes(PARAMS)[1]
    told = rf"no assembly of blocks keeps params <= 500 \(they have [\d,]+ to {most:,}, .* and latency_ms <= 1"
    with pytest.raises(IllegalInput, match=told):
        started.refuse_slow(costs)


def test_models_that_cannot_teach_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="an encoder of text"):
        job(tmp_path, model=str(vit(tmp_path))).started()
    with pytest.raises(IllegalInput, match="device"):
        job(tmp_path, device="tpu").started()
