"""Folders are written whole or not at all, and nothing foreign is replaced."""

import hashlib
import json
import random
import subprocess
from pathlib import Path

import pytest
from tests.nn.hf.helpers import DESIGNS, assert_same, lively

from formwright.core.errors import IllegalInput
from formwright.nn.deploy.runtimes import open_file
from formwright.nn.hf.checkpoint_files import is_whole
from formwright.nn.hf.imported import load_folder
from formwright.nn.hf.load import from_hf
from formwright.nn.hf.model_folder import CARD, SUMS, replace_file, verify_checksums, whole_folder, write_checksums
from formwright.nn.hf.readme import put_section, replace_table
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.hf.stock import export_stock

CANONICAL = DESIGNS["bert"][0].canonical


def write(target: Path, text: str, *, force: bool = False) -> None:
    with whole_folder(target, force=force) as part:
        (part / CARD).write_bytes(CANONICAL)
        (part / "text").write_text(text, encoding="utf-8")


def test_the_folder_appears_when_all_is_written(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "model"
    with whole_folder(target) as part:
        assert not target.exists()
        assert part.parent == target.parent
        (part / "text").write_text("all", encoding="utf-8")
    assert (target / "text").read_text(encoding="utf-8") == "all"
    assert [path.name for path in target.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_nothing(error: type[BaseException], tmp_path: Path) -> None:
    def fail() -> None:
        with whole_folder(tmp_path / "model") as part:
            (part / "text").write_text("half", encoding="utf-8")
            raise error

    with pytest.raises(error):
        fail()
    assert not list(tmp_path.iterdir())


def test_an_error_keeps_the_model_that_was_there(tmp_path: Path) -> None:
    write(tmp_path / "model", "old")

    def fail() -> None:
        with whole_folder(tmp_path / "model", force=True):
            raise OSError(28, "No space left on device")

    with pytest.raises(IllegalInput, match=r"cannot write .*model: No space left on device"):
        fail()
    assert (tmp_path / "model" / "text").read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_our_own_folder_is_replaced_when_forced(tmp_path: Path) -> None:
    write(tmp_path / "model", "old")
    with pytest.raises(IllegalInput, match="--force"):
        write(tmp_path / "model", "new")
    write(tmp_path / "model", "new", force=True)
    assert (tmp_path / "model" / "text").read_text(encoding="utf-8") == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("content", [None, b"{}", b"no card"])
def test_what_is_not_ours_is_never_replaced(content: bytes | None, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "thesis.txt").write_text("years of work", encoding="utf-8")
    if content is not None:
        (tmp_path / "model" / CARD).write_bytes(content)
    with pytest.raises(IllegalInput, match="not an exported model"):
        write(tmp_path / "model", "new", force=True)
    assert (tmp_path / "model" / "thesis.txt").is_file()


def test_empty_folders_are_filled_links_followed_and_files_refused(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "link").symlink_to("model")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "model" / "text").is_file()
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(IllegalInput, match="is a file"):
        write(tmp_path / "file", "new", force=True)


def test_what_another_export_wrote_meanwhile_is_kept(tmp_path: Path) -> None:
    def both() -> None:
        with whole_folder(tmp_path / "model") as part:
            (part / "text").write_text("late", encoding="utf-8")
            write(tmp_path / "model", "early")

    with pytest.raises(IllegalInput, match="holds an exported model already"):
        both()
    assert (tmp_path / "model" / "text").read_text(encoding="utf-8") == "early"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("name", ["x" * 255, "\N{GRINNING FACE}" * 63, "a 'b\" \n c"])
def test_a_folder_may_have_any_name_that_the_system_allows(name: str, tmp_path: Path) -> None:
    write(tmp_path / name, "old")
    write(tmp_path / name, "new", force=True)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    (tmp_path / "made").mkdir()
    assert (tmp_path / name).stat().st_mode == (tmp_path / "made").stat().st_mode


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
    (folder / name).write_text(json.dumps(json.loads((folder / name).read_text()), indent=7))
    for read in (from_hf, load_folder):
        with pytest.raises(IllegalInput, match=name):
            read(folder)
    write_checksums(folder)
    assert from_hf(folder).card.digest


def test_documents_may_change_and_missing_files_are_named(folder: Path) -> None:
    with (folder / "README.md").open("a") as readme:
        readme.write("Mine.")
    (folder / "notes.txt").write_text("mine")
    verify_checksums(folder)
    (folder / "card.json").unlink()
    with pytest.raises(IllegalInput, match=r"card\.json is missing"):
        from_hf(folder)


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
    write_checksums(tmp_path)
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
    replace_file(folder / "README.md", "# Mine")
    after = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    assert [line for line in after if line not in before] == [f"{hashlib.sha256(b'# Mine').hexdigest()}  README.md"]
    assert len(after) == len(before)
    verify_checksums(folder)
    (folder / SUMS).unlink()
    replace_file(folder / "README.md", "# Ours")
    assert not (folder / SUMS).exists()
