"""What every kind of data promises, as a test class to inherit from.

    class TestMine(KindContract):
        def task(self):
            return Task("mine", "my-kind", "accuracy", my_splits, labels=("yes", "no"))

        def card(self):
            return Card(encoder=Stack(TokenEmbedding(320, 16, length=32), (Block(16, Attention(2, 8), (32,)),)))

Run it with pytest. A task of some hundred rows and a card of one narrow layer are enough. What takes longer, ONNX and
transformers, is marked as `slow`, a marker that your package declares (`markers = ["slow"]` of pytest).
"""

import json
import subprocess
import sys
from abc import ABC, abstractmethod
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.core.registry import Late
from formwright.evaluate.evaluation_file import evaluation_of
from formwright.evaluate.loaded_model import load_model
from formwright.evaluate.repeat_score import repeat_score
from formwright.nn.deploy.interface import NamedInputsModel
from formwright.nn.hf.config_fields import AUTO_CLASSES, class_name
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel
from formwright.pipeline.named_model import export_model, read_model
from formwright.tasks.kind import KINDS, Kind, kind_of
from formwright.tasks.metrics import metric
from formwright.tasks.task import Task, first_rows
from formwright.train.distil import Answers
from formwright.train.fit import Training, fit, fresh_model, task_stream
from formwright.train.hyperparameters import AUGMENTATIONS, Hyperparameters
from formwright.train.judge import answers, batch_of, constant_baseline, judge
from formwright.train.loop import scores_of
from formwright.train.prepare import Prepared, prepare

# where this package is not imported, transformers runs the code in the folder, and not our classes
_PLAIN_TRANSFORMERS = """
import json, sys
import numpy as np, torch, transformers
auto, folder, given, found = sys.argv[1:]
model = getattr(transformers, auto).from_pretrained(folder, trust_remote_code=True).eval()
with torch.no_grad(), np.load(given) as inputs:
    outputs = model(**{name: torch.from_numpy(inputs[name]) for name in inputs.files})
assert "formwright" not in sys.modules
np.savez(found, **{name: value.numpy() for name, value in outputs.items() if isinstance(value, torch.Tensor)})
print(json.dumps(list(model.config.id2label.values())))
"""


class KindContract(ABC):
    """Test a kind of data from its rows to a model's folder; `learns` says by how much 30 steps lower the loss."""

    length: ClassVar[int] = 32
    learns: ClassVar[float] = 0.95

    @abstractmethod
    def task(self) -> Task:
        """Give a small task of this kind."""

    @abstractmethod
    def card(self) -> Card:
        """Give a small design that reads it."""

    def kind(self) -> Kind:
        return kind_of(self.task())

    def prepared(self) -> Prepared:
        return prepare(self.task(), self.card(), self.length)

    def training(self, steps: int = 30) -> Training:
        return Training(Hyperparameters(steps, 16, 3e-3, seed=0), self.length, Settings(dropout=0.0), device="cpu")

    def model(self) -> TaskModel:
        return fresh_model(self.card(), self.prepared(), self.training()).eval()

    # --- the record --------------------------------------------------------------------------------------------------

    def test_it_is_known_by_its_name_and_all_its_functions_exist(self) -> None:
        kind = self.kind()
        assert KINDS.get(kind.name) == kind
        assert kind.about
        assert all(metric(name).name == name for name in (*kind.metrics, *kind.binary_metrics))
        for field in fields(kind):
            value = getattr(kind, field.name)
            late = value.func if isinstance(value, partial) else value
            if isinstance(late, Late):
                assert callable(late.function), f"{field.name} names no function"
        assert set(kind.augmentations) <= set(AUGMENTATIONS.names()), "augmentations that are not registered"
        assert all(callable(AUGMENTATIONS.get(name)) for name in kind.augmentations)

    # --- rows and arrays ---------------------------------------------------------------------------------------------

    def test_rows_can_be_counted_cut_compared_and_shown(self) -> None:
        rows = self.task().search_view().train
        fewer = first_rows(rows, 3)
        assert (len(fewer), fewer.digest) == (3, first_rows(rows, 3).digest)
        assert fewer.digest != rows.digest
        assert rows.shown
        assert all(len(column) == len(rows) for column in rows.shown.values())

    def test_every_row_becomes_an_example_within_the_length(self) -> None:
        prepared = self.prepared()
        for part in (prepared.train, prepared.validation):
            examples = part.examples
            assert len(examples.lengths) == len(examples) >= len(part.rows)
            assert examples.lengths.max() <= max(prepared.length, 1)
            assert examples.labels is None or len(examples.labels) == len(examples)
            assert (examples.uncut is not None) == self.kind().cuts
        assert (prepared.tokeniser is not None) == (self.kind().has_tokens or self.kind().preprocessor is not None)

    def test_a_design_that_reads_something_else_is_refused(self) -> None:
        other = TokenEmbedding(50, 16, length=8) if self.kind().reads != "tokens" else PatchEmbedding(8, 4, 16)
        card = Card(encoder=Stack(other, (Block(16, Attention(2, 8), (32,)),)))
        with pytest.raises(IllegalInput, match=self.task().name):
            prepare(self.task(), card, self.length)

    # --- batches and losses ------------------------------------------------------------------------------------------

    def test_a_step_has_the_same_batch_every_time(self) -> None:
        streams = [task_stream(self.prepared(), self.training().recipe) for _ in range(2)]
        for step in (0, 7, 3):
            one, other = (stream.batch(step) for stream in streams)
            for field in fields(one):
                first, second = getattr(one, field.name), getattr(other, field.name)
                assert first is second is None or torch.equal(first, second), field.name

    def test_the_loss_is_a_number_with_gradients(self) -> None:
        model, batch = self.model(), task_stream(self.prepared(), self.training().recipe).batch(0)
        loss = self.kind().loss(scores_of(model, batch), batch)
        assert loss.shape == ()
        loss.backward()
        assert torch.isfinite(loss)
        assert any(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())

    def test_a_student_that_answers_like_its_teacher_is_at_no_distance(self) -> None:
        batch = task_stream(self.prepared(), self.training().recipe).batch(0)
        with torch.no_grad():
            scores = scores_of(self.model(), batch)
            other = scores + torch.randn(scores.shape, generator=torch.Generator().manual_seed(0))
            same, far = (
                float(self.kind().distillation_loss(Answers(scores, one), batch, 2.0)) for one in (scores, other)
            )
        assert abs(same) < 1e-5 < far

    def test_training_lowers_the_loss_and_repeats_exactly(self) -> None:
        one, other = (fit(self.model(), self.prepared(), self.training()) for _ in range(2))
        assert np.mean(one.losses[-5:]) < self.learns * np.mean(one.losses[:5])
        assert one.losses == other.losses
        assert one.metrics == other.metrics

    # --- scores ------------------------------------------------------------------------------------------------------

    def test_scores_lie_in_the_range_of_their_metrics(self) -> None:
        prepared = self.prepared()
        found = judge(self.model(), prepared, prepared.validation)
        assert found.keys() == set(prepared.task.metrics)
        for name, value in found.items():
            least, most = metric(name).range
            assert least - 1e-9 <= value <= most + 1e-9, name

    def test_a_baseline_is_described_and_scored_by_the_same_metrics(self) -> None:
        prepared = self.prepared()
        found = constant_baseline(prepared, prepared.validation)
        if found is not None:
            assert found.answer
            assert found.metrics
            assert found.metrics.keys() <= set(prepared.task.metrics)

    def test_an_answer_does_not_depend_on_the_other_rows_of_its_batch(self) -> None:
        if self.kind().answer is None:
            pytest.skip("its rows have no single answer")
        model, prepared = self.model(), self.prepared()
        rows = np.arange(min(len(prepared.validation.examples), 12))
        (whole,) = answers([model], prepared, prepared.validation, rows)
        alone = [answers([model], prepared, prepared.validation, rows[[row]])[0][0] for row in rows]
        assert np.allclose(whole, alone, atol=1e-4)

    def test_scores_of_tokens_are_one_vector_each(self) -> None:
        prepared = self.prepared()
        batch = batch_of(prepared, prepared.train, np.arange(3))
        with torch.no_grad():
            scores = scores_of(self.model(), batch)
        if self.kind().per_token:
            assert scores.shape[:2] == batch.inputs.shape[:2]
        elif not self.kind().of_words:
            assert scores.shape == (3, self.model().spec.labels)

    # --- folders -----------------------------------------------------------------------------------------------------

    def test_a_saved_model_knows_its_kind_and_has_its_scores_again(self, tmp_path: Path) -> None:
        prepared = self.prepared()
        loaded = load_model(self.trained_folder(tmp_path / "model"))
        assert loaded.kind == self.kind().name
        if self.kind().preprocessor is not None:
            assert loaded.tokeniser == prepared.tokeniser
        assert repeat_score(loaded, self.task(), "validation").repeats

    def test_it_predicts_one_answer_for_each_row(self, tmp_path: Path) -> None:
        kind, prepared = self.kind(), self.prepared()
        if kind.predict is None:
            pytest.skip("its models do not predict")
        found = kind.predict(self.model(), prepared, prepared.validation, {})
        assert len(found) == len(prepared.validation.rows)
        assert all(len(pair) == 2 for pair in found)
        again = kind.predict(self.model(), prepared, prepared.validation, {})
        assert again == found

    @pytest.mark.slow
    def test_its_onnx_file_has_the_scores_of_the_model_again(self, tmp_path: Path) -> None:
        folder = self.trained_folder(tmp_path / "model")
        export_model(read_model(str(folder)), "onnx", tmp_path / "onnx")
        loaded = load_model(tmp_path / "onnx")
        assert loaded.kind == self.kind().name
        if self.kind().in_files:
            assert repeat_score(loaded, self.task(), "validation").repeats
        else:
            with pytest.raises(IllegalInput):
                repeat_score(loaded, self.task(), "validation")

    @pytest.mark.slow
    def test_transformers_loads_the_model_and_gives_the_same_scores(self, tmp_path: Path) -> None:
        folder, prepared = self.trained_folder(tmp_path / "model"), self.prepared()
        ours, batch = load_model(folder), batch_of(prepared, prepared.validation, np.arange(3))
        named = {
            self.card().stacks[0].embedding.INPUT: batch.inputs,
            "attention_mask": batch.mask,
            "token_type_ids": batch.types,
            "decoder_input_ids": batch.targets,
            "decoder_attention_mask": batch.targets_mask,
        }
        inputs = {name: tensor for name, tensor in named.items() if tensor is not None}
        arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
        np.savez(tmp_path / "inputs.npz", allow_pickle=False, **arrays)
        auto = AUTO_CLASSES[class_name(self.card(), ours.head.task)]
        files = (folder, tmp_path / "inputs.npz", tmp_path / "outputs.npz")
        command = [sys.executable, "-c", _PLAIN_TRANSFORMERS, auto, *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if self.kind().classes:
            assert tuple(json.loads(done.stdout)) == prepared.task.labels
        with torch.no_grad():
            wanted = NamedInputsModel(ours.model)(**inputs)  # type: ignore[arg-type]
        with np.load(files[-1]) as found:
            for name, scores in zip(ours.head.output_names, wanted, strict=True):
                assert np.allclose(found[name], scores.numpy(), atol=1e-4), name

    def trained_folder(self, folder: Path) -> Path:
        """Train a model for five steps, and write it."""
        prepared = self.prepared()
        trained = fit(self.model(), prepared, self.training(5))
        return self.saved(trained.model, prepared, folder, trained.metrics)

    def saved(self, model: TaskModel, prepared: Prepared, folder: Path, scores: Any) -> Path:
        """Write a model as the commands do."""
        tokeniser, labels = prepared.tokeniser, prepared.task.labels
        return save_pretrained_folder(
            model,
            folder,
            tokenizer=None if tokeniser is None else tokeniser.tokenizer,
            labels=labels if self.kind().classes else (),
            evaluation=evaluation_of(prepared, scores),
        )
