"""Brief training from shared weights."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.evaluate.toy import TASK, files, finished, history, trainer
from tests.supernet.branched import QK, QKV, QP, card, changed, random_cards, returned, same, store
from torch import Tensor

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Observation, Request, Trial
from formwright.evaluate import bi_branch
from formwright.evaluate.bi_branch import BRANCHES, VERSION, BiBranch, FromStore, is_whole, keep, put_back, store_after
from formwright.evaluate.context import Context
from formwright.evaluate.inherited import PRETRAINED, Pretraining, after_pretraining
from formwright.evaluate.training import WEIGHTS, training_macs
from formwright.nn.task_model import TaskModel
from formwright.supernet.branches import (
    HEAD,
    Branches,
    BranchStore,
    folded,
    taken,
    to_train,
    weights_of,
    without_matrices,
    written,
)
from formwright.tasks import load_task
from formwright.train.fit import Training, fresh_model
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.prepare import prepare

STEPS = 3
FIRST, SECOND, THIRD = card(QK, 3), card(5, QKV), card(3, QP)
LAYER = "transformer.encoder.layers"


def pretraining(steps: int = STEPS, **recipe: Any) -> Pretraining:
    return Pretraining(
        Training(Hyperparameters(steps, 16, **{"learning_rate": 3e-3, **recipe}), length=12, device="cpu")
    )


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
    change, kernel = left[f"convolution-3/{LAYER}.1.mixer.change"], left[f"{LAYER}.1.mixer.kernel"]
    assert begun[0]["encoder.layers.1.mixer.kernel"].equal(kernel + kernel @ change)
    query = "encoder.layers.0.mixer.inputs.Q.weight"
    assert begun[0][query].equal(left[f"transformer.{query}"])
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
    with pytest.raises(EvaluationFailed, match=r"pretraining left NaN or infinity in .*; lower the learning rate"):
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


START = store()
CARDS = (card(QK, 3), card(5, QKV), *random_cards(4))


def trial(folder: Path, number: int) -> tuple[Trial, dict[str, Tensor]]:
    """Give a finished trial that left a file, and its weights."""
    design = CARDS[number]
    weights = changed(taken(START, design), number + 1.0)
    name = keep(written(design, weights), folder)
    return finished(number, design, Observation({"accuracy": 0.5}, artifacts={BRANCHES: name})), weights


def after(folder: Path, *trials: Trial) -> BranchStore:
    return store_after(START, history(*trials), folder)


def test_the_store_is_the_files_of_finished_trials_in_their_order(tmp_path: Path) -> None:
    made = [trial(tmp_path, number) for number in range(len(CARDS))]
    expected = START
    for number, (_, weights) in enumerate(made):
        expected = returned(expected, CARDS[number], weights)
    assert same(after(tmp_path, *(one for one, _ in made)), expected)
    assert same(after(tmp_path / "nowhere"), START)
    assert expected.version == len(CARDS)


def test_only_finished_trials_that_left_a_file_count(tmp_path: Path) -> None:
    (first, _), (second, _) = trial(tmp_path, 0), trial(tmp_path, 1)
    others = (
        Trial(2, Request(CARDS[2])),
        Trial(3, Request(CARDS[3]), "failed", reason="diverged"),
        finished(4, CARDS[4], Observation({"accuracy": 0.5})),
    )
    assert same(after(tmp_path, first, second, *others), after(tmp_path, first, second))


def test_the_order_in_which_files_are_written_does_not_matter(tmp_path: Path) -> None:
    stores = []
    for place, order in enumerate(permutations(range(3))):
        folder = tmp_path / str(place)
        made = {number: trial(folder, number)[0] for number in order}
        stores.append(after(folder, *(made[number] for number in sorted(made))))
    assert all(same(one, stores[0]) for one in stores)


def test_files_are_named_by_their_content_and_hold_what_was_written(tmp_path: Path) -> None:
    weights = written(CARDS[0], taken(START, CARDS[0]))
    name = keep(weights, tmp_path)
    assert keep(weights, tmp_path) == name
    assert files(tmp_path) == [name]
    found = load_file(tmp_path / name)
    assert found.keys() == weights.keys()
    assert len(found) < len(START.tensors), "only what the design has"
    assert all(found[key].equal(weights[key]) for key in weights)
    other = keep(written(CARDS[0], changed(taken(START, CARDS[0]))), tmp_path)
    assert files(tmp_path) == sorted([name, other])


def test_a_file_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    weights = written(CARDS[0], taken(START, CARDS[0]))
    path = tmp_path / keep(weights, tmp_path)
    before = path.stat().st_ino
    keep(weights, tmp_path)
    assert path.stat().st_ino == before
    path.write_bytes(b"what a fault of the disk left")
    keep(weights, tmp_path)
    assert load_file(path).keys() == weights.keys()


def test_of_overwritten_tensors_nothing_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    design, read = card(QK, QKV), list[str]()
    opened = bi_branch.safe_open

    def watched(path: Path, framework: str) -> Any:
        read.append(path.name)
        return opened(path, framework=framework)

    trials = []
    for number in range(4):
        name = keep(written(design, changed(taken(START, design), number)), tmp_path)
        trials.append(finished(number, design, Observation({"accuracy": 0.5}, artifacts={BRANCHES: name})))
    monkeypatch.setattr(bi_branch, "safe_open", watched)
    after(tmp_path, *trials)
    counts = [read.count(Path(one.observation.artifacts[BRANCHES]).name) for one in trials if one.observation]
    assert counts == [1, 1, 1, 1 + len(written(design, taken(START, design)))]  # once for the names


@pytest.mark.parametrize("damage", ["gone", "cut short", "emptied", "a folder", "one bit"])
def test_a_damaged_file_is_noticed(damage: str, tmp_path: Path) -> None:
    one, _ = trial(tmp_path, 3)
    after(tmp_path, one)
    assert is_whole(one, tmp_path)
    path = tmp_path / one.observation.artifacts[BRANCHES]
    content = bytearray(path.read_bytes())
    path.unlink()
    content[-5] ^= 1
    if damage == "a folder":
        path.mkdir()
    elif damage != "gone":
        path.write_bytes({"cut short": content[:200], "emptied": b"", "one bit": content}[damage])
    assert not is_whole(one, tmp_path)
    told = rf"from the weights that trial 3 left: {'there is no' if damage == 'gone' else '.*safetensors is damaged'}"
    with pytest.raises(EvaluationFailed, match=f"{told}.*put the file back from a copy of the study, then resume it"):
        after(tmp_path, one)


def test_a_file_is_put_back_with_what_it_held_and_nothing_else(tmp_path: Path) -> None:
    one, weights = trial(tmp_path, 0)
    path = tmp_path / one.observation.artifacts[BRANCHES]
    content = path.read_bytes()
    path.write_bytes(b"what a fault of the disk left")
    put_back(one, written(CARDS[0], changed(weights)), tmp_path)
    assert (path.read_bytes(), len(files(tmp_path))) == (b"what a fault of the disk left", 1)
    put_back(one, written(CARDS[0], weights), tmp_path)
    assert path.read_bytes() == content


def test_a_file_is_on_the_disk_before_its_name_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    name = keep(written(CARDS[0], taken(START, CARDS[0])), tmp_path)
    assert synced == [str(tmp_path / name), str(tmp_path / BRANCHES)]


def test_a_full_disk_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(bi_branch, "write_whole", full)
    with pytest.raises(IllegalInput, match=r"cannot write .*No space left") as told:
        trial(tmp_path, 0)
    assert isinstance(told.value.__cause__, OSError)


STILL = pretraining(1, learning_rate=1e-12, weight_decay=0.0)  # leaves every weight, to six digits, as it was
KERNEL = "encoder.layers.1.mixer.kernel"


@pytest.fixture(name="store")
def shared_store(tmp_path: Path) -> BranchStore:
    """Give what two trials leave."""
    found = study(tmp_path, FIRST, SECOND)
    trials = history(*map(finished, range(2), (FIRST, SECOND), found))
    return evaluator().store(Context(0, tmp_path, trials))


def begun(store: BranchStore, design: Card = FIRST, pretraining: Pretraining = STILL, seed: int = 7) -> TaskModel:
    return FromStore(store, pretraining, seed)(design, prepare(TASK, design, 12), trainer().training)


def test_a_design_has_the_weights_of_the_store_below_a_fresh_head(store: BranchStore) -> None:
    model, expected = begun(store), without_matrices(taken(store, FIRST))
    for name, tensor in model.transformer.named_parameters():
        assert tensor.allclose(expected[f"transformer.{name}"], atol=1e-6), name
    fresh = fresh_model(FIRST, prepare(TASK, FIRST, 12), trainer().training)
    assert all(tensor.equal(fresh.head.state_dict()[name]) for name, tensor in model.head.state_dict().items())
    assert not model.transformer.get_parameter(KERNEL).allclose(fresh.transformer.get_parameter(KERNEL), atol=1e-6)


def test_kernels_are_those_that_the_matrices_showed(store: BranchStore) -> None:
    given = taken(store, FIRST)
    assert given[f"transformer.{KERNEL.replace('kernel', 'change')}"].any()
    assert not begun(store).transformer.get_parameter(KERNEL).allclose(given[f"transformer.{KERNEL}"], atol=1e-6)


def test_it_is_pretrained_on_and_the_store_stays_as_it_is(store: BranchStore) -> None:
    before = {name: tensor.clone() for name, tensor in store.tensors.items()}
    still, further, again, other = (
        begun(store).transformer.state_dict(),
        *(begun(store, pretraining=pretraining(), seed=seed).transformer.state_dict() for seed in (7, 7, 8)),
    )
    words = "encoder.embedding.tokens.weight"
    assert not further[words].allclose(still[words], atol=1e-6)
    assert all(tensor.equal(again[name]) for name, tensor in further.items())
    assert not other[words].equal(further[words])
    assert all(torch.equal(tensor, store.tensors[name]) for name, tensor in before.items())
