"""Pictures, recordings and series from the command line, from training to plain transformers."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.cli.conftest import Run
from tests.cli.studies import facts
from tests.tasks.test_pictures import write_folder
from tests.tasks.test_recordings import tone, write_wav

import formwright as fw
from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.rng import derive
from formwright.cost import macs
from formwright.nn.hf.load import from_hf

BLOCKS = (Block(16, Attention(2, 8), (32,)),)
CARDS = {
    "grey": Card(encoder=Stack(PatchEmbedding(8, 4, 16, channels=1), BLOCKS)),
    "coloured": Card(encoder=Stack(PatchEmbedding(8, 4, 16), BLOCKS)),
    "frames": Card(encoder=Stack(FrameEmbedding(12, 16, length=64), BLOCKS)),
}


def write_card(folder: Path, name: str) -> Path:
    (folder / "card.json").write_bytes(CARDS[name].canonical)
    return folder / "card.json"


def write_recordings(folder: Path, rows: int = 40) -> Path:
    for row in range(rows):
        write_wav(folder / ("low", "high")[row % 2] / f"{row:02}.wav", tone((200, 2000)[row % 2], 0.06 + row / 600))
    return folder


def write_series(path: Path, rows: int = 40) -> Path:
    steps = [30 + row % 7 for row in range(rows)]
    values = [np.sin(np.arange(n) * (0.2, 1.0)[row % 2]) + row / 100 for row, n in enumerate(steps)]
    head = ["kind", *(f"t{step}" for step in range(max(steps)))]
    lines = [[("slow", "fast")[row % 2], *(f"{x:.4f}" for x in one)] for row, one in enumerate(values)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *([*line, *[""] * (len(head) - len(line))] for line in lines)])
    return path


def trained(run: Run, folder: Path, name: str, *options: object) -> Path:
    run("train", write_card(folder, name), *options, "--steps", 60, "--out", folder / "out").printed("accuracy")
    return folder / "out" / "model"


def predictions(run: Run, model: Path, file: Path) -> list[dict[str, Any]]:
    return list(csv.DictReader(io.StringIO(run("predict", model, file).printed().out)))


def again(run: Run, model: Path, *options: object, onnx: bool = True) -> None:
    """See that a model, and its ONNX file if asked for, have their scores again."""
    assert run("evaluate", model, *options, "--json").data["repeats"] is True
    if onnx:
        run("export", model, "--to", "onnx", "--out", model.parent / "onnx").printed("largest difference")
        assert run("evaluate", model.parent / "onnx", *options, "--json").data["repeats"] is True


@pytest.mark.slow
@pytest.mark.parametrize("name", ["grey", "coloured"])
def test_a_folder_of_pictures(run: Run, tmp_path: Path, name: str) -> None:
    from transformers import AutoImageProcessor, AutoModelForImageClassification

    data = write_folder(tmp_path / "data", 40)
    model = trained(run, tmp_path, name, "--task", data, "--set", "training.augment=shift,flip")
    again(run, model, "--task", data, onnx=name == "coloured")
    found = predictions(run, model, data / "cat")
    assert [row["file"] for row in found] == sorted(path.name for path in (data / "cat").iterdir())
    processor = AutoImageProcessor.from_pretrained(model, trust_remote_code=True)
    plain = AutoModelForImageClassification.from_pretrained(model, trust_remote_code=True).eval()
    for row in found[:4]:  # of another shape than the square that is read
        scores = plain(**processor(Image.open(data / "cat" / row["file"]), return_tensors="pt")).logits[0].softmax(-1)
        assert plain.config.id2label[int(scores.argmax())] == row["prediction"]
        assert scores.max().item() == pytest.approx(float(row["probability"]), abs=1e-5)


FRAMES = {"window_ms": 32, "hop_ms": 8, "bands": 9}


@pytest.mark.slow
@pytest.mark.parametrize("frames", [{}, FRAMES])
def test_a_folder_of_recordings(run: Run, tmp_path: Path, frames: dict[str, int]) -> None:
    from transformers import AutoFeatureExtractor, AutoModelForAudioClassification

    from formwright.tasks.recordings import read_wav

    data = write_recordings(tmp_path / "data")
    options = ("--frames", ",".join(f"{name}={value}" for name, value in frames.items())) if frames else ()
    model = trained(run, tmp_path, "frames", "--task", data, *options)
    again(run, model, "--task", data, onnx=bool(frames))
    readme = (model / "README.md").read_text(encoding="utf-8")
    assert "AutoFeatureExtractor" in readme
    assert "tokeni" not in readme
    kept = json.loads((model / "preprocessor_config.json").read_text())
    assert (kept["window"], kept["hop"], len(kept["mean"])) == ((256, 64, 9) if frames else (200, 80, 12))
    found = predictions(run, model, data / "low")
    assert {row["prediction"] for row in found} == {"low"}
    extractor = AutoFeatureExtractor.from_pretrained(model, trust_remote_code=True)
    plain = AutoModelForAudioClassification.from_pretrained(model, trust_remote_code=True).eval()
    sounds = [read_wav(data / "low" / row["file"])[0] for row in found]
    scores = plain(**extractor(sounds, sampling_rate=8000, return_tensors="pt")).logits.softmax(-1)
    expected = [float(row["probability"]) for row in found]
    assert scores.max(-1).values.tolist() == pytest.approx(expected, abs=1e-4)
    with pytest.raises(ValueError, match="8000"):
        extractor(sounds, sampling_rate=16000)
    assert predictions(run, model, data / "low" / found[0]["file"])[0]["prediction"] == "low"


@pytest.mark.slow
def test_a_table_of_series(run: Run, tmp_path: Path) -> None:
    from transformers import AutoFeatureExtractor, AutoModelForAudioClassification

    data = write_series(tmp_path / "series.csv")
    options = ("--task", data, "--task-kind", "series", "--label", "kind")
    model = trained(run, tmp_path, "frames", *options)
    again(run, model, "--task", data, onnx=False)
    found = predictions(run, model, data)
    assert np.mean([row["prediction"] == row["kind"] for row in found]) > 0.9
    without = tmp_path / "new.csv"
    without.write_text("\n".join(line.split(",", 1)[1] for line in data.read_text().splitlines()))
    assert [row["prediction"] for row in predictions(run, model, without)] == [row["prediction"] for row in found]
    extractor = AutoFeatureExtractor.from_pretrained(model, trust_remote_code=True)
    plain = AutoModelForAudioClassification.from_pretrained(model, trust_remote_code=True).eval()
    series = [[float(cell) for name, cell in row.items() if name[0] == "t" and cell] for row in found]
    scores = plain(**extractor(series, return_tensors="pt")).logits.softmax(-1).max(-1).values.tolist()
    assert scores == pytest.approx([float(row["probability"]) for row in found], abs=1e-4)
    kept = json.loads((model / "evaluation.json").read_text())["task"]
    assert (kept["kind"], kept["label"]) == ("series", "kind")


def test_frames_are_options_of_the_data_in_yaml_and_python(run: Run, tmp_path: Path) -> None:
    data, card = write_recordings(tmp_path / "data"), write_card(tmp_path, "frames")
    task = {"name": str(data), "frames": FRAMES}
    stages = {"train": {"stage": "train", "source": str(card), "task": task, "training": {"steps": 2}}}
    (tmp_path / "run.yaml").write_text(json.dumps({"stages": stages}))
    run("run", tmp_path / "run.yaml", "--out", tmp_path / "yaml").printed("accuracy")
    fw.train(card, data, frames=FRAMES, settings={"train.training.steps": 2}, out=tmp_path / "python")
    for out in ("yaml", "python"):
        kept = json.loads((tmp_path / out / "model" / "preprocessor_config.json").read_text())
        assert (kept["window"], kept["hop"], len(kept["mean"])) == (256, 64, 9)
    refused = ("train", tmp_path / "yaml" / "model", "--task", data, "--out", tmp_path / "other")
    run(*refused, "--frames", "hop_ms=20").refused("hop_ms=8", "--frames")
    run(*refused, "--frames", "hop=20").refused("hop_ms")
    run(*refused, "--frames", "20").refused("OPTION=VALUE")


def test_frames_are_options_of_a_compression_too(run: Run, tmp_path: Path) -> None:
    data, given = write_recordings(tmp_path / "data"), ",".join(f"{name}={value}" for name, value in FRAMES.items())
    model = trained(run, tmp_path, "frames", "--task", data, "--frames", given)
    smaller = ("compress", model, "--task", data, "--target", "macs=75%", "--dry-run", "--out", tmp_path / "small")
    run(*smaller, "--frames", given).printed("teacher", "deliver")
    run(*smaller, "--frames", "hop_ms=20").refused("hop_ms=8", "--frames")
    run(*smaller, "--frames", "hop=20").refused("hop_ms")


def test_a_table_of_steps_is_read_by_series(run: Run, tmp_path: Path) -> None:
    lines = ["id,x,y,kind"]
    for series in range(30):
        noise = derive(series, "steps").normal(size=(12, 2)).round(3)
        lines += [f"s{series},{x},{y},{('a', 'b')[series % 2]}" for x, y in noise]
    data = tmp_path / "steps.csv"
    data.write_text("\n".join(lines))
    found = run("show", f"task:{data}", "--series", "id", "--label", "kind", "--json").data
    assert (found["task_kind"], found["train"], found["validation"]) == ("frame-classification", 24, 3)
    run("show", f"task:{data}", "--series", "id", "--task-kind", "classification").refused("--series")


def test_what_a_design_cannot_read_is_refused_before_training(run: Run, tmp_path: Path) -> None:
    data = write_recordings(tmp_path / "data")
    run("train", write_card(tmp_path, "grey"), "--task", data, "--out", tmp_path / "out").refused("frames", "images")
    run("train", write_card(tmp_path, "frames"), "--task", "digits", "--out", tmp_path / "out").refused("images")
    assert not (tmp_path / "out").exists()


def test_a_folder_of_pictures_is_shown(run: Run, tmp_path: Path) -> None:
    data = write_folder(tmp_path, 40)
    run("show", f"task:{data}").printed("image-classification", "cat", "dog", "pictures by label")
    assert run("show", f"task:{data}", "--json").data["train"] == 32


SEARCHES: dict[str, tuple[str, Callable[[Path], Path], tuple[str, ...]]] = {
    "pictures": ("autoformer-nano-32", lambda folder: write_folder(folder / "data", 40), ()),
    "recordings": ("lighthubert-nano", lambda folder: write_recordings(folder / "data"), ()),
    "series": (
        "lighthubert-nano",
        lambda folder: write_series(folder / "series.csv"),
        ("--task-kind", "series", "--label", "kind"),
    ),
}


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("rows", SEARCHES)
def test_a_design_is_searched_and_predicts(run: Run, tmp_path: Path, rows: str) -> None:
    space, write, options = SEARCHES[rows]
    data = write(tmp_path)
    short = ("--trials", 2, "--steps", 5, "--final-steps", 5, "--workers", 1, "--batch", 8)
    found = facts("search", space, "--task", data, *options, *short, "--out", tmp_path / "study")
    assert len(found["trials"]) == 2
    model = found["models"][0]
    assert 0 <= model["test"]["accuracy"] <= 1
    folder = next((tmp_path / "study" / "models").iterdir())
    assert run("evaluate", folder, "--task", data, *options, "--json").data["repeats"] is True
    labels = {"pictures": {"cat", "dog"}, "recordings": {"low", "high"}, "series": {"slow", "fast"}}[rows]
    answers = predictions(run, folder, data)
    assert len(answers) >= 10
    assert {row["prediction"] for row in answers} <= labels


def write_vit(folder: Path) -> Path:
    """Write a vision transformer with random weights by transformers' own class."""
    import torch
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    torch.manual_seed(0)
    ViTForImageClassification(ViTConfig(**sizes, image_size=8, patch_size=4, num_labels=5)).save_pretrained(folder)
    return folder


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_stock_model_is_compressed_on_a_folder_of_pictures(run: Run, tmp_path: Path) -> None:
    data, model = write_folder(tmp_path / "data", 40), write_vit(tmp_path / "vit")
    epochs = ("--set", "teacher.epochs=2", "--set", "super-network.epochs=2", "--accept-weak-teacher", "--batch", 8)
    short = ("--target", "macs=50%", "--trials", 2, "--workers", 1, "--threads", 1, "--set", "scores.batches=4")
    run("compress", model, "--task", data, *epochs, *short, "--out", tmp_path / "out").printed("macs-50pct")
    small = tmp_path / "out" / "models" / "macs-50pct"
    again(run, small, "--task", data)
    before, after = (macs(from_hf(one).card, 1) for one in (model, small))
    assert after <= 0.5 * before
    assert {row["prediction"] for row in predictions(run, small, data)} <= {"cat", "dog"}


PLAIN = """
import json, sys
sys.modules["formwright"] = None  # importing it would fail
import numpy as np
from transformers import pipeline
folder, file = sys.argv[1:]
hear = pipeline("audio-classification", folder, trust_remote_code=True)
with np.load(file) as sounds:
    print(json.dumps([hear(sounds[name])[0] for name in sounds.files]))
"""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_pipeline_of_transformers_alone_hears_the_same(run: Run, tmp_path: Path) -> None:
    from formwright.tasks.recordings import read_wav

    data = write_recordings(tmp_path / "data", 20)
    model = trained(run, tmp_path, "frames", "--task", data)
    found = [row for name in ("low", "high") for row in predictions(run, model, data / name)[:2]]
    files = [file for name in ("low", "high") for file in sorted((data / name).iterdir())[:2]]
    np.savez(tmp_path / "sounds.npz", allow_pickle=False, **{file.stem: read_wav(file)[0] for file in files})
    command = [sys.executable, "-c", PLAIN, str(model), str(tmp_path / "sounds.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    heard = json.loads(done.stdout)
    assert [one["label"] for one in heard] == [row["prediction"] for row in found]
    expected = [float(row["probability"]) for row in found]
    assert [one["score"] for one in heard] == pytest.approx(expected, abs=1e-4)
