"""The stage that scores heads and channels: files, orders, and what is shown."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.pipeline.compressions import BERT, Told, begun, compression, made

from formwright.core.errors import IllegalInput
from formwright.pipeline.score_parts import Order, read_importance, write_importance
from formwright.supernet.importance import Importance, magnitude, uniform

SCORES = (np.array([0.5, -1.0]), np.array([1e-300, 2.0, 3.0]), np.array([7.0])) * 5  # more than ten, whose names sort


@pytest.mark.parametrize(
    "importance",
    [Importance(SCORES), Importance(SCORES, np.arange(4.0)), Importance(SCORES, np.arange(4.0), np.arange(3.0)[::-1])],
)
def test_importance_survives_its_file(importance: Importance, tmp_path: Path) -> None:
    path = tmp_path / "below" / "importance.safetensors"
    write_importance(path, importance)
    again = read_importance(path)
    assert [scores.tolist() for scores in again.scores] == [scores.tolist() for scores in importance.scores]
    for name in ("hidden", "pooled"):
        before, after = getattr(importance, name), getattr(again, name)
        assert (after is None) == (before is None)
        assert before is None or after.tolist() == before.tolist()


def test_files_that_cannot_be_read_are_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(b"{")
    for name in ("absent", "broken"):
        with pytest.raises(IllegalInput, match=rf"cannot read .*{name}.*remove"):
            read_importance(tmp_path / name)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["first-order", "movement", "l1", "none"])
def test_parts_are_put_in_the_order_that_is_asked_for(order: Order, tmp_path: Path) -> None:
    told = Told()
    run = begun(compression(tmp_path, order=order, scores__batches=5), tmp_path / "out", told)
    found = made(run, "scores")
    assert [len(one) for one in found.space.scores] == [4, 64] * 2
    assert found.space.hidden is None
    weights = dict(run.artifact(run.pipeline.named["teacher"]).model.named_parameters())
    wanted = {"l1": magnitude(weights, BERT), "none": uniform(BERT)}.get(order, found.space)
    for one, expected in zip(found.order.scores, wanted.scores, strict=True):
        assert one == pytest.approx(expected)
    assert told.steps.get("scoring parts of the teacher 5") == (None if order == "movement" else [0, 1, 2, 3, 4])
    assert told.steps["judging the teacher 1"] == [0]
    again = made(begun(compression(tmp_path, order=order, scores__batches=5), tmp_path / "out"), "scores")
    assert [one.tolist() for one in again.order.scores] == [one.tolist() for one in found.order.scores]
    assert torch.get_num_threads() >= 1


@pytest.mark.slow
def test_the_hidden_size_is_scored_where_it_may_shrink(tmp_path: Path) -> None:
    run = begun(compression(tmp_path, hidden=(8,), order="l1"), tmp_path / "out")
    found = made(run, "scores")
    assert found.space.hidden is not None
    assert (len(found.space.hidden), found.space.pooled is not None) == (16, True)
    assert found.order.hidden is not None
