"""Tasks that are given in memory, and the models that come out: delivered, loaded again, and uploaded."""

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.conftest import in_one_process

import formwright as fw
from formwright.core.errors import IllegalInput
from formwright.tasks.given import rows_file, rows_of

WORDS = {"good": ("fine", "great", "lovely"), "bad": ("awful", "poor", "dreadful")}
ROWS = [
    {"review": f"a {word} film, number {number}", "verdict": label}
    for number in range(40)
    for label, words in WORDS.items()
    for word in words
]
QUICK = {"search.training.steps": 4, "search.training.batch": 8, "deliver.steps": 4, "deliver.baseline": False}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> fw.Result:
    out = tmp_path_factory.mktemp("search") / "reviews"
    options: Any = {"searcher": "random", "settings": QUICK, "trials": 2, "workers": 1}
    with pytest.MonkeyPatch.context() as patch:
        in_one_process(patch)
        return fw.search("flexibert-nano", ROWS, text="review", label="verdict", out=out, **options)


def test_rows_in_memory_are_searched_and_kept(found: fw.Result) -> None:
    assert found.best.name in {model.name for model in found.models}
    assert "accuracy" in found.best.scores
    assert found.best.costs["params"] > 0
    assert "<svg" in found.best._repr_html_()
    assert found.best.card.digest in {trial.request.card.digest for trial in found.trials}
    assert len(fw.resume(found.out, trials=3, workers=1).trials) == 3


@pytest.mark.slow
def test_the_model_is_saved_and_loads_with_transformers_alone(found: fw.Result, tmp_path: Path) -> None:
    transformers = import_module("transformers")
    torch = import_module("torch")
    model = found.model
    assert isinstance(model, transformers.PreTrainedModel)
    model.save_pretrained(tmp_path / "mine")
    again = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "mine")
    ids = torch.tensor([[2, 5, 6, 3]])
    with torch.inference_mode():
        assert torch.equal(model(ids).logits, again(ids).logits)


def test_the_best_model_is_uploaded(found: fw.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def upload(repo_id: str, folder_path: str) -> None:
        calls.append((repo_id, {path.name for path in Path(folder_path).iterdir()}))

    hub = SimpleNamespace(create_repo=lambda name, **options: calls.append((name, options)), upload_folder=upload)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    found.push_to_hub("me/mine", private=True)
    assert calls[0] == ("me/mine", {"exist_ok": True, "private": True})
    assert {"config.json", "model.safetensors", "README.md"} <= calls[1][1]


@pytest.mark.slow
def test_a_card_is_trained_from_python(tmp_path: Path) -> None:
    card = fw.load_card("bert-tiny")
    found = fw.train(card, "mini-glue/sst2", steps=3, batch=4, rows=40, length=16, out=tmp_path / "one")
    assert found.best.name
    assert "accuracy" in found.best.scores
    assert "accuracy" in found._repr_html_()
    with pytest.raises(IllegalInput, match="no search"):
        _ = found.trials


# --- rows in memory --------------------------------------------------------------------------------------------------


def test_a_data_frame_is_a_list_of_rows(tmp_path: Path) -> None:
    pandas = import_module("pandas")
    table = pandas.DataFrame({"a": ["x", "y"], "n": [1, 2], "r": [0.5, float("nan")]})
    with rows_file(rows_of(table), tmp_path / "run") as path:
        lines = path.read_text(encoding="utf-8").splitlines()
    assert lines == ['{"a": "x", "n": 1, "r": 0.5}', '{"a": "y", "n": 2, "r": null}']


def test_labels_of_a_dataset_have_their_names() -> None:
    datasets = import_module("datasets")
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    data = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=features)
    assert rows_of(data) == [{"text": "a", "label": "yes"}, {"text": "b", "label": "no"}]
    with pytest.raises(IllegalInput, match="train"):
        rows_of(datasets.DatasetDict({"train": data}))


@pytest.mark.parametrize(("given", "told"), [([], "no rows"), ([{"a": object()}], "'a'"), (3, "int")])
def test_what_is_no_table_is_refused(given: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=told), rows_file(rows_of(given), tmp_path / "run"):
        pass
    assert not list(tmp_path.iterdir())


def test_rows_that_a_run_began_with_are_not_replaced(tmp_path: Path) -> None:
    out, others = tmp_path / "run", [*ROWS, ROWS[0]]
    with rows_file(ROWS, out) as path:
        before, written = path.read_text(), path.stat().st_mtime_ns
    out.mkdir()
    (out / "run.json").touch()
    with rows_file(ROWS, out):
        assert path.stat().st_mtime_ns == written  # not written again
    with pytest.raises(IllegalInput, match="changed"), rows_file(others, out):
        pass
    with pytest.raises(FileNotFoundError), rows_file(others, out, force=True):
        (tmp_path / "nothing").read_text()
    assert path.read_text() == before  # the run did not begin
    with rows_file(others, out, force=True):
        pass
    assert path.read_text() != before


@pytest.mark.parametrize("wrong", [{"label": "verdikt"}, {"label": "same"}, {"limits": ["lightness<=1"]}])
def test_a_refused_run_leaves_no_rows_behind(tmp_path: Path, wrong: dict[str, Any]) -> None:
    rows = [{**row, "same": "yes"} for row in ROWS]
    with pytest.raises(fw.FormwrightError):
        fw.search("flexibert-nano", rows, out=tmp_path / "run", **{"text": "review", "label": "verdict", **wrong})
    assert not list(tmp_path.iterdir())


def test_a_table_with_two_columns_of_one_name_is_refused() -> None:
    pandas = import_module("pandas")
    with pytest.raises(IllegalInput, match="'text'"):
        rows_of(pandas.DataFrame([["a", "b"]], columns=["text", "text"]))


@pytest.mark.parametrize("folder", ["", ".", "a\0b"])
def test_rows_are_not_written_next_to_a_folder_without_a_name(folder: str) -> None:
    with pytest.raises(IllegalInput, match="out="), rows_file(ROWS, Path(folder)):
        pass
