import pytest
import torch
from tests.train.toy import CARD, Toy, model

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.heads import HeadSpec
from formwright.nn.task_model import TaskModel
from formwright.train.distil import Mix, Student, distilled
from formwright.train.loop import scores_of, train
from formwright.train.losses import loss_of
from formwright.train.recipe import Recipe

LOSS = loss_of("sequence-classification")
WIDE = Card(encoder=Stack(TokenEmbedding(12, 32, length=8), (Block(32, Attention(2, 16), (64,)),)))


def wide(seed: int = 0) -> TaskModel:
    built = build(WIDE, head=HeadSpec("sequence-classification", 2), seed=seed, spread="width")
    assert isinstance(built, TaskModel)
    return built


def taught() -> TaskModel:
    teacher = wide()
    train(teacher, Toy(), LOSS, Recipe(steps=200, learning_rate=5e-3))
    return teacher


def test_a_student_of_scores_alone_comes_to_answer_as_its_teacher() -> None:
    teacher, student = taught(), model(seed=3)
    before = {name: tensor.clone() for name, tensor in teacher.state_dict().items()}
    learner = Student(student, teacher)
    train(learner, Toy(), distilled(LOSS, Mix(labels=0.0)), Recipe(steps=250, learning_rate=5e-3))
    batch = Toy().batch(10_000)
    agreement = (scores_of(student.eval(), batch).argmax(-1) == scores_of(teacher, batch).argmax(-1)).float().mean()
    assert agreement > 0.85
    assert all(torch.equal(before[name], tensor) for name, tensor in teacher.state_dict().items())


def test_hidden_states_of_other_widths_meet_through_a_projection() -> None:
    learner = Student(model(), wide())
    assert learner.projection is not None
    assert learner.projection.weight.shape == (32, 16)
    loss = distilled(LOSS, Mix(labels=0.0, scores=0.0, hidden=1.0))
    losses = train(learner, Toy(), loss, Recipe(steps=120, learning_rate=5e-3))
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10])
    assert Student(model(), model(seed=1)).projection is None


def test_a_mix_is_the_weighted_sum_of_its_losses() -> None:
    learner = Student(model(), wide()).eval()
    batch = Toy().batch(0)
    answers = learner(batch.inputs, None, None, None, None, None)

    def value(mix: Mix) -> float:
        return float(distilled(LOSS, mix)(answers, batch).detach())

    parts = [value(Mix(1, 0, 0)), value(Mix(0, 1, 0)), value(Mix(0, 0, 1))]
    assert value(Mix(0.5, 2, 3)) == pytest.approx(0.5 * parts[0] + 2 * parts[1] + 3 * parts[2], rel=1e-5)


def test_the_teacher_is_not_saved_with_the_student() -> None:
    learner = Student(model(), wide())
    assert {name.partition(".")[0] for name in learner.state_dict()} == {"model", "projection"}
    assert CARD.digest != WIDE.digest


@pytest.mark.parametrize("mix", [(0, 0, 0), (-1, 1, 0)])
def test_a_mix_that_teaches_nothing_is_refused(mix: tuple[float, float, float]) -> None:
    with pytest.raises(IllegalInput, match="weights of a mix"):
        Mix(*mix)
    with pytest.raises(IllegalInput, match="temperature"):
        Mix(temperature=0)
