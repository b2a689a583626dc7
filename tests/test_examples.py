"""Every program in `examples/` runs, resumes, and does what it says; the plug-in works from its own package."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import formwright

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
SOURCE = Path(formwright.__file__).parents[1]
QUICK = ["--set", "training.steps=4", "--set", "deliver.steps=4", "--no-baseline", "--rows", "200", "--workers", "1"]


def ran(*command: object, paths: tuple[Path, ...] = (), cwd: Path | None = None) -> str:
    """Run a program, and give what it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (SOURCE, *paths))), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *map(str, command)], env=environment, capture_output=True, text=True, check=False, cwd=cwd
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_is_tested() -> None:
    names = {"own_evaluator.py", "own_space.py", "compress.py", "compare_searchers.py", "run.yaml", "plugin"}
    assert {path.name for path in EXAMPLES.iterdir() if path.name != "__pycache__"} == names


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_own_evaluator(tmp_path: Path) -> None:
    shown = ran(EXAMPLES / "own_evaluator.py", tmp_path / "out")
    assert "accuracy" in shown
    assert (tmp_path / "out" / "report.html").is_file()
    assert ran(EXAMPLES / "own_evaluator.py", tmp_path / "out") == shown  # it is over, and says the same


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(180)
def test_own_space(tmp_path: Path) -> None:
    assert "accuracy" in ran(EXAMPLES / "own_space.py", tmp_path / "out")
    assert list((tmp_path / "out" / "models").glob("*/model.safetensors"))


@pytest.mark.long
@pytest.mark.timeout(400)
def test_compress(tmp_path: Path) -> None:
    shown = ran(EXAMPLES / "compress.py", tmp_path)
    assert shown.count("parameters, in") >= 2
    assert ran(EXAMPLES / "compress.py", tmp_path) == shown


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(180)
def test_compare_searchers(tmp_path: Path) -> None:
    lines = ran(EXAMPLES / "compare_searchers.py", tmp_path / "out", 2, 6).splitlines()
    assert [line.split()[0] for line in lines] == ["random", "regularized-evolution", "forest"]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_pipeline_in_a_file(tmp_path: Path) -> None:
    command = ("-m", "formwright", "run", EXAMPLES / "run.yaml", "--out", tmp_path / "out")
    assert "search" in ran(*command, "--dry-run")
    assert not (tmp_path / "out").exists()
    found = json.loads(ran(*command, "--json"))
    assert [model["role"] for model in found["models"]] == ["best"]
    assert json.loads(ran(*command, "--json"))["models"] == found["models"]


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package, built from a copy of its sources, into a folder of its own."""
    import shutil

    target, copy = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("sources") / "plugin"
    shutil.copytree(EXAMPLES / "plugin", copy)
    ran("-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "--target", target, copy)
    return target


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_plug_in_runs_resumes_and_reports_like_our_own_methods(plugin: Path, tmp_path: Path) -> None:
    def call(*words: object) -> str:
        return ran("-m", "formwright", *words, paths=(plugin,))

    for kind, name in (("recipes", "thumb"), ("searchers", "half-random"), ("stages", "tally"), ("costs", "layers")):
        assert name in call("list", kind)
    out = tmp_path / "out"
    given = ("--recipe", "thumb", "--task", "mini-glue/sst2", "--limit", "layers<=3", "--trials", 4, "--out", out)
    settings = ("--set", "evaluator.depth=0.5", "--set", "searcher.every=3", "--set", "tally.most=2")
    found = json.loads(call("search", *given, *settings, *QUICK, "--json"))
    assert len(found["trials"]) == 4
    assert all(trial["costs"]["layers"] <= 3 for trial in found["trials"])
    assert len(json.loads((out / "tally" / "tally.json").read_bytes())) <= 2
    again = json.loads(call("resume", out, "--trials", 6, "--json"))
    assert again["trials"][:4] == found["trials"]
    assert len(again["trials"]) == 6
    call("report", out)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "half-random" in page
    assert "thumb" in call("show", out)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_an_operation_of_a_plug_in_is_like_our_own(plugin: Path, tmp_path: Path) -> None:
    assert "token-shift" in ran("-m", "formwright", "list", "ops", paths=(plugin,))
    layers = [{"type": "block", "width": 32, "mixer": {"type": "token-shift", "steps": 2}, "feed_forward": [64]}]
    embedding = {"type": "tokens", "vocabulary": 100, "width": 32}
    card = tmp_path / "card.json"
    card.write_text(json.dumps({"schema": 1, "encoder": {"embedding": embedding, "layers": layers}}))
    assert "token shift, steps 2" in ran("-m", "formwright", "show", card, paths=(plugin,))
    check_kit("test_token_shift.py", plugin, tmp_path)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_rule_of_a_plug_in_trains_shared_weights(plugin: Path, tmp_path: Path) -> None:
    assert "thrifty" in ran("-m", "formwright", "list", "rules", paths=(plugin,))
    settings = ("--set", "super-network.rule=thrifty", "--set", "super-network.rule.drawn=5")
    few = ("--set", "super-network.steps=3", "--trials", 2, "--set", "deliver.steps=5", "--device", "cpu")
    command = ("search", "--recipe", "spos", "--task", "digits", *settings, *few, "--out", tmp_path / "out", "--json")
    assert len(json.loads(ran("-m", "formwright", *command, paths=(plugin,)))["trials"]) == 2
    record = json.loads((tmp_path / "out" / "run.json").read_bytes())
    assert record["pipeline"]["stages"]["super-network"]["rule"] == {"name": "thrifty", "drawn": 5}
    check_kit("test_rule.py", plugin, tmp_path)


def check_kit(name: str, plugin: Path, tmp_path: Path) -> None:
    kit, options = EXAMPLES / "plugin" / name, ("-q", "-p", "no:cacheprovider", "-o", "timeout=300")
    found = ran("-m", "pytest", *options, "--rootdir", tmp_path, kit, paths=(plugin,))
    assert "passed" in found
    assert "failed" not in found
