"""Whose folder it is: what a run began with is told by content, and the record of test openings outlives it."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.training import card_file, on_table, table

from formwright.cli.record import RECORD, Identity
from formwright.core.errors import IllegalInput
from formwright.study.alone import LOCK, alone_in

IDENTITY = Identity({"steps": 3}, {"card": "a", "training rows": "b", "weights": None})


def everything(folder: Path) -> list[tuple[Path, bytes]]:
    return sorted((path, path.read_bytes()) for path in folder.rglob("*") if path.is_file())


def test_rows_that_changed_do_not_go_on_with_a_run(run: Run, tmp_path: Path) -> None:
    mine = table(tmp_path)
    command = ("train", card_file(tmp_path), *on_table(mine), "--steps", 2, "--out", tmp_path / "out")
    assert run(*command).code == 0
    before = everything(tmp_path / "out")
    mine.write_text(mine.read_text(encoding="utf-8").replace(" a ", " zebra "), encoding="utf-8")
    refused = run(*command)
    assert (refused.code, refused.out) == (2, "")
    for name in ("the training rows (80 before and now", "the validation rows", "the test rows", "the tokeniser"):
        assert name in refused.err, name
    assert "--force" in refused.err
    assert everything(tmp_path / "out") == before
    assert run(*command, "--force").code == 0


def test_labels_of_another_name_are_another_run(run: Run, tmp_path: Path) -> None:
    mine = table(tmp_path)
    command = ("train", card_file(tmp_path), *on_table(mine), "--steps", 1, "--out", tmp_path / "out")
    assert run(*command).code == 0
    mine.write_text(mine.read_text(encoding="utf-8").replace(",yes", ",yea"), encoding="utf-8")
    assert "the labels" in run(*command).err


def test_a_model_trained_on_meanwhile_does_not_go_on_with_a_run(run: Run, tmp_path: Path) -> None:
    mine, source = on_table(table(tmp_path)), tmp_path / "source"
    first = ("train", card_file(tmp_path), *mine, "--out", source)
    again = ("train", source / "model", *mine, "--steps", 1, "--out", tmp_path / "out")
    assert run(*first, "--steps", 1).code == 0
    assert run(*again).code == 0
    assert run(*first, "--steps", 2, "--force").code == 0
    assert "the weights" in run(*again).err


def test_text_of_pretraining_that_changed_does_not_go_on_with_a_run(run: Run, tmp_path: Path) -> None:
    mine, other = table(tmp_path), table(tmp_path, "other.csv")
    options = ("--steps", 1, "--pretrain", other, "--pretrain-steps", 1, "--out", tmp_path / "out")
    command = ("train", card_file(tmp_path), *on_table(mine), *options)
    assert run(*command).code == 0
    other.write_text(other.read_text(encoding="utf-8").replace(" a ", " zebra "), encoding="utf-8")
    assert "the text of pretraining" in run(*command).err


def test_force_keeps_the_record_of_test_openings(run: Run, tmp_path: Path) -> None:
    mine, out = on_table(table(tmp_path)), tmp_path / "out"
    command = ("train", card_file(tmp_path), *mine, "--test", "--json", "--force", "--out", out)
    for seed in (1, 2, 1):
        assert run(*command, "--steps", 3, "--seed", seed).code == 0
    entries = json.loads((out / "test-openings.json").read_text(encoding="utf-8"))
    assert [entry["name"].startswith("small-") for entry in entries] == [True, True]
    assert len({entry["name"] for entry in entries}) == 2  # the third run is the first one again


def test_force_removes_everything_else(tmp_path: Path) -> None:
    IDENTITY.claim(tmp_path / "out", False, "kept.json")
    (tmp_path / "out" / "checkpoints" / "step-1").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    (tmp_path / "out" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "out" / "kept.json").write_text("[]", encoding="utf-8")
    other = Identity({"steps": 4}, IDENTITY.digests)
    other.claim(tmp_path / "out", True, "kept.json")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["kept.json", RECORD]
    assert (tmp_path / "elsewhere" / "file").exists()
    other.claim(tmp_path / "out", False, "kept.json")


def test_options_and_content_are_told_together(tmp_path: Path) -> None:
    IDENTITY.claim(tmp_path / "out", False, "kept")
    other = Identity({"steps": 4}, {"card": "a", "training rows": "c", "weights": "d"})
    expected = r"steps 3.*the training row"
    with pytest.raises(IllegalInput, match=expected):
        other.claim(tmp_path / "out", False, "kept")
    assert other.digest != IDENTITY.digest == Identity({"steps": 3}, dict(IDENTITY.digests)).digest


def test_a_folder_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    IDENTITY.refuse(tmp_path / "out", False)
    assert not (tmp_path / "out").exists()
    IDENTITY.claim(tmp_path / "out", False, "kept")
    other = Identity({"steps": 4}, IDENTITY.digests)
    with pytest.raises(IllegalInput, match="with other options"):
        other.refuse(tmp_path / "out", False)
    other.refuse(tmp_path / "out", True)
    before = everything(tmp_path)
    (tmp_path / "diary").mkdir()
    (tmp_path / "diary" / "today").touch()
    for force in (False, True):
        with pytest.raises(IllegalInput, match="diary holds files that are no training run; name another folder"):
            IDENTITY.refuse(tmp_path / "diary", force)
        with pytest.raises(IllegalInput, match="holds files that are no"):
            IDENTITY.claim(tmp_path / "diary", force, "kept")
    assert everything(tmp_path / "out") == before


def test_a_lock_makes_a_folder_no_foreign_one_and_is_left_to_its_holder(tmp_path: Path) -> None:
    with alone_in(tmp_path / "out"):
        IDENTITY.claim(tmp_path / "out", False, "kept")
        (tmp_path / "out" / "model").touch()
        Identity({"steps": 4}, IDENTITY.digests).claim(tmp_path / "out", True, "kept")
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [LOCK, RECORD]
        with pytest.raises(IllegalInput, match="another process"), alone_in(tmp_path / "out", wait=False):
            pytest.fail("two at once")
