from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.pipeline.compressions import begun, compression, squad
from tests.train.cases import FRAMES, WAVES, Toy
from tests.train.cases import TOY_CARD as CARD
from tests.train.cases import toy_model as model
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.task_model import TaskModel
from formwright.pipeline.fine_tune import FineTune
from formwright.pipeline.start_model import PretrainedForTask
from formwright.pipeline.task_choice import TaskChoice
from formwright.train.distil import Answers, CachedTeacher, HiddenStudent, Mix, ScoreStudent, cached_teacher, distilled
from formwright.train.fit import Training, fresh_model, task_model, task_stream
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import scores_of, train
from formwright.train.losses import loss_of
from formwright.train.prepare import Prepared, prepare
from formwright.train.streams import Batch

KIND = "sequence-classification"
LOSS = loss_of(KIND)
WIDE = Card(encoder=Stack(TokenEmbedding(12, 32, length=8), (Block(32, Attention(2, 16), (64,)),)))


def wide(seed: int = 0) -> TaskModel:
    built = build(WIDE, head=HeadSpec("sequence-classification", 2), seed=seed, spread="width")
    return built


def taught() -> TaskModel:
    teacher = wide()
    train(teacher, Toy(), LOSS, Hyperparameters(steps=200, learning_rate=5e-3))
    return teacher


@pytest.mark.slow
def test_a_student_of_scores_alone_comes_to_answer_as_its_teacher() -> None:
    teacher, student = taught(), model(seed=3)
    before = {name: tensor.clone() for name, tensor in teacher.state_dict().items()}
    learner = HiddenStudent(student, teacher)
    train(learner, Toy(), distilled(KIND, Mix(labels=0.0)), Hyperparameters(steps=250, learning_rate=5e-3))
    batch = Toy().batch(10_000)
    agreement = (scores_of(student.eval(), batch).argmax(-1) == scores_of(teacher, batch).argmax(-1)).float().mean()
    assert agreement > 0.85
    assert all(torch.equal(before[name], tensor) for name, tensor in teacher.state_dict().items())


def test_a_model_is_taught_by_scores_and_answers_alone_when_it_is_judged() -> None:
    teacher, student = wide(), model(seed=3)
    learner, batch = ScoreStudent(student, teacher), Toy().batch(0)
    said = scores_of(learner.train(), batch)
    assert isinstance(said, Answers)
    assert torch.equal(said.teacher_scores, scores_of(teacher.eval(), batch))
    assert not said.teacher_scores.requires_grad
    assert torch.equal(scores_of(learner.eval(), batch), scores_of(student.eval(), batch))
    assert [name for name, _ in learner.named_parameters()] == [
        f"model.{name}" for name, _ in student.named_parameters()
    ]
    assert next(learner.double()._teacher[0].parameters()).dtype == torch.float64  # the teacher goes along


@pytest.mark.parametrize("kind", [ScoreStudent, HiddenStudent])
def test_a_model_that_was_judged_before_is_taught_with_dropout_again(kind) -> None:
    student, modes = model().eval(), []
    learner = kind(student, wide())
    train(
        learner,
        Toy(),
        distilled(KIND, Mix()),
        Hyperparameters(steps=2),
        after_step=lambda *_: modes.append(student.training),
    )
    assert modes == [True, True]


def test_hidden_states_of_other_widths_meet_through_a_projection() -> None:
    learner = HiddenStudent(model(), wide())
    assert learner.projection.weight.shape == (32, 16)
    loss = distilled(KIND, Mix(labels=0.0, scores=0.0, hidden=1.0))
    losses = train(learner, Toy(), loss, Hyperparameters(steps=120, learning_rate=5e-3))
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10])
    assert HiddenStudent(model(), model(seed=1)).projection is None


def test_a_mix_is_the_weighted_sum_of_its_losses() -> None:
    learner = HiddenStudent(model(), wide()).eval()
    batch = Toy().batch(0)
    answers = learner(batch.inputs, None, None, None, None, None)

    def value(mix: Mix) -> float:
        return float(distilled(KIND, mix)(answers, batch).detach())

    parts = [value(Mix(1, 0, 0)), value(Mix(0, 1, 0)), value(Mix(0, 0, 1))]
    assert value(Mix(0.5, 2, 3)) == pytest.approx(0.5 * parts[0] + 2 * parts[1] + 3 * parts[2], rel=1e-5)


SCORES, HIDDEN = Mix(labels=0.0), Mix(labels=0.0, scores=0.0, hidden=1.0)
NOTHING = torch.zeros(1)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), requires_grad=seed == 0)


def divergence(scores: Tensor, wanted: Tensor) -> float:
    """Compute the softened divergence of one choice from its definition."""
    given, shares = (scores / 2).softmax(-1), (wanted / 2).softmax(-1)
    return 4 * float((shares * (shares / given).log()).sum().detach())


def test_numbers_are_taught_by_their_distance() -> None:
    scores, wanted = drawn(6, 1), drawn(6, 1, seed=1)
    loss = distilled("regression", SCORES)(Answers(scores, wanted), Batch(NOTHING, torch.zeros(6)))
    assert float(loss.detach()) == pytest.approx(float(F.mse_loss(scores, wanted).detach()))
    assert float(loss.detach()) > 0.1


def test_spans_are_taught_as_choices_among_real_tokens() -> None:
    scores, wanted = drawn(2, 4, 2), drawn(2, 4, 2, seed=1)
    mask = torch.tensor([[True, True, True, True], [True, True, False, False]])
    batch = Batch(NOTHING, torch.zeros(2, 2), mask)
    loss = distilled("span-extraction", SCORES)
    real = [(scores[row, :size, side], wanted[row, :size, side]) for row, size in ((0, 4), (1, 2)) for side in (0, 1)]
    expected = sum(divergence(*pair) for pair in real) / 4
    value = loss(Answers(scores, wanted), batch)
    assert float(value.detach()) == pytest.approx(expected, rel=1e-4)
    value.backward()
    assert scores.grad.isfinite().all()
    assert scores.grad[1, 2:].abs().max() == 0
    assert float(loss(Answers(scores, wanted), replace(batch, mask=None)).detach()) != pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("kind", ["seq2seq-lm", "masked-lm", "causal-lm"])
def test_words_that_nobody_asked_for_are_not_taught(kind: str) -> None:
    scores, wanted = drawn(2, 3, 5), drawn(2, 3, 5, seed=1)
    labels = torch.tensor([[0, 4, -100], [2, -100, -100]])
    loss = distilled(kind, SCORES)(Answers(scores, wanted), Batch(NOTHING, labels))
    expected = sum(divergence(scores[place], wanted[place]) for place in ((0, 0), (0, 1), (1, 0))) / 3
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-4)


def test_scores_of_many_words_are_compared_like_those_of_few() -> None:
    scores, wanted = drawn(2, 40, 7_000), drawn(2, 40, 7_000, seed=1)
    labels = torch.randint(7_000, (2, 40)).masked_fill(torch.arange(40) > 25, -100)
    value = distilled("seq2seq-lm", SCORES)(Answers(scores, wanted), Batch(NOTHING, labels))
    expected = sum(divergence(scores[row, place], wanted[row, place]) for row in range(2) for place in range(26)) / 52
    assert float(value.detach()) == pytest.approx(expected, rel=1e-4)
    value.backward()
    assert scores.grad[:, 26:].abs().max() == 0
    assert scores.grad[:, :26].abs().amax(-1).min() > 0


def test_hidden_states_count_where_both_give_real_ones() -> None:
    hidden, wanted = torch.zeros(1, 3, 2), torch.ones(1, 3, 2)
    wanted[0, 2] = 100.0
    answers = Answers(torch.zeros(1, 3, 5), torch.zeros(1, 3, 5), hidden, wanted)
    sources, targets = torch.ones(1, 7, dtype=torch.bool), torch.tensor([[True, True, False]])
    batch = Batch(NOTHING, torch.zeros(1, 3), sources, targets=torch.zeros(1, 3), targets_mask=targets)
    assert float(distilled("seq2seq-lm", HIDDEN)(answers, batch)) == 1.0
    with pytest.raises(IllegalInput, match="hidden=0"):
        train(ScoreStudent(model(), wide()), Toy(), distilled(KIND, HIDDEN), Hyperparameters(steps=1))


def test_the_teacher_moves_with_the_student_and_is_not_saved() -> None:
    learner = HiddenStudent(model(), wide())
    assert {name.partition(".")[0] for name in learner.state_dict()} == {"model", "projection"}
    assert CARD.digest != WIDE.digest
    teacher = wide()
    learner = HiddenStudent(model(), teacher).to("meta")
    assert {parameter.device.type for parameter in (*teacher.parameters(), *learner.parameters())} == {"meta"}


@pytest.mark.parametrize("mix", [(0, 0, 0), (-1, 1, 0)])
def test_a_mix_that_teaches_nothing_is_refused(mix: tuple[float, float, float]) -> None:
    with pytest.raises(IllegalInput, match="weights of a mix"):
        Mix(*mix)
    with pytest.raises(IllegalInput, match="temperature"):
        Mix(temperature=0)


# --- cached teachers -------------------------------------------------------------------------------------------------


class CountedTeacher(nn.Module):
    """A teacher that counts how often it is asked."""

    def __init__(self, model: TaskModel) -> None:
        super().__init__()
        self.model = model
        self.times = 0

    def forward(self, *inputs: Tensor | None) -> Tensor:
        self.times += 1
        found: Tensor = self.model(*inputs)
        return found


def begin(folder: Path, **options: Any) -> tuple[PretrainedForTask, Training]:
    run = begun(compression(folder, **options), folder / "out")
    stage = run.pipeline.of_kind(FineTune)[0]
    return stage.pretrained(run.stage(stage)), stage.training_of(run.stage(stage))


def asked(read: PretrainedForTask, training: Training) -> CountedTeacher:
    return CountedTeacher(task_model(read.imported, read.prepared, training).eval())


def check(prepared: Prepared, training: Training, teacher: CountedTeacher, memory: CachedTeacher, steps: int) -> None:
    """See that batches are answered as the teacher would, and from memory."""
    stream, before = task_stream(prepared, training.recipe), teacher.times
    with torch.inference_mode():
        for step in range(steps):
            batch = stream.batch(step)
            wanted = scores_of(teacher.model, batch)
            found = scores_of(memory, batch)
            assert found.shape == wanted.shape
            real = torch.ones_like(wanted[..., 0], dtype=torch.bool) if wanted.ndim == 2 else batch.mask
            compared = slice(None) if real is None else real
            assert (found[compared] - wanted[compared]).abs().max() < 1e-5
    assert teacher.times == before


@pytest.mark.slow
def test_rows_in_any_batch_are_answered_as_the_teacher_would_and_it_is_asked_once(tmp_path: Path) -> None:
    read, training = begin(tmp_path)
    path, teacher, prepared = tmp_path / "answers.safetensors", asked(read, training), read.prepared
    check(prepared, training, teacher, cached_teacher(teacher, prepared, path), steps=12)
    content, times = path.read_bytes(), teacher.times
    check(prepared, training, teacher, cached_teacher(teacher, prepared, path), steps=3)
    assert (path.read_bytes(), teacher.times) == (content, times)  # the file is read
    path.unlink()
    cached_teacher(teacher, prepared, path)
    assert path.read_bytes() == content  # whatever was done meanwhile


@pytest.mark.slow
@pytest.mark.parametrize("spans", [False, True])
def test_numbers_and_spans_are_remembered_too(spans: bool, tmp_path: Path) -> None:
    options = {"task": TaskChoice("squad", str(squad(tmp_path)))} if spans else {"scored": True}
    read, training = begin(tmp_path, **options)
    teacher = asked(read, training)
    check(read.prepared, training, teacher, cached_teacher(teacher, read.prepared, tmp_path / "answers"), steps=6)


@pytest.mark.slow
def test_the_teacher_is_asked_where_a_row_is_not_known(tmp_path: Path) -> None:
    (read, training), path = begin(tmp_path), tmp_path / "answers"
    teacher = asked(read, training)
    memory = cached_teacher(teacher, read.prepared, path)
    before, other = teacher.times, torch.full((2, 5), 7)
    assert memory(other).tolist() == teacher.model(other, None, None).tolist()
    assert teacher.times == before + 1
    path.write_bytes(b"half of it")
    with pytest.raises(IllegalInput, match=r"cannot read .*delete it"):
        cached_teacher(teacher, read.prepared, path)


def test_frames_are_remembered_whatever_their_padding(tmp_path: Path) -> None:
    prepared, training = prepare(WAVES, FRAMES, 32), Training(Hyperparameters(6, 8, 1e-3, seed=0), 32, device="cpu")
    assert len(set(prepared.train.examples.lengths.tolist())) > 1
    teacher = CountedTeacher(fresh_model(FRAMES, prepared, training).eval())
    check(prepared, training, teacher, cached_teacher(teacher, prepared, tmp_path / "answers"), steps=6)
