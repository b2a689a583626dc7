"""Delivered folders have checksums, and nothing that was changed is read."""

import hashlib
import json
import random
import subprocess
from pathlib import Path

import pytest
from tests.nn.hf.helpers import assert_same, lively

from formwright.core.errors import IllegalInput
from formwright.nn.deploy.runtimes import open_file
from formwright.nn.hf.files import is_whole
from formwright.nn.hf.load import from_hf
from formwright.nn.hf.own import load_folder
from formwright.nn.hf.readme import put_section, replace_table
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.hf.stock import export_stock
from formwright.nn.seal import SUMS, check_seal, seal, write_sealed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_pretrained_folder(lively("bert"), tmp_path / "model")


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place // 8] ^= 1 << place % 8
    path.write_bytes(content)


def test_every_file_is_listed_as_sha256sum_reads_it(folder: Path) -> None:
    done = subprocess.run(["sha256sum", "--strict", "--check", SUMS], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    listed = [line.rpartition("  ")[2] for line in (folder / SUMS).read_text().splitlines()]
    assert {*listed, SUMS} == {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_every_flipped_bit_is_noticed(folder: Path) -> None:
    weights, rng = folder / "model.safetensors", random.Random(0)
    for place in (rng.randrange(8 * weights.stat().st_size) for _ in range(60)):
        flip(weights, place)
        with pytest.raises(IllegalInput, match=r"model\.safetensors is not as it was written"):
            from_hf(folder)
        assert not is_whole(folder)
        flip(weights, place)
    assert is_whole(folder)


@pytest.mark.parametrize("name", ["config.json", "card.json"])
def test_so_is_a_change_of_any_other_file(folder: Path, name: str) -> None:
    data = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(data, indent=7))
    for read in (from_hf, load_folder):
        with pytest.raises(IllegalInput, match=name):
            read(folder)
    seal(folder)
    assert from_hf(folder).card.digest


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "card.json").unlink()
    with pytest.raises(IllegalInput, match=r"card\.json is missing"):
        from_hf(folder)


def test_a_model_card_may_be_completed_and_files_may_be_added(folder: Path) -> None:
    with (folder / "README.md").open("a") as readme:
        readme.write("Mine.")
    (folder / "notes.txt").write_text("mine")
    check_seal(folder)


def test_a_folder_without_checksums_is_read(folder: Path) -> None:
    (folder / SUMS).unlink()
    flip(folder / "model.safetensors", 8 * ((folder / "model.safetensors").stat().st_size - 4))
    assert from_hf(folder).card.digest


def test_a_stock_folder_is_sealed_too(tmp_path: Path) -> None:
    model = lively("bert")
    export_stock(model, tmp_path / "stock")
    assert_same(from_hf(tmp_path / "stock").model(), model, "bert")
    flip(tmp_path / "stock" / "model.safetensors", 8 * 5_000)
    with pytest.raises(IllegalInput, match=SUMS):
        from_hf(tmp_path / "stock")


@pytest.mark.parametrize("name", ["model.onnx", "model.xml"])
def test_files_of_runtimes_are_compared_before_they_are_opened(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"one")
    (tmp_path / "model.bin").write_bytes(b"weights")
    seal(tmp_path)
    (tmp_path / "model.bin").write_bytes(b"weightz")
    with pytest.raises(IllegalInput, match=r"model\.bin is not as it was written"):
        open_file(tmp_path / name, 1)


@pytest.mark.parametrize("text", ["", "nothing\n", f"{'0' * 64}  ../outside\n", f"{'0' * 64}  /etc/passwd\n"])
def test_a_damaged_list_is_refused(folder: Path, text: str) -> None:
    (folder / SUMS).write_text(text)
    with pytest.raises(IllegalInput, match=f"{SUMS} is damaged"):
        from_hf(folder)


def test_sections_of_a_model_card_are_replaced_and_what_people_added_stays(folder: Path) -> None:
    put_section(folder, "Comparison", ["older words"])
    with (folder / "README.md").open("a", encoding="utf-8") as card:
        card.write("\n## Intended use\n\nMine.\n")
    put_section(folder, "Comparison", ["newer words"])
    replace_table(folder, "Costs", {"parameters": 7})
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "older words" not in text
    assert [text.count(one) for one in ("## Comparison\n", "newer words", "## Costs\n", "Mine.")] == [1, 1, 1, 1]
    (folder / "README.md").unlink()
    put_section(folder, "Comparison", ["third"])
    replace_table(folder, "Costs", {"parameters": 7})
    assert not (folder / "README.md").exists()


def test_a_file_that_is_replaced_is_sealed_again_and_no_other(folder: Path) -> None:
    before = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    write_sealed(folder / "README.md", "# Mine")
    after = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    assert [line for line in after if line not in before] == [
        f"{hashlib.sha256(b'# Mine').hexdigest()}  README.md",
    ]
    assert len(after) == len(before)
    check_seal(folder)
    (folder / SUMS).unlink()
    write_sealed(folder / "README.md", "# Ours")
    assert not (folder / SUMS).exists()
