"""Only JSON and safetensors are read, and every refusal says what to do."""

import json
import subprocess
import sys
from pathlib import Path

import huggingface_hub
import pytest
import torch
from huggingface_hub.errors import LocalEntryNotFoundError
from safetensors.torch import save_file

from formwright.core.errors import IllegalInput
from formwright.nn.hf.checkpoint_files import find_folder, read_json, read_weights, single


def test_pickles_are_refused_with_advice_that_works(tmp_path: Path) -> None:
    weights = {"a": torch.randn(2, 3), "b": torch.randn(4)}
    torch.save(weights | {"tied": weights["a"]}, tmp_path / "pytorch_model.bin")
    with pytest.raises(IllegalInput, match="pickles can run code and are not read") as refusal:
        read_weights(tmp_path)
    message = str(refusal.value)
    assert "\n" not in message
    code = message.split('python -c "', 1)[1].rstrip('"')
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    found = read_weights(tmp_path)
    assert torch.equal(found["tied"], weights["a"])
    assert set(found) == {"a", "b", "tied"}


def test_missing_and_truncated_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=r"holds no model\.safetensors"):
        read_weights(tmp_path)
    file = tmp_path / "model.safetensors"
    save_file({"a": torch.zeros(1000)}, file)
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(IllegalInput, match="cannot read"):
        read_weights(tmp_path)


def test_a_tensor_comes_from_the_shard_that_the_index_names(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, tmp_path / "a.safetensors")
    save_file({"a": torch.zeros(2), "b": torch.ones(2)}, tmp_path / "b.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "a.safetensors", "b": "b.safetensors"}}), encoding="utf-8")
    found = read_weights(tmp_path)
    assert (set(found), found["a"].tolist()) == ({"a", "b"}, [1.0, 1.0])
    (tmp_path / "b.safetensors").unlink()
    with pytest.raises(IllegalInput, match=r"cannot read .*b\.safetensors"):
        read_weights(tmp_path)
    index.write_text(json.dumps({"weight_map": {"c": "a.safetensors"}}), encoding="utf-8")
    with pytest.raises(IllegalInput, match=r"a\.safetensors lacks the tensor c"):
        read_weights(tmp_path)


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "pytorch_model.bin", "sub/a.safetensors"])
def test_an_index_cannot_lead_out_of_its_folder(name: str, tmp_path: Path) -> None:
    index = {"weight_map": {"a": name}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(IllegalInput, match="only safetensors files of the same folder"):
        read_weights(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not JSON"),
        (b"[]", "must hold a JSON object"),
        (b'{"a": 1, "a": 2}', "repeats the key"),
        (None, "read"),
    ],
)
def test_a_bad_configuration_is_refused(content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(IllegalInput, match=message):
        read_json(tmp_path / "config.json")


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", "a/b/c", "~/model"])
def test_a_path_that_is_no_folder_is_not_looked_up(name: str) -> None:
    with pytest.raises(IllegalInput, match="is not a folder"):
        find_folder(name)


def test_a_name_is_fetched_without_pickles_or_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, list[str]]] = []

    def fetch(name: str, *, allow_patterns: list[str]) -> str:
        asked.append((name, allow_patterns))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    assert find_folder("someone/model") == tmp_path
    ((name, patterns),) = asked
    assert name == "someone/model"
    assert not [pattern for pattern in patterns if pattern.endswith((".bin", ".py", "*"))]


@pytest.mark.parametrize("error", [LocalEntryNotFoundError("offline"), OSError(), ValueError("bad")])
def test_what_cannot_be_fetched_is_a_users_error(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_: object, **__: object) -> str:
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    with pytest.raises(IllegalInput, match="there is no folder someone/model, and no model of that name"):
        find_folder("someone/model")


def test_a_name_longer_than_a_path_may_be_is_refused() -> None:
    with pytest.raises(IllegalInput, match="there is no folder"):
        find_folder("x" * 500)


@pytest.mark.parametrize("kind", [torch.int64, torch.bool, torch.complex64])
def test_only_floating_point_is_weights(kind: torch.dtype) -> None:
    with pytest.raises(IllegalInput, match="the tensor a holds"):
        single("a", torch.ones(2, dtype=kind))
    assert single("a", torch.ones(2, dtype=torch.bfloat16)).dtype == torch.float32
