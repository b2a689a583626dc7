"""Sub-networks are scored with the weights of their super-network, and races never flatter them."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.evaluate.toy import SCORED, TASK, card, files, finished, history
from tests.train.cases import ENCODER, LENGTH, SPANS

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import History, Observation, Request
from formwright.core.rng import derive
from formwright.cost import params
from formwright.evaluate.context import Context
from formwright.evaluate.races import RaceRules
from formwright.evaluate.shared import ANSWERS, RIVAL, STOPPED, Shared, SharedWeights
from formwright.nn.build import build
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.inherit import Reading
from formwright.space.zoo import load_space
from formwright.supernet.automatic import sub_network
from formwright.supernet.library import LibraryWeights, library_of
from formwright.tasks.metrics import metric
from formwright.tasks.task import Task
from formwright.train import judge as train_judge
from formwright.train.fit import Training, fit, fresh_model
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.judge import answers, judge, truths
from formwright.train.prepare import prepare
from formwright.train.streams import Batch

WHOLE = card(32, 32)
NARROW = sub_network(WHOLE, ((1, 16), (2, 32)))
THIN = sub_network(WHOLE, ((1, 8), (1, 8)))
EAGER = RaceRules(first=8, growth=1.3, doubt=0.2)  # there are few rows


def network(task: Task = TASK, whole: Card = WHOLE, length: int = 12, steps: int = 60) -> SharedWeights:
    """Train a small network for a moment, so that what is left out of it matters."""
    prepared = prepare(task, whole, length)
    training = Training(Hyperparameters(steps, 16, learning_rate=3e-3), length=length, device="cpu")
    return SharedWeights(fit(fresh_model(whole, prepared, training), prepared, training).model, prepared)


@pytest.fixture(scope="module")
def trained() -> SharedWeights:
    return network()


def shared(weights: SharedWeights, rules: RaceRules | None = EAGER) -> Shared:
    return Shared(weights, params, rules)


def lost(weights: SharedWeights) -> SharedWeights:
    """Give a network whose every sub-network gives the wrong answer to most rows: its labels change places."""
    model = build(WHOLE, weights.model.transformer.settings, weights.model.spec)
    state = {name: tensor.clone() for name, tensor in weights.model.state_dict().items()}
    for name in ("head.output.weight", "head.output.bias"):
        state[name] = state[name].flip(0)
    model.load_state_dict(state)
    return replace(weights, model=model.eval())


@pytest.mark.parametrize("rules", [None, EAGER])
@pytest.mark.parametrize("part", [WHOLE, NARROW, THIN], ids=["whole", "narrow", "thin"])
def test_without_rivals_the_extracted_model_is_scored(
    part: Card, rules: RaceRules | None, trained: SharedWeights
) -> None:
    found = shared(trained, rules).evaluate(Request(part), Context())
    prepared = trained.prepared
    assert found.metrics == judge(trained.extracted(part), prepared, prepared.validation)
    assert found.artifacts == {}  # there is no folder to keep them in
    assert (found.spent.steps, found.spent.seconds > 0) == (0, True)
    assert found.spent.macs > 0


def test_designs_of_several_kinds_are_judged_with_the_weights_of_a_library(tmp_path: Path) -> None:
    space = load_space("magic-nano")
    cards = [space.card(space.sample(derive(0, "judged kinds", turn))) for turn in range(3)]
    whole = network(whole=cards[0], steps=1)
    made = LibraryWeights.fresh(library_of(space, whole.model.spec), whole.model.spec, whole.model.settings, 0, "width")
    kinds = replace(whole, library=made.eval())
    for one in cards:
        found = shared(kinds, None).evaluate(Request(one), Context(history(), tmp_path))
        expected = judge(kinds.extracted(one), kinds.prepared, kinds.prepared.validation)
        assert found.metrics["accuracy"] == pytest.approx(expected["accuracy"])


def test_batches_are_made_once_for_all_designs(trained: SharedWeights, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(Batch, "to", lambda self, _: made.append(len(self.inputs)) or self)
    evaluator = shared(trained, None)
    first = evaluator.evaluate(Request(NARROW), Context())
    assert sum(made) == len(trained.prepared.validation.examples)
    again = [evaluator.evaluate(Request(part), Context()).metrics for part in (WHOLE, THIN, NARROW)]
    assert sum(made) == len(trained.prepared.validation.examples)
    assert again[-1] == first.metrics
    assert trained.prepared.validation.batches is None  # others keep nothing


def test_some_rows_count_the_same_for_all(trained: SharedWeights, tmp_path: Path) -> None:
    few = replace(shared(trained), most=10)
    found = few.evaluate(Request(NARROW), Context(folder=tmp_path))
    prepared, rows = trained.prepared, few._rows
    assert len(set(rows.tolist())) == 10
    (given,) = answers([trained.extracted(NARROW)], prepared, prepared.validation, rows)
    assert found.metrics["accuracy"] == float((given == truths(prepared.validation)[rows]).mean())
    assert np.load(tmp_path / found.artifacts[ANSWERS], allow_pickle=False).tolist() == given.tolist()
    whole = shared(trained).evaluate(Request(NARROW), Context())
    assert found.spent.macs == pytest.approx(whole.spent.macs * 10 / len(prepared.validation.examples))
    assert replace(few, most=10**6).evaluate(Request(NARROW), Context()).metrics == whole.metrics
    context = Context(folder=tmp_path, history=history(finished(7, NARROW, found)))
    beaten = Shared(lost(trained), params, RaceRules(first=4, growth=1.3, doubt=0.3), most=10)
    assert beaten.evaluate(Request(WHOLE), context).artifacts[STOPPED].endswith(" of 10 rows")


def test_sub_networks_differ_and_the_largest_is_the_network_itself(trained: SharedWeights) -> None:
    scores = [shared(trained).evaluate(Request(part), Context()).metrics["accuracy"] for part in (WHOLE, THIN)]
    assert scores[0] > scores[1]
    whole = trained.extracted(WHOLE).state_dict()
    assert all(tensor.equal(whole[name]) for name, tensor in trained.model.state_dict().items())
    assert trained.extracted(WHOLE).head.output.weight is not trained.model.head.output.weight  # type: ignore[union-attr]
    assert trained.card == WHOLE


def test_the_answers_to_all_rows_are_kept_for_later_races(trained: SharedWeights, tmp_path: Path) -> None:
    found = shared(trained).evaluate(Request(NARROW), Context(folder=tmp_path))
    assert files(tmp_path) == [found.artifacts[ANSWERS]] == [f"answers/{NARROW.digest[:32]}.npy"]
    kept = np.load(tmp_path / found.artifacts[ANSWERS], allow_pickle=False)
    truth = trained.prepared.validation.examples.labels
    assert float((kept == truth).mean()) == found.metrics["accuracy"]


def raced(weights: SharedWeights, rival: Card, part: Card, folder: Path) -> tuple[Observation, Observation]:
    """Judge a rival with good weights, and then a sub-network of a network that is mostly wrong."""
    first = shared(weights).evaluate(Request(rival), Context(folder=folder))
    context = Context(folder=folder, history=history(finished(7, rival, first)))
    return first, shared(lost(weights)).evaluate(Request(part), context)


def test_one_that_is_surely_beaten_is_stopped_and_scored_lower(trained: SharedWeights, tmp_path: Path) -> None:
    rival, found = raced(trained, NARROW, WHOLE, tmp_path)
    rows = len(trained.prepared.validation.examples)
    assert found.artifacts[RIVAL] == "7"
    number = int(found.artifacts[STOPPED].removesuffix(f" of {rows} rows"))
    assert EAGER.first <= number < rows
    assert ANSWERS not in found.artifacts
    assert files(tmp_path) == [rival.artifacts[ANSWERS]]
    assert found.metrics["accuracy"] < rival.metrics["accuracy"]
    whole = shared(lost(trained), None).evaluate(Request(WHOLE), Context())
    assert found.spent.macs < whole.spent.macs


def test_a_stopped_one_is_never_said_to_be_as_good_as_its_rival(tmp_path: Path) -> None:
    """Whatever the weights are: many networks race against one rival."""
    weights = network(steps=30)
    first = shared(weights).evaluate(Request(NARROW), Context(folder=tmp_path))
    context = Context(folder=tmp_path, history=history(finished(0, NARROW, first)))
    ended = []
    for seed in range(8):
        other = build(WHOLE, head=weights.model.spec, seed=seed, spread="width")
        found = shared(replace(weights, model=other.eval())).evaluate(Request(WHOLE), context)
        ended.append(STOPPED in found.artifacts)
        assert not ended[-1] or found.metrics["accuracy"] < first.metrics["accuracy"]
    assert sum(ended) > 1


def test_who_costs_less_has_no_rival(trained: SharedWeights, tmp_path: Path) -> None:
    _, found = raced(trained, WHOLE, THIN, tmp_path)
    assert STOPPED not in found.artifacts
    assert found.metrics == shared(lost(trained), None).evaluate(Request(THIN), Context()).metrics


def test_a_rival_costs_no_more_in_any_cost(trained: SharedWeights, tmp_path: Path) -> None:
    first = shared(trained).evaluate(Request(NARROW), Context(folder=tmp_path))
    context = Context(folder=tmp_path, history=history(finished(0, NARROW, first)))

    def dear(one: Card) -> float:
        return 2.0 if one == NARROW else 1.0

    loser = lost(trained)
    assert STOPPED in Shared(loser, params, EAGER).evaluate(Request(WHOLE), context).artifacts
    whole = Shared(loser, params, EAGER, others=(dear,)).evaluate(Request(WHOLE), context)
    assert STOPPED not in whole.artifacts
    cheap = Shared(loser, params, EAGER, others=(lambda one: -dear(one),)).evaluate(Request(WHOLE), context)
    assert STOPPED in cheap.artifacts


def test_the_rival_is_the_best_of_those_that_cost_no_more(trained: SharedWeights, tmp_path: Path) -> None:
    good = shared(trained).evaluate(Request(NARROW), Context(folder=tmp_path))
    poor = replace(good, metrics={**good.metrics, "accuracy": 0.1})
    unkept = replace(good, metrics={**good.metrics, "accuracy": 1.0}, artifacts={})
    trials = (finished(0, NARROW, poor), finished(1, NARROW, good), finished(2, NARROW, poor))
    context = Context(folder=tmp_path, history=History((*trials, finished(3, THIN, unkept))))
    assert shared(lost(trained)).evaluate(Request(WHOLE), context).artifacts[RIVAL] == "1"


def test_where_less_is_better_the_rival_is_the_one_with_the_least(
    trained: SharedWeights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_right = replace(metric("accuracy"), direction="min")
    monkeypatch.setattr("formwright.evaluate.shared.metric", lambda _: few_right)
    best = shared(lost(trained)).evaluate(Request(NARROW), Context(folder=tmp_path))
    others = [replace(best, metrics={"accuracy": share}) for share in (0.8, 0.9)]
    trials = (finished(0, NARROW, others[0]), finished(1, NARROW, best), finished(2, NARROW, others[1]))
    found = shared(trained).evaluate(Request(WHOLE), Context(folder=tmp_path, history=History(trials)))
    assert found.artifacts[RIVAL] == "1"
    assert found.metrics["accuracy"] > best.metrics["accuracy"]


def test_who_has_lost_its_answers_is_no_rival(trained: SharedWeights, tmp_path: Path) -> None:
    first = shared(trained).evaluate(Request(NARROW), Context(folder=tmp_path))
    trials = history(finished(0, NARROW, first))
    (tmp_path / first.artifacts[ANSWERS]).unlink()
    for context in (Context(folder=tmp_path, history=trials), Context(history=trials)):
        found = shared(lost(trained)).evaluate(Request(WHOLE), context)
        assert STOPPED not in found.artifacts


@pytest.mark.parametrize("damage", ["empty", "nonsense", "cut", "header", "of other rows"])
def test_damaged_answers_make_the_next_best_the_rival(damage: str, trained: SharedWeights, tmp_path: Path) -> None:
    good = shared(trained).evaluate(Request(NARROW), Context(folder=tmp_path))
    next_best = shared(trained).evaluate(Request(THIN), Context(folder=tmp_path))
    path = tmp_path / good.artifacts[ANSWERS]
    file, kept = io.BytesIO(), path.read_bytes()
    np.save(file, np.zeros(3, np.int64))
    left = {"empty": b"", "nonsense": b"nonsense", "cut": kept[: len(kept) // 2], "of other rows": file.getvalue()}
    left["header"] = kept.replace(b"{'descr'", b"{('descr'")  # which is no Python
    path.write_bytes(left[damage])
    best = replace(good, metrics={**good.metrics, "accuracy": 1.0})
    alone = Context(folder=tmp_path, history=history(finished(4, NARROW, best)))
    whole = shared(lost(trained)).evaluate(Request(WHOLE), alone)
    assert whole.metrics == shared(lost(trained), None).evaluate(Request(WHOLE), Context()).metrics
    both = History((*alone.history.trials, finished(5, THIN, next_best)))
    found = shared(lost(trained)).evaluate(Request(WHOLE), Context(folder=tmp_path, history=both))
    assert found.artifacts[RIVAL] == "5"


def test_a_folder_that_cannot_be_written_is_named(trained: SharedWeights, tmp_path: Path) -> None:
    (tmp_path / "answers").touch()
    with pytest.raises(IllegalInput, match=r"cannot write .*answers"):
        shared(trained).evaluate(Request(WHOLE), Context(folder=tmp_path))


def test_the_same_history_gives_the_same_score(trained: SharedWeights, tmp_path: Path) -> None:
    once, again = (raced(trained, NARROW, WHOLE, tmp_path / name)[1] for name in ("one", "two"))
    assert (once.metrics, once.artifacts) == (again.metrics, again.artifacts)


def test_a_regression_is_raced_and_scored_like_the_extracted_model(tmp_path: Path) -> None:
    weights = network(replace(SCORED, metrics=("pearson", "spearman")))
    first = shared(weights).evaluate(Request(NARROW), Context(folder=tmp_path))
    wanted = judge(weights.extracted(NARROW), weights.prepared, weights.prepared.validation)
    assert first.metrics == pytest.approx(wanted, abs=1e-6)
    assert first.metrics["pearson"] > 0.2
    turned = build(WHOLE, weights.model.transformer.settings, weights.model.spec)
    state = weights.model.state_dict()
    turned.load_state_dict(state | {name: -state[name] for name in ("head.output.weight", "head.output.bias")})
    context = Context(folder=tmp_path, history=history(finished(0, NARROW, first)))
    found = shared(replace(weights, model=turned.eval())).evaluate(Request(WHOLE), context)
    assert STOPPED in found.artifacts
    assert found.metrics["pearson"] < first.metrics["pearson"]


def test_spans_are_judged_whole_and_leave_no_answers(tmp_path: Path) -> None:
    weights = network(SPANS, ENCODER, LENGTH, steps=2)
    part = sub_network(ENCODER, ((1, 16),))
    first = shared(weights).evaluate(Request(part), Context(folder=tmp_path))
    assert first.metrics == judge(weights.extracted(part), weights.prepared, weights.prepared.validation)
    assert first.metrics.keys() == {"exact", "span-f1"}
    assert (first.artifacts, files(tmp_path)) == ({}, [])


def test_answers_that_are_no_numbers_are_a_failure_of_the_trial(trained: SharedWeights) -> None:
    broken = build(WHOLE, trained.model.transformer.settings, trained.model.spec)
    with torch.no_grad():
        weight = broken.head.output.weight
        weight.fill_(torch.nan)
    with pytest.raises(EvaluationFailed, match="NaN"):
        shared(replace(trained, model=broken.eval())).evaluate(Request(THIN), Context())


def test_what_is_no_sub_network_is_refused(trained: SharedWeights) -> None:
    with pytest.raises(IllegalInput):
        trained.extracted(card(32, 32, 32))


def test_a_network_holds_what_can_be_read_from_its_weights(trained: SharedWeights) -> None:
    for one in (WHOLE, NARROW, THIN, sub_network(WHOLE, ((1, 16), (0, 0)))):
        assert trained.holds(one)
        assert not trained.views(one).missing
    for other in (card(32, 32, 32), card(64, 32), load_space("autoformer-nano").card(_first("autoformer-nano"))):
        assert not trained.holds(other)
        assert trained.views(other).missing
    even = replace(trained, reading=Reading("even"))
    assert even.holds(card(32))
    assert not even.holds(card(32, 32, 32))


def _first(space: str) -> Any:
    return load_space(space).sample(derive(0))


def test_a_network_is_read_from_its_folder_with_its_tokeniser(trained: SharedWeights, tmp_path: Path) -> None:
    tokeniser = trained.prepared.text_tokeniser
    save_pretrained_folder(trained.model, tmp_path / "network", tokenizer=tokeniser.tokenizer, labels=TASK.labels)
    again = SharedWeights.read(tmp_path / "network", TASK, 12)
    assert again.card == WHOLE
    assert (
        shared(again).evaluate(Request(NARROW), Context()).metrics
        == shared(trained).evaluate(Request(NARROW), Context()).metrics
    )


def test_a_network_without_a_head_is_refused(tmp_path: Path) -> None:
    save_pretrained_folder(build(WHOLE), tmp_path / "bare")
    with pytest.raises(IllegalInput, match="has no head, so that its sub-networks cannot answer toy"):
        SharedWeights.read(tmp_path / "bare", TASK, 12)


def test_sub_networks_are_judged_on_the_named_device(trained: SharedWeights, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(
        "formwright.evaluate.shared.choose_device", lambda name: seen.append(name) or torch.device("cpu")
    )
    Shared(trained, params, None, device="mps").evaluate(Request(NARROW), Context())
    assert seen == ["mps"]


def three_histories(weights: SharedWeights, folder: Path) -> list[tuple[Request, Context]]:
    """Ask for designs that have no rival, a rival that beats them, and one that does not."""
    good = shared(weights).evaluate(Request(THIN), Context(folder=folder))
    beaten = Context(folder=folder, history=history(finished(0, THIN, good)))
    return [(Request(WHOLE), Context(folder=folder)), (Request(NARROW), beaten), (Request(WHOLE), beaten)]


@pytest.mark.parametrize("rules", [None, EAGER])
def test_designs_that_are_judged_together_get_the_scores_that_they_get_alone(
    rules: RaceRules | None, trained: SharedWeights, tmp_path: Path
) -> None:
    requests = three_histories(trained, tmp_path)
    evaluator = shared(lost(trained), rules)
    alone = [evaluator.evaluate(*one) for one in requests]
    together = evaluator.evaluate_together(requests)
    for one, other in zip(alone, together, strict=True):
        assert (one.metrics, one.artifacts, one.spent.macs) == (other.metrics, other.artifacts, other.spent.macs)
    assert any(STOPPED in one.artifacts for one in together) == (rules is not None)


def test_scores_of_models_that_are_run_together_are_the_same_bit_for_bit(
    trained: SharedWeights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every forward pass sees the same rows: so the scores behind the answers are equal too."""
    seen: list[bytes] = []
    plain = train_judge.scores_of

    def kept(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        found = plain(model, batch)
        seen.append(found.numpy().tobytes())
        return found

    monkeypatch.setattr(train_judge, "scores_of", kept)
    requests = [(Request(part), Context()) for part in (WHOLE, NARROW, THIN)]
    for one in requests:
        shared(trained, None).evaluate(*one)
    alone = sorted(seen)
    seen.clear()
    shared(trained, None).evaluate_together(requests)
    assert sorted(seen) == alone
    assert len(set(alone)) >= len(requests)


def test_tasks_with_several_answers_a_row_are_judged_together_in_turn() -> None:
    whole = network(SPANS, ENCODER, LENGTH, steps=2)
    requests = [(Request(ENCODER), Context()), (Request(sub_network(ENCODER, ((1, 16),))), Context())]
    evaluator = shared(whole)
    found = evaluator.evaluate_together(requests)
    assert [one.metrics for one in found] == [evaluator.evaluate(*one).metrics for one in requests]
