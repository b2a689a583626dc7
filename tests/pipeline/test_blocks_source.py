"""What block-wise stages share, and what is refused before anything is written."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from tests.compress.tiny import vit
from tests.pipeline.block_runs import begun, blockwise, here, settled, stage

from formwright.core.errors import IllegalInput
from formwright.pipeline.blocks_source import Source
from formwright.pipeline.pipeline import Pipeline
from formwright.space.zoo.chains import REAL


def source_of(folder: Path, **changes: Any) -> Source:
    run = begun(folder, **changes)
    found: Source = run.artifact(run.pipeline.named["source"])
    return found


def test_a_pipeline_is_plain_data_and_its_sizes_and_last_steps_are_extents(tmp_path: Path) -> None:
    made = blockwise(tmp_path)
    assert Pipeline.from_json(json.loads(json.dumps(made.to_json()))) == made
    other = blockwise(tmp_path, sizes="4k", settings={"students.steps": 7})
    assert other.to_json(extents=False) == made.to_json(extents=False)
    assert blockwise(tmp_path, settings={"blocks.steps": 7}).to_json(extents=False) != made.to_json(extents=False)


def test_the_teacher_is_divided_into_blocks_and_travels(tmp_path: Path) -> None:
    source = source_of(tmp_path)
    assert source.ends == (0, 1, 2)
    assert source.menu.widths == (4, 6, 8, 12, 16)
    assert source.name == "bert"
    again = cloudpickle.loads(cloudpickle.dumps(source))
    assert again.digests == source.digests
    assert again.held_batches(2)[0].inputs.equal(source.held_batches(2)[0].inputs)


def test_other_text_weights_or_words_are_another_beginning(tmp_path: Path) -> None:
    first, fewer = source_of(tmp_path).digests, source_of(tmp_path, rows=30).digests
    assert first.keys() == fewer.keys() == {"card", "weights", "text", "held text", "tokeniser"}
    assert {name for name in first if first[name] != fewer[name]} == {"text"}


def test_held_out_batches_are_spread_over_the_lengths(tmp_path: Path) -> None:
    source = source_of(tmp_path, text="", length=16, rows=40)
    found = source.held_batches(4)
    lengths = [batch.inputs.shape[1] for batch in found]
    assert len(found) == 4
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]
    every = [batch.inputs.shape[1] for batch in source.held_batches(10**6)]
    assert len(every) > 8
    assert lengths == [every[int((place + 0.5) * len(every) / 4)] for place in range(4)]
    assert lengths[0] > every[0]  # not the headings of a few words


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ("100", r"sizes reach from 0\.\d+k to 8\.68k"),
        ("1M", r"sizes reach from 0\.\d+k to 8\.68k"),
        ("3k,9000000", r"sizes reach from 0\.\d+k to 8\.68k"),
        ("0.001ms", "sizes reach from"),
        ("1000ms", "sizes reach from"),
        ("3k,3000", "twice"),
        ("", "--sizes"),
    ],
)
def test_sizes_out_of_reach_are_refused_with_the_range(tmp_path: Path, sizes: str, told: str) -> None:
    run = begun(tmp_path, sizes=sizes)
    with pytest.raises(IllegalInput, match=told):
        settled(run)
    assert not run.out.exists()


def test_limits_that_only_exclude_each_other_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from formwright.pipeline.blocks_bases import MeasureOperations
    from formwright.search.chain_costs import untimed

    run = begun(tmp_path, sizes="0.5k@1ms")
    times = untimed(run.artifact(run.pipeline.named["source"]).menu).times
    slow = {(name, width): 5.0 if width < 16 else 0.1 for name in REAL for width in (4, 6, 8, 12, 16)}
    monkeypatch.setattr(MeasureOperations, "measured", lambda *_: replace(times, operations=slow))
    with pytest.raises(IllegalInput, match=r"params <= 500 \(.*\) and latency_ms <= 1|params <= 500.*latency_ms <= 1"):
        settled(run)


def test_models_that_cannot_teach_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="encoder of text"):
        source_of(tmp_path, model=str(vit(tmp_path)))
    with pytest.raises(IllegalInput, match="device"):
        source_of(tmp_path, device="tpu")


def test_operations_are_measured_once_for_a_check_and_the_stage(tmp_path: Path) -> None:
    run = settled(begun(tmp_path, sizes="6k@0.1ms"))
    times = run.artifact(run.pipeline.named["operation-times"])
    assert stage(run, "operation-times").measured(here(run, "operation-times")) is times
    assert not run.out.exists()
