from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.training import card_file, on_table, table

from formwright.cost import macs, params
from formwright.nn import measurement
from formwright.space.zoo import load_card


@pytest.fixture(autouse=True)
def known_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the new process in which memory is measured."""
    monkeypatch.setattr(measurement, "_peak_memory", lambda *_: 12.34)


def test_a_card_as_json(run: Run) -> None:
    done = run(
        "measure", "bert-tiny", "--runs", 6, "--length", 16, "--batch", 2, "--threads", 2, "--device", "cpu", "--json"
    )
    card = load_card("bert-tiny")
    assert (done.code, done.err) == (0, "")
    assert 0 < done.data["low_ms"] <= done.data["median_ms"] <= done.data["high_ms"]
    expected = {
        "name": "bert-tiny",
        "family": "encoder",
        "digest": card.digest,
        "batch": 2,
        "length": 16,
        "params": params(card),
        "macs": macs(card, 16),
        "runs": 6,
        "threads": 2,
        "runtime": "torch",
        "cpu": measurement.cpu_name(),
        "device": "cpu",
        "tokens": 0,
        "beams": 1,
        "peak_memory_mb": 12.34,
    }
    assert {name: done.data[name] for name in expected} == expected
    assert set(done.data) - set(expected) == {"low_ms", "median_ms", "high_ms", "spread", "waited", "busy"}


def test_a_card_as_a_table(run: Run) -> None:
    done = run("measure", "bert-tiny", "--runs", 3, "--length", 8)
    assert (done.code, done.err) == (0, "")
    for fact in ("4,385,920", "12.3 MB", "latency", "90 % of the runs", "3 runs in torch", "1 x 8 tokens"):
        assert fact in done.out
    assert f"1 thread, {measurement.cpu_name()}" in " ".join(done.out.split())


def latency(busy: bool, memory: float | None) -> Any:
    found = measurement.Latency(1.0, 0.5, 2.0, 0.25, 0.5, busy, 50, 2, "torch", "cpu", "abacus", memory)
    return lambda *_, **__: found


def test_a_busy_machine_and_unknown_memory_are_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formwright.pipeline.named_model.measure", latency(True, None))
    done = run("measure", "autoformer-t", "--threads", 2)
    for fact in ("not known on this system", "busy", "50%", "25%", "each 1 x 224 x 224 pixels, 2 threads"):
        assert fact in done.out
    monkeypatch.setattr("formwright.pipeline.named_model.measure", latency(False, None))
    assert "busy" not in run("measure", "autoformer-t").out


def test_a_folder_that_was_exported_for_a_runtime(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / "card.json").write_bytes(load_card("bert-tiny").canonical)
    seen = []
    monkeypatch.setattr(
        "formwright.pipeline.named_model.measure_file", lambda path, *_: seen.append(path) or latency(False, 1.0)()
    )
    done = run("measure", tmp_path, "--json")
    assert (done.code, done.data["params"]) == (0, 4_385_920)
    assert seen == [tmp_path / "model.onnx"]
    run("measure", tmp_path, "--runtime", "openvino").refused("runs in onnxruntime, not in openvino")


def test_a_folder_with_weights(run: Run, tmp_path: Path) -> None:
    from formwright.nn.build import build
    from formwright.nn.hf.save import save_pretrained_folder

    save_pretrained_folder(build(load_card("bert-tiny")), tmp_path / "mine")
    done = run("measure", tmp_path / "mine", "--runs", 2, "--length", 4, "--json")
    assert (done.code, done.err) == (0, "")
    assert (done.data["name"], done.data["params"]) == ("mine", 4_385_920)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["flexibert"], "flexibert is a search space"),
        (["bert-tiny", "--length", 513], "positions for 512"),
        (["bert-tinny"], "Nearest: 'bert-tiny'"),
        (["x" * 500], "no space, card or file is called"),
        (["bert-tiny", "--device", "tpu"], "cuda, mps, cpu"),
        (["bert-tiny", "--device", "mps"], "mps"),
    ],
)
def test_users_errors(run: Run, arguments: list[object], message: str) -> None:
    run("measure", *arguments).refused(message)


def test_a_delivered_model_is_measured_at_the_length_it_was_trained_with(run: Run, tmp_path: Path) -> None:
    own = on_table(table(tmp_path))
    run("train", card_file(tmp_path), *own, "--steps", 1, "--length", 12, "--out", tmp_path / "out").printed()
    folder = tmp_path / "out" / "model"
    assert run("measure", folder, "--runs", 3, "--json").data["length"] == 12
    assert run("measure", folder, "--runs", 3, "--json", "--length", 8).data["length"] == 8


def test_a_row_that_no_memory_holds_is_one_message(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 80000000000 bytes")

    monkeypatch.setattr("formwright.pipeline.named_model.measure", full)
    run("measure", "bert-tiny", "--length", 100).refused("100 tokens", "--length")
