from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.compressions import BERT, LENGTH, begun, compression, made
from tests.study.cases import new_log, run, toy_study

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, CrossAttention, Transform
from formwright.core.records import Budget, Observation, Request
from formwright.core.rng import derive
from formwright.cost import macs, params
from formwright.evaluate.final import openings
from formwright.nn.build import build
from formwright.nn.hf.model_folder import verify_checksums
from formwright.nn.hf.side_files import read_evaluation
from formwright.pipeline.chosen_designs import (
    TRIES,
    best_within,
    candidates,
    plain_design,
    remarks,
    unmet_targets,
    within_targets,
)
from formwright.pipeline.delivered import (
    TOO_SLOW,
    UNDELIVERED,
    Delivered,
    Miss,
    Undelivered,
    delivered,
    exceeds,
    misses,
)
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.study_place import Opened
from formwright.search.scores import score
from formwright.space.zoo import load_space
from formwright.study.replay import asked_data
from formwright.study.study import StudySetup
from formwright.testing.toy_problem import small

SPACE = small()
DESIGNS = list(SPACE.enumerate())


def told(folder: Path, *trials: tuple[dict[str, float], int | None], objectives: tuple[str, ...]) -> StudySetup:
    """Give a study with these scores, found at these budgets."""
    folder.mkdir(exist_ok=True)
    log = new_log(folder)
    for number, (metrics, steps) in enumerate(trials):
        request = Request(SPACE.card(DESIGNS[number]), Budget(steps), None, DESIGNS[number])
        log.ask(number, "me", 60, asked_data(request, SPACE, 0))
        log.finish(number, "me", "told", {"observation": Observation(metrics).to_json()})
    return toy_study(log, folder, objectives=objectives)


def scored(*accuracies: float) -> list[tuple[dict[str, float], None]]:
    return [({"accuracy": value}, None) for value in accuracies]


def chosen(study: StudySetup, keep: int = 1) -> list[int | None]:
    return [candidate.trial for candidate in candidates(study, keep, baseline=False)]


def sized(*pairs: tuple[float, float]) -> list[tuple[dict[str, float], None]]:
    return [({"accuracy": accuracy, "params": size}, None) for accuracy, size in pairs]


FRONT = sized((0.9, 90.0), (0.5, 50.0), (0.4, 60.0), (0.1, 10.0), (0.48, 49.0))
HALVED = [({"accuracy": accuracy}, steps) for accuracy, steps in ((0.9, 1), (0.5, 9), (0.8, 3), (0.6, 9))]


@pytest.mark.parametrize(
    ("trials", "objectives", "keep", "expected"),
    [
        (scored(0.3, 0.9, 0.1, 0.5), ("accuracy:max",), 1, [1]),
        (scored(0.3, 0.9, 0.1, 0.5), ("accuracy:max",), 3, [1, 3, 0]),
        (scored(0.3, 0.9, 0.1, 0.5), ("accuracy:max",), 9, [1, 3, 0, 2]),
        (scored(0.3, 0.9, 0.1), ("accuracy:min",), 2, [2, 0]),
        (sized((0.3, 3.0), (0.9, 9.0), (0.5, 5.0)), ("accuracy:max", "params<=5"), 3, [2, 0]),
        (scored(0.3), ("accuracy:max", "accuracy>=0.5"), 3, []),
        ([], ("accuracy:max",), 3, []),
        (FRONT, ("accuracy:max", "params:min"), 2, [0, 3]),  # the ends of the front are the least crowded
        (FRONT[::-1], ("accuracy:max", "params:min"), 1, [4]),
        (HALVED, ("accuracy:max",), 9, [3, 1]),  # the longest trained
    ],
)
def test_the_best_designs_within_the_limits_are_kept(
    trials: Any, objectives: tuple[str, ...], keep: int, expected: list[int], tmp_path: Path
) -> None:
    assert chosen(told(tmp_path, *trials, objectives=objectives), keep) == expected


def test_candidates_say_what_they_are(tmp_path: Path) -> None:
    best, baseline = candidates(told(tmp_path, *scored(0.3, 0.9), objectives=("accuracy:max",)), 1)
    assert (best.name, best.role, best.card) == ("trial-1", "best", SPACE.card(DESIGNS[1]))
    assert (baseline.name, baseline.role, baseline.trial) == ("baseline", "baseline", None)
    assert params(baseline.card) >= params(best.card)
    front = candidates(told(tmp_path / "x", *FRONT, objectives=("accuracy:max", "params:min")), 9, baseline=False)
    assert {one.trial: one.role for one in front} == dict.fromkeys((0, 1, 3, 4), "front")


def test_whatever_halving_finds_can_be_delivered(tmp_path: Path) -> None:
    study = toy_study(new_log(tmp_path), tmp_path, "halving", stop=40, objectives=("accuracy:max",))
    run(study)
    (best,) = chosen(study)
    trials = study.history().trials
    longest = max(trial.request.budget.steps or 0 for trial in trials)
    rivals = [trial for trial in trials if trial.request.budget.steps == longest]
    values = score(rivals, study.objectives).values[:, 0]
    assert best == rivals[int(values.argmin())].number


def costed(*pairs: tuple[float, float]) -> list[tuple[dict[str, float], None]]:
    return [({"accuracy": accuracy, "macs": macs}, None) for accuracy, macs in pairs]


PAIRS = costed((0.9, 90.0), (0.7, 50.0), (0.8, 60.0), (0.7, 40.0), (0.5, 20.0))
GOALS = ("accuracy:max", "macs:min")


def best_trials(study: StudySetup, targets: Mapping[str, str]) -> dict[str, int]:
    found = best_within(study.history(), study.objectives[0], targets, (), misses(study.log.read()))
    return {name: trial.number for name, trial in found.items()}


def delivered_for(study: StudySetup, **targets: str) -> list[tuple[str, int | None]]:
    return [(candidate.name, candidate.trial) for candidate in within_targets(study, targets)]


def test_for_each_target_the_best_that_can_be_delivered_within_it_is_kept_once(tmp_path: Path) -> None:
    study = told(tmp_path, *PAIRS, objectives=GOALS)
    found = delivered_for(study, all="macs<=100", most="macs<=60", half="macs<=59.9", few="macs<=20")
    assert found == [("all", 0), ("most", 2), ("half", 3), ("few", 4)]
    (best,) = within_targets(study, {"all": "macs<=100"})
    assert (best.role, best.card) == ("front", SPACE.card(DESIGNS[0]))
    assert delivered_for(study, half="macs<=50") == [("half", 3)]  # trial 1 is as good, and dearer
    targets = {"wide": "macs<=95", "same": "macs<=90", "small": "macs<=30", "none": "macs<=1"}
    assert delivered_for(study, **targets) == [("wide", 0), ("small", 4)]
    assert best_trials(study, targets) == {"wide": 0, "same": 0, "small": 4}
    targets = {"tiny": "macs<=10", "half": "macs<=50", "nothing": "macs<=1"}
    assert delivered_for(study, **targets) == [("half", 3)]
    assert list(unmet_targets(study, targets)) == ["tiny", "nothing"]
    assert unmet_targets(study, {"half": "macs<=50", "same": "macs<=49"}) == {}
    empty = toy_study(new_log(tmp_path, "empty"), tmp_path)
    assert (within_targets(empty, targets), list(unmet_targets(empty, targets))) == ([], list(targets))
    failed = Undelivered("all", "front", SPACE.card(DESIGNS[0]).digest, "no memory", 0)
    study.log.append("note", "me", {UNDELIVERED: asdict(failed)})
    assert delivered_for(study, all="macs<=100") == [("all", 2)]
    targets = {"tiny": "macs<=10", "few": "macs<=20", "half": "macs<=50"}
    lost = Undelivered("few", "front", SPACE.card(DESIGNS[4]).digest, "no memory", 4)
    study.log.append("note", "me", {UNDELIVERED: asdict(lost)})
    unmet = unmet_targets(study, targets)
    assert {name: "failed" in why for name, why in unmet.items()} == {"tiny": False, "few": True}


def test_targets_may_be_of_several_costs_and_scores_may_be_lowered(tmp_path: Path) -> None:
    trials = [({"loss": loss, "macs": macs, "params": 100 - macs}, None) for loss, macs in ((0.9, 90.0), (0.2, 50.0))]
    study = told(tmp_path, *trials, objectives=("loss:min", "macs:min", "params:min"))
    assert delivered_for(study, one="macs<=95", other="params<=20") == [("one", 1), ("other", 0)]


TIMED = [
    ({"accuracy": score, "latency_ms": ms}, None) for score, ms in ((0.9, 7.9), (0.8, 7.7), (0.7, 7.0), (0.6, 4.0))
]


def miss(study: StudySetup, trial: int, measured: float, name: str = "eight") -> None:
    digest = SPACE.card(DESIGNS[trial]).digest
    study.log.append("note", "me", {TOO_SLOW: [asdict(Miss(name, digest, trial, measured))]})


def next_for(study: StudySetup, limit: str = "latency_ms<=8") -> tuple[int | None, tuple[str, ...]]:
    (found,) = within_targets(study, {"eight": limit})
    return found.trial, found.keeps


def test_a_design_that_was_measured_beyond_its_target_gives_way_to_one_that_should_keep_it(tmp_path: Path) -> None:
    study = told(tmp_path, *TIMED, objectives=("accuracy:max", "latency_ms:min"))
    assert next_for(study) == (0, ("eight",))
    miss(study, 0, 1.1 * 7.9)  # then so is the next best, if parts add up as badly
    assert next_for(study) == (2, ("eight",))
    assert delivered_for(study, six="latency_ms<=7.9", eight="latency_ms<=8") == [("six", 0), ("eight", 2)]
    miss(study, 2, 8.05)  # no design is expected to keep it, but for the last
    assert next_for(study) == (3, ("eight",))


def test_where_none_is_expected_to_keep_a_target_the_cheapest_is_tried(tmp_path: Path) -> None:
    study = told(tmp_path, *TIMED, objectives=("accuracy:max", "latency_ms:min"))
    miss(study, 0, 30.0)
    assert next_for(study) == (3, ("eight",))


def test_where_none_keeps_a_target_the_fastest_is_delivered_all_the_same(tmp_path: Path) -> None:
    study = told(tmp_path, *TIMED, objectives=("accuracy:max", "latency_ms:min"))
    for trial, measured in enumerate((9.0, 8.2, 8.1, 8.4)):
        miss(study, trial, measured)
    assert next_for(study) == (2, ())
    assert best_trials(study, {"eight": "latency_ms<=8"}) == {"eight": 2}


def test_not_all_of_many_designs_are_tried(tmp_path: Path) -> None:
    trials = [({"accuracy": 0.9 - number / 100, "latency_ms": 7.0}, None) for number in range(TRIES + 2)]
    study = told(tmp_path, *trials, objectives=("accuracy:max", "latency_ms:min"))
    for number in range(TRIES):
        assert next_for(study) == (number, ("eight",))
        miss(study, number, 8.9 - number / 10)
    assert next_for(study) == (TRIES - 1, ())


def test_a_design_is_to_keep_every_target_it_is_the_best_for(tmp_path: Path) -> None:
    study = told(tmp_path, *TIMED, objectives=("accuracy:max", "latency_ms:min"))
    targets = {"nine": "latency_ms<=9", "eight": "latency_ms<=8"}
    assert [found.keeps for found in within_targets(study, targets)] == [("nine", "eight")]
    miss(study, 0, 8.5)
    assert [(found.name, found.trial) for found in within_targets(study, targets)] == [("nine", 0), ("eight", 2)]


def test_what_was_measured_may_lie_beyond_a_limit() -> None:
    costs = {"macs": 10.0, "latency_ms": 8.1}
    assert exceeds(costs, "latency_ms<=8.0")
    assert not exceeds(costs, "latency_ms<=8.1")
    assert not exceeds(costs, "macs<=10.0")
    assert not exceeds(costs, "params<=1.0")  # which nobody measured


def test_misses_are_read_from_the_log_as_they_were_noted(tmp_path: Path) -> None:
    first, second, other = Miss("a", "x", 3, 8.5), Miss("b", "x", 3, 8.5), Miss("a", "y", None, 9.0)
    log = new_log(tmp_path)
    assert misses(log.read()) == {}
    for missed in ([first, second], [other]):
        log.append("note", "me", {TOO_SLOW: list(map(asdict, missed))})
    assert misses(log.read()) == {"a": {"x": first, "y": other}, "b": {"x": second}}


TOKENS = TokenEmbedding(100, 24, factorised=8, positions="sinusoidal", length=32, types=2)
PATCHES = PatchEmbedding(8, 4, 24, channels=1)
LAYERS = (Block(24, Transform("dft"), (40, 8)), Block(24, Attention(3, 8, "wma"), (16,)))
ENCODER = Card(encoder=Stack(TOKENS, LAYERS))
DECODER = Card(decoder=Stack(TOKENS, LAYERS[1:], causal=True))
VISION = Card(encoder=Stack(PATCHES, LAYERS[1:]))


@pytest.mark.parametrize("card", [ENCODER, DECODER, VISION], ids=lambda card: str(card.family))
def test_the_plain_counterpart_is_as_deep_and_the_narrowest_of_no_smaller_size(card: Card) -> None:
    plain = plain_design(card)
    (stack,), (before,) = plain.stacks, card.stacks
    width = stack.embedding.width
    assert plain.family == card.family
    assert (len(stack.layers), stack.causal) == (len(before.layers), before.causal)
    assert set(stack.layers) == {Block(width, Attention(width // 16, 16), (4 * width,))}
    changed = {"width": width, "positions": "learned", "factorised": None}
    expected = {name: changed.get(name, value) for name, value in asdict(before.embedding).items()}
    assert asdict(stack.embedding) == expected
    assert params(plain) >= params(card)
    assert sum(weights.numel() for weights in build(plain).parameters()) == params(plain)
    (stack,) = plain.stacks
    width = stack.embedding.width - 16
    if width:
        layers = tuple(Block(width, Attention(width // 16, 16), (4 * width,)) for _ in stack.layers)
        narrower = Stack(replace(stack.embedding, width=width), layers, causal=stack.causal)
        smaller = Card(encoder=narrower) if card.encoder is not None else Card(decoder=narrower)
        assert params(smaller) < params(card)


@pytest.mark.parametrize("name", ["flexibert-nano", "autoformer-tiny", "nas-bert", "lighthubert-small"])
def test_designs_of_published_spaces_have_plain_counterparts(name: str) -> None:
    space, rng = load_space(name), derive(0, "baseline")
    for _ in range(3):
        card = space.card(space.sample(rng))
        assert params(plain_design(card)) >= params(card)


def test_a_plain_design_is_its_own_counterpart() -> None:
    plain = plain_design(ENCODER)
    assert plain_design(plain) == plain


@pytest.mark.parametrize("name", ["hat", "evolved-transformer-nano"])
def test_the_counterpart_of_an_encoder_with_a_decoder_attends_to_its_encoder(name: str) -> None:
    space = load_space(name)
    card = space.card(space.sample(derive(0)))
    plain = plain_design(card)
    assert plain.family == "encoder-decoder"
    assert params(plain) >= params(card)
    assert plain.share_embedding == card.share_embedding
    assert [len(stack.layers) for stack in plain.stacks] == [len(stack.layers) for stack in card.stacks]
    below, above = (stack.layers[0] for stack in plain.stacks)
    assert isinstance(below, Block)
    assert isinstance(above, Block)
    assert (below.cross, above.cross) == (None, CrossAttention(above.width // 16, 16))


FULL = float(macs(BERT, LENGTH))


def trained(tmp_path: Path, **options: Any) -> PipelineRun:
    run = begun(compression(tmp_path, **options), tmp_path / "out")
    made(run, "super-network")
    search: Any = run.pipeline.named["search"]
    search.place(run.stage(search)).create(run.pipeline, "search")
    return run


def opened(run: PipelineRun) -> Opened:
    search: Any = run.pipeline.named["search"]
    found: Opened = search.place(run.stage(search)).open(run=run)
    return found


def delivered_once(study: Opened, measured: float) -> None:
    """Let the cheapest design be the best, delivered for the first target."""
    space, first = study.search.found_space(study.here), study.search.first_designs(study.here)
    design = space.from_json(first[0])
    card = space.card(design)
    metrics = {"accuracy": 0.9, "macs": float(macs(card, LENGTH))}
    study.log.ask(0, "me", 60, asked_data(Request(card, Budget(), None, design), space, 0))
    study.log.finish(0, "me", "told", {"observation": Observation(metrics).to_json()})
    facts = (card.digest, "", params(card), 0, metrics, None, 0, {"macs": measured})
    study.log.append("note", "me", {"model": asdict(Delivered("macs-75pct", "front", *facts))})


@pytest.mark.slow
def test_targets_that_share_a_model_say_whose(tmp_path: Path) -> None:
    with opened(trained(tmp_path)) as study:
        delivered_once(study, 0.0)
        (line,) = remarks(study)
    assert line.startswith("macs-50pct is the model macs-75pct")
    assert str(tmp_path / "out" / "models" / "macs-75pct") in line


@pytest.mark.slow
def test_a_model_that_was_measured_beyond_its_targets_is_named(tmp_path: Path) -> None:
    with opened(trained(tmp_path)) as study:
        delivered_once(study, 0.8 * FULL)
        _, *missed = remarks(study)
        assert [line.split(":")[0] for line in missed] == ["macs-75pct is missed", "macs-50pct is missed"]
        assert f"{0.8 * FULL:.4g}" in missed[0]
        assert f"{0.75 * FULL:.4g}" in missed[0]
        note = next(event.data["model"] for event in study.log.read() if "model" in event.data)
        study.log.append("note", "me", {"model": note | {"costs": {"macs": 0.6 * FULL}}})
        assert len(remarks(study)) == 2  # it is within one of them


def noted(run: PipelineRun) -> dict[str, Any]:
    """Let the stages note what they have to, twice; give what the page finds."""
    with opened(run) as study:
        for _ in range(2):
            for name in ("teacher", "space"):
                stage: Any = run.pipeline.named[name]
                stage.note(run.stage(stage), study)
        notes = [event.data for event in study.log.read() if event.kind == "note"]
    assert len(notes) == 2
    return next(note["compress"] for note in notes if "compress" in note)


@pytest.mark.slow
def test_the_teacher_and_the_space_are_noted_once(tmp_path: Path) -> None:
    run = trained(tmp_path)
    facts = noted(run)
    with opened(run) as study:
        (teacher,) = delivered(study).values()
    assert (teacher.name, teacher.role, teacher.digest) == ("teacher", "teacher", BERT.digest)
    assert teacher.path == str(tmp_path / "out" / "models" / "teacher")
    assert teacher.costs == {"macs": FULL}  # it is measured in the end, in turns with the others
    assert teacher.test is not None
    assert teacher.validation.keys() == teacher.test.keys() == {"accuracy", "f1"}
    said = read_evaluation(Path(teacher.path))
    assert said is not None
    assert said["scores"] == {"validation": teacher.validation, "test": teacher.test}
    verify_checksums(Path(teacher.path))
    verify_checksums(tmp_path / "out" / "teacher" / "model")
    assert len(openings(tmp_path / "out" / "final" / "teacher")) == 1
    drawn = run.artifact(run.pipeline.named["space"])
    assert (facts["model"], facts["cost"], facts["space"]["full"]) == ("bert", "macs", [[4, 64, 0]] * 2)
    assert facts["space"]["heads"] == [list(one) for one in drawn.choices.heads]
    assert facts["space"]["hidden"] == [16]
    assert [one["cost"] for one in facts["targets"]] == [met.cost for met in drawn.met]
    assert facts["teacher"]["test"] == teacher.test


@pytest.mark.slow
def test_targets_of_several_costs_and_hidden_sizes_are_noted(tmp_path: Path) -> None:
    run = trained(tmp_path, targets=("macs=75%", "params=90%"), hidden=(8,))
    facts = noted(run)
    assert len(facts["targets"]) == 3
    last = run.artifact(run.pipeline.named["space"]).met[-1]
    assert [(one["measure"], one["cost"]) for one in facts["further"]] == [("params", last.cost)]
    assert facts["space"]["hidden"] == [8, 16]
