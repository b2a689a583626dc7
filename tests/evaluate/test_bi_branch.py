"""Brief training from shared weights."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.evaluate.toy import TASK, finished, history, trainer
from tests.supernet.branched import QK, QKV, QP, card, same

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Observation, Request
from formwright.evaluate.bi_branch import VERSION, BiBranch
from formwright.evaluate.branch_files import BRANCHES
from formwright.evaluate.context import Context
from formwright.evaluate.pretrained import PRETRAINED, Pretraining, after_pretraining
from formwright.evaluate.training import WEIGHTS, training_macs
from formwright.supernet.branch_store import folded, taken, written
from formwright.supernet.branches import HEAD, Branches
from formwright.supernet.kernels import to_train, weights_of
from formwright.tasks import load_task
from formwright.train.fit import Training
from formwright.train.prepare import prepare
from formwright.train.recipe import Recipe

STEPS = 3
FIRST, SECOND, THIRD = card(QK, 3), card(5, QKV), card(3, QP)
LAYER = "transformer.encoder.layers"


def pretraining(steps: int = STEPS, **recipe: Any) -> Pretraining:
    return Pretraining(Training(Recipe(steps, 16, **{"learning_rate": 3e-3, **recipe}), length=12, device="cpu"))


def evaluator(**changes: Any) -> BiBranch:
    values: dict[str, Any] = {"trainer": trainer(steps=2), "pretraining": pretraining()}
    return BiBranch(**{**values, "branches": Branches.of(FIRST, 9), **changes})


def study(folder: Path, *designs: Card, seed: int = 0) -> list[Observation]:
    """Evaluate designs one after the other."""
    found: list[Observation] = []
    for design in designs:
        context = Context(seed, folder, history(*map(finished, range(len(found)), designs, found)))
        found.append(evaluator().evaluate(Request(design), context))
    return found


def test_a_card_leaves_what_pretraining_made_of_shared_weights(tmp_path: Path) -> None:
    (found,) = study(tmp_path, FIRST)
    start = evaluator().store(Context(0, tmp_path))
    left = load_file(tmp_path / found.artifacts[BRANCHES])
    assert left.keys() == written(FIRST, taken(start, FIRST)).keys()
    moved = [name for name in left if not name.endswith("kernel") and name in start.tensors]
    assert not all(left[name].equal(start.tensors[name]) for name in moved)
    assert left[f"convolution-3/{LAYER}.1.mixer.change"].any()  # the matrix has learnt
    assert (found.artifacts[VERSION], found.artifacts[PRETRAINED]) == ("0", str(STEPS))
    assert WEIGHTS not in found.artifacts


def test_the_next_card_starts_from_what_was_left(tmp_path: Path) -> None:
    first, second = study(tmp_path, FIRST, SECOND)
    assert second.artifacts[VERSION] == "1"
    context = Context(0, tmp_path, history(finished(0, FIRST, first)))
    start = evaluator().store(context)
    left = load_file(tmp_path / first.artifacts[BRANCHES])
    assert same(start, folded(evaluator().store(Context(0, tmp_path)), [left]))
    # one step at no rate leaves the second card's weights as it found them
    still = evaluator(pretraining=pretraining(1, learning_rate=1e-12, weight_decay=0.0))
    found = load_file(tmp_path / still.evaluate(Request(SECOND), context).artifacts[BRANCHES])
    given = written(SECOND, taken(start, SECOND))
    assert found.keys() == given.keys()
    assert all(found[name].allclose(given[name], atol=1e-6) for name in given)


def test_a_card_is_fine_tuned_from_what_it_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[dict[str, torch.Tensor]] = []

    def fit(model: Any, *rest: Any) -> Any:
        begun.append({name: tensor.clone() for name, tensor in model.transformer.named_parameters()})
        return whole(model, *rest)

    from formwright.evaluate import training

    whole = training.fit
    monkeypatch.setattr(training, "fit", fit)
    (found,) = study(tmp_path, FIRST)
    left = load_file(tmp_path / found.artifacts[BRANCHES])
    change, kernel = left[f"convolution-3/{LAYER}.1.mixer.change"], left[f"convolution/{LAYER}.1.mixer.kernel"]
    assert begun[0]["encoder.layers.1.mixer.kernel"].equal(kernel + kernel @ change)
    query = "encoder.layers.0.mixer.inputs.Q.weight"
    assert begun[0][query].equal(left[f"attention/transformer.{query}"])
    assert begun[0]["encoder.embedding.tokens.weight"].equal(left["transformer.encoder.embedding.tokens.weight"])


def test_what_was_learnt_of_the_task_is_not_shared(tmp_path: Path) -> None:
    (short,), long = study(tmp_path, FIRST), evaluator(trainer=trainer(steps=9))
    assert long.evaluate(Request(FIRST), Context(0, tmp_path)).artifacts[BRANCHES] == short.artifacts[BRANCHES]


def test_a_study_repeats_itself_and_depends_on_its_seed(tmp_path: Path) -> None:
    designs = (FIRST, SECOND, THIRD)
    one, again, other = (study(tmp_path / name, *designs, seed=seed) for name, seed in (("a", 0), ("b", 0), ("c", 1)))
    assert [found.metrics for found in one] == [found.metrics for found in again]
    # files are named by their content
    assert [found.artifacts for found in one] == [found.artifacts for found in again]
    assert one[0].artifacts[BRANCHES] != other[0].artifacts[BRANCHES]


def test_lost_files_of_earlier_trials_are_made_again(tmp_path: Path) -> None:
    designs = (FIRST, SECOND, THIRD)
    found = study(tmp_path, *designs)
    paths = [tmp_path / one.artifacts[BRANCHES] for one in found]
    contents = [path.read_bytes() for path in paths]
    context = Context(0, tmp_path, history(*map(finished, range(3), designs, found)))
    before = evaluator().store(context)
    for path in (paths[0], paths[2]):
        path.unlink()
    paths[2].write_bytes(contents[2][:-9])
    assert same(evaluator().store(context), before)
    assert [path.read_bytes() for path in paths] == contents


def test_a_lost_file_that_cannot_be_made_again_is_told(tmp_path: Path) -> None:
    first, second = study(tmp_path, FIRST, SECOND)
    # as if both had been under way together: nobody can tell from the history what the second one began with
    alone = replace(second, artifacts={**second.artifacts, VERSION: "0"})
    context = Context(0, tmp_path, history(finished(0, FIRST, first), finished(1, SECOND, alone)))
    (tmp_path / second.artifacts[BRANCHES]).unlink()
    with pytest.raises(EvaluationFailed, match=r"weights that trial 1 left: there is no .*put the file back"):
        evaluator().store(context)
    # other weights came out: of another machine, or here of a longer pretraining
    context = Context(0, tmp_path, history(finished(0, FIRST, first), finished(1, SECOND, second)))
    with pytest.raises(EvaluationFailed, match="weights that trial 1 left: there is no"):
        evaluator(pretraining=pretraining(STEPS + 1)).store(context)
    assert len(list(tmp_path.rglob("*.safetensors"))) == 1


def test_later_trials_fill_in_other_words(tmp_path: Path) -> None:
    (first,) = study(tmp_path, FIRST)
    context = Context(0, tmp_path, history(finished(0, FIRST, first)))
    store = evaluator().store(context)
    second = evaluator().evaluate(Request(FIRST), context)
    model = to_train(FIRST, taken(store, FIRST), HEAD, pretraining().training.settings)
    pretraining().learnt(FIRST, prepare(TASK, FIRST, 12), 0, model=model)
    same_words = written(FIRST, weights_of(model))
    left = load_file(tmp_path / second.artifacts[BRANCHES])
    assert any(not left[name].equal(same_words[name]) for name in left)


def test_trials_side_by_side_leave_what_each_leaves_alone(tmp_path: Path) -> None:
    (first,) = study(tmp_path, FIRST)
    context = Context(0, tmp_path, history(finished(0, FIRST, first)))
    alone = [evaluator().evaluate(Request(design), context) for design in (SECOND, THIRD)]
    with ThreadPoolExecutor(2) as pool:
        requests = [Request(THIRD), Request(SECOND)]
        both = list(pool.map(lambda request: evaluator().evaluate(request, context), requests))
    assert [found.artifacts for found in both] == [found.artifacts for found in reversed(alone)]
    trials = [finished(0, FIRST, first), finished(1, SECOND, alone[0]), finished(2, THIRD, alone[1])]
    last = evaluator().store(Context(0, tmp_path, history(*trials)))
    expected = evaluator().store(context)
    for design, found in zip((SECOND, THIRD), alone, strict=True):
        expected = folded(expected, [load_file(tmp_path / found.artifacts[BRANCHES])])
        assert taken(expected, design)[f"{LAYER}.0.mixer.kernel"].shape[-1] == (5 if design is SECOND else 3)
    assert same(last, expected)


def test_weights_that_are_no_numbers_are_never_left(tmp_path: Path) -> None:
    broken = evaluator(pretraining=pretraining(1, learning_rate=1e39))
    with pytest.raises(EvaluationFailed, match=r"pretraining left no number in .*; lower the learning rate"):
        broken.evaluate(Request(FIRST), Context(0, tmp_path))
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_trial_whose_fine_tuning_fails_leaves_nothing(tmp_path: Path) -> None:
    broken = evaluator(trainer=trainer(steps=5, learning_rate=1e30, clip=1e30))
    with pytest.raises(EvaluationFailed):
        broken.evaluate(Request(FIRST), Context(0, tmp_path))
    assert not list(tmp_path.rglob("*.safetensors"))


def test_what_was_spent_is_the_sum_of_both(tmp_path: Path) -> None:
    (found,) = study(tmp_path, FIRST)
    assert found.spent.steps == STEPS + 2
    prepared = prepare(TASK, FIRST, 12)
    tuning = training_macs(FIRST, prepared, trainer(steps=2).training, 2)
    assert tuning < found.spent.macs
    assert found.spent.seconds > 0


def test_every_step_of_both_is_told(tmp_path: Path) -> None:
    told: list[int] = []
    context = Context(0, tmp_path, after_step=lambda step, _: told.append(step))
    evaluator().evaluate(Request(FIRST), context)
    assert told == [*range(STEPS), *range(2)]


def test_from_scratch_nothing_is_shared(tmp_path: Path) -> None:
    alone = evaluator(from_scratch=True)
    first = alone.evaluate(Request(FIRST), Context(0, tmp_path / "a"))
    assert BRANCHES not in first.artifacts
    context = Context(0, tmp_path / "b", history(finished(0, FIRST, first)))
    second = alone.evaluate(Request(SECOND), context)
    fresh = after_pretraining(trainer(steps=2), pretraining(), Request(SECOND), Context(0, tmp_path / "c"))
    assert (second.metrics, second.artifacts) == (fresh.metrics, fresh.artifacts)
    assert alone.evaluate(Request(SECOND), Context(0)).metrics == fresh.metrics  # needs no folder


def test_sharing_needs_a_folder() -> None:
    with pytest.raises(IllegalInput, match="needs a folder"):
        evaluator().evaluate(Request(FIRST), Context(0))


def test_designs_that_do_not_fit_the_branches_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=r"nothing that fits .*mixer\.kernel"):
        evaluator().evaluate(Request(card(QK, 11)), Context(0, tmp_path))


@pytest.mark.parametrize("name", ["digits", "pydoc/causal", "translation"])
def test_tasks_without_words_to_fill_in_are_refused(name: str) -> None:
    with pytest.raises(IllegalInput, match=rf"designs for the task {name} .* cannot be pretrained"):
        evaluator(trainer=trainer(task=load_task(name)))
