"""Models of a compression are written with their scores, and read back as they were."""

from pathlib import Path

import pytest
from tests.compress.tiny import LENGTH, bert
from tests.evaluate.toy import SCORED, TASK
from tests.train.cases import SPANS

from formwright.compress.begin import begin
from formwright.compress.models import read_model, save
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.hf.load import from_hf
from formwright.nn.hf.save import save_pretrained_folder
from formwright.tasks.task import Task
from formwright.train.fit import Training
from formwright.train.imported import task_model
from formwright.train.judge import judge
from formwright.train.recipe import Recipe


@pytest.mark.parametrize("task", [TASK, SCORED, SPANS], ids=lambda task: task.kind)
def test_a_saved_model_is_read_as_it_was(task: Task, tmp_path: Path) -> None:
    begun = begin(str(bert(tmp_path)), task, LENGTH)
    model = task_model(begun.imported, begun.prepared, Training(Recipe(1)))
    for _ in range(2):  # a stage that was cut short writes its model again
        save(model, begun, tmp_path / "saved", {"fine-tuned from": "bert"})
    again = read_model(tmp_path / "saved")
    assert again.spec.task == model.spec.task
    before = model.state_dict()
    assert all(tensor.equal(before[name]) for name, tensor in again.state_dict().items())
    scores = judge(model, begun.prepared, begun.prepared.validation)
    readme = (tmp_path / "saved" / "README.md").read_text(encoding="utf-8")
    for words in (f"{task.name} validation {task.metric}", f"{scores[task.metric]:.4g}"[:5], "fine-tuned from"):
        assert words in readme
    assert not task.labels or from_hf(tmp_path / "saved").labels == task.labels
    assert begin(str(tmp_path / "saved"), task, LENGTH).is_finetuned


def test_a_model_that_lost_its_head_is_refused(tmp_path: Path) -> None:
    begun = begin(str(bert(tmp_path)), TASK, LENGTH)
    save_pretrained_folder(build(begun.card), tmp_path / "bare")
    with pytest.raises(IllegalInput, match="has lost its head; remove the folder, and its stage is done anew"):
        read_model(tmp_path / "bare")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_damaged_model_is_refused_with_the_way_out(name: str, tmp_path: Path) -> None:
    begun = begin(str(bert(tmp_path)), TASK, LENGTH)
    folder = tmp_path / "saved"
    save(task_model(begun.imported, begun.prepared, Training(Recipe(1))), begun, folder, {})
    content = (folder / name).read_bytes()
    for damaged in (content[: len(content) // 2], b"{}"):
        (folder / name).write_bytes(damaged)
        with pytest.raises(IllegalInput, match=r"cannot read .*saved: .*; remove the folder, and its stage is done"):
            read_model(folder)
