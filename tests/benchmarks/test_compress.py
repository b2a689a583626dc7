import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SVG = "{http://www.w3.org/2000/svg}"
STEPS = 32  # of the quick super-network: 1,024 rows, 32 at once


@pytest.fixture
def compress(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Import the script as Python runs it, its folder first on the path."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import compress

    yield compress
    for name in [name for name in sys.modules if name.partition(".")[0] in ("compress", "compress_kit", "charts")]:
        del sys.modules[name]


def at(compress: ModuleType, test: float) -> dict[str, Any]:
    shares = sys.modules["compress_kit.bench"].SHARES
    return {f"{share:.0%}": {"macs": share, "validation": test, "test": share * test} for share in shares}


def keep(folder: Path, **arms: Any) -> None:
    (folder / "arms").mkdir(parents=True)
    for name, row in arms.items():
        (folder / "arms" / f"{name}.json").write_text(json.dumps(row), encoding="utf-8")


@pytest.mark.slow
def test_the_front_is_drawn_from_what_is_kept(
    compress: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = compress.USUAL.name
    for seed, score in ((0, 0.8), (1, 0.6)):
        teacher = {"validation": 0.9, "test": 0.9}
        keep(
            tmp_path / "glue-sst2" / f"seed-{seed}",
            **{"teacher": teacher, usual: {"at": at(compress, score)}, "front-fewer-layers": {"at": at(compress, 0.5)}},
        )
    compress.main(["--figures", str(tmp_path), "--results", str(tmp_path)])
    assert capsys.readouterr().out == f"{tmp_path / 'front.svg'}\n"  # other tasks have no results
    page = ElementTree.fromstring((tmp_path / "front.svg").read_text(encoding="utf-8"))
    words = [text.text for text in page.iter(f"{SVG}text")]
    assert "Smaller models for glue/sst2, 2 seeds" in words
    assert {"teacher", "formwright compress", "fewer layers"} <= set(words)
    assert "Torch-Pruning, Taylor" not in words
    assert len(page.findall(f"{SVG}polyline")) == 3
    band = page.findall(f"{SVG}polygon")[0]
    assert len({point.split(",")[1] for point in band.attrib["points"].split()}) == 8  # the seeds differ at each share


@pytest.mark.slow
def test_without_torch_pruning_its_line_is_told_and_other_parts_run(
    compress: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compress, "find_spec", lambda _: None)
    for part in ("others", "fronts"):
        with pytest.raises(SystemExit, match="need Torch-Pruning: pip install torch-pruning"):
            compress.main(["--quick", "--parts", part, "--results", str(tmp_path)])
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(compress, "_settings", lambda _: [])
    compress.main(["--quick", "--parts", "front", "speed", "--results", str(tmp_path)])


@pytest.mark.slow
@pytest.mark.usefixtures("compress")
def test_results_of_another_setting_are_left_alone(tmp_path: Path) -> None:
    kit = sys.modules["compress_kit.bench"]
    setting = kit.Setting("glue/sst2", "data", 8000, 32, 0)
    kit.Bench(setting, tmp_path).claim()
    kit.Bench(replace(setting, data="moved", threads=2), tmp_path).claim()  # which change no result
    with pytest.raises(SystemExit, match="holds results of another setting; name another folder with --results"):
        kit.Bench(replace(setting, epochs=2), tmp_path).claim()


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_part_runs_and_nothing_is_done_twice(
    compress: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compress, "ORDERS", compress.ORDERS[:1])  # the others differ in a word
    monkeypatch.setattr(compress, "SPACES", compress.SPACES[:1])
    able = find_spec("torch_pruning") is not None  # which is no need of ours
    parts = [part for part in compress.PARTS if able or part not in compress.NEED_PRUNING]
    arguments = ["--quick", "--results", str(tmp_path), "--json", str(tmp_path / "found.json"), "--parts", *parts]
    compress.main(arguments)
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["mini-glue/sst2 0"]
    names = [name for name in sys.modules["compress_kit.others"].RIVALS if able]
    check_rivals(found, names)
    check_points(found, [compress.USUAL.name, "random", *(f"front-{name}" for name in names)])
    check_searches(found)
    assert found["teacher"]["macs"] == 1.0
    assert found[compress.USUAL.name]["hypervolume"]["validation"] > 0
    assert len(found["untrained"]["scores"]) == 16
    assert found["speed"].keys() >= {"teacher", "50%", "int8"}
    assert found["speed"]["teacher"]["yield at 32"] == 1.0
    said = capsys.readouterr().out
    compress.main(arguments)
    again = capsys.readouterr().out
    assert said.endswith(again)  # the same results, and no arm that began
    assert "mini-glue/sst2 seed 0: network" not in again
    compress.main(["--figures", str(tmp_path), "--results", str(tmp_path), "--tasks", "mini-glue/sst2"])
    assert (tmp_path / "front.svg").is_file()


def check_rivals(found: dict[str, Any], names: list[str]) -> None:
    """See that rivals have half the MACs and the super-network's steps: each, or the models of a front together."""
    for name in names:
        assert found[name]["steps"] == STEPS
        assert found[name]["macs"] <= 0.505
        assert sum(row["steps"] for row in found[f"front-{name}"]["at"].values()) == STEPS


def check_points(found: dict[str, Any], names: list[str]) -> None:
    """See that hypervolumes are of a model for each share, and that each keeps to its share."""
    for name in names:
        row = found[name]
        assert row["hypervolume"].keys() == {"validation", "test"}
        assert row["at"].keys() - {"100%"} == {"75%", "50%", "35%", "25%"}
        for share, one in row["at"].items():
            assert one["macs"] <= 1.01 * float(share.rstrip("%")) / 100
            assert {"validation", "test", "params"} <= one.keys()


def check_searches(found: dict[str, Any]) -> None:
    searches = found["searches"]
    assert (searches["nsga2"]["validations"], searches["linas"]["validations"]) == (20, 8)
    assert searches["linas with races"]["validations"] <= 8
    assert searches["nsga2"]["validations to 98%"] <= 20
    for row in searches.values():
        reached = [volume for _, volume in row["curve"]]
        assert reached == sorted(reached)
