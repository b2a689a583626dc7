"""Races never flatter a model, stop few that are as good as their rival, and ask all models for the same rows."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formwright.core.rng import derive
from formwright.evaluate.races import Answers, RaceResult, RaceRules, Score, races
from formwright.tasks.metrics import metric

accuracy = metric("accuracy").compute
pearson = metric("pearson").compute


def labels(rows: int, seed: int) -> Answers:
    return derive(seed, "truth").integers(2, size=rows)


def right(truth: Answers, share: float, seed: int) -> Answers:
    """Answer so large a share of the rows rightly, in the mean."""
    return np.where(derive(seed, "answers").random(len(truth)) < share, truth, 1 - truth)


class Model:
    """Answers that are known beforehand, and the rows that were asked for."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.asked: list[Answers] = []

    def __call__(self, rows: Answers) -> Answers:
        self.asked.append(rows)
        return self.answers[rows]

    @property
    def rows(self) -> list[int]:
        return [int(row) for rows in self.asked for row in rows]


def race(
    model: Model, truth: Answers, rival: Answers | None, score: Score, rules: RaceRules | None = None
) -> RaceResult:
    return races(lambda _, rows: [model(rows)], truth, [rival], score, rules)[0]


@given(rows=st.integers(1, 400), share=st.floats(0, 1), seed=st.integers(0, 99))
def test_without_a_rival_all_rows_are_answered(rows: int, share: float, seed: int) -> None:
    truth = labels(rows, seed)
    model = Model(right(truth, share, seed))
    ran = race(model, truth, None, accuracy)
    assert ran.whole
    assert ran.rows.tolist() == sorted(model.rows) == list(range(rows))
    assert ran.answers.tolist() == model.answers.tolist()


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 500])
def test_a_better_model_answers_each_row_once_and_its_answers_stand_in_their_order(rows: int) -> None:
    truth = labels(rows, 1)
    model = Model(right(truth, 0.9, 2))
    ran = race(model, truth, right(truth, 0.5, 3), accuracy)
    assert ran.whole
    assert sorted(model.rows) == list(range(rows))
    assert ran.rows.tolist() == list(range(rows))
    assert ran.answers.tolist() == model.answers.tolist()
    assert ran.answers.dtype == model.answers.dtype


def test_a_clearly_better_rival_ends_the_race_at_the_first_look() -> None:
    truth = labels(2000, 1)
    model = Model(right(truth, 0.5, 2))
    ran = race(model, truth, right(truth, 0.95, 3), accuracy)
    assert not ran.whole
    assert len(ran.rows) == RaceRules().first == len(model.rows)
    assert ran.answers.tolist() == model.answers[ran.rows].tolist()
    assert ran.rows.tolist() == model.rows


def test_all_models_answer_the_same_rows_first() -> None:
    truth = labels(500, 1)
    first, second = (Model(right(truth, 0.4, seed)) for seed in (2, 3))
    for model in (first, second):
        race(model, truth, truth, accuracy)
    assert first.rows == second.rows
    assert first.rows != sorted(first.rows)


def test_the_same_race_ends_the_same_way() -> None:
    truth = labels(800, 1)
    found, rival = right(truth, 0.78, 2), right(truth, 0.86, 3)
    once, again = (race(Model(found), truth, rival, accuracy) for _ in range(2))
    assert not once.whole
    assert once.rows.tolist() == again.rows.tolist()


def test_looks_are_taken_less_and_less_often() -> None:
    truth = labels(1000, 1)
    model = Model(truth)
    race(model, truth, truth, accuracy)
    assert np.cumsum([len(rows) for rows in model.asked]).tolist() == [64, 96, 144, 216, 324, 486, 729, 1000]
    slow = Model(truth)
    race(slow, truth[:8], truth[:8], accuracy, RaceRules(first=2, growth=1.0))
    assert [len(rows) for rows in slow.asked] == [2, 1, 1, 1, 1, 1, 1]  # grows by a row at least, so that it ends


@pytest.mark.parametrize(("wrong", "whole"), [(3, True), (12, False)])
def test_the_doubt_of_a_race_is_divided_among_its_comparisons(wrong: int, whole: bool) -> None:
    """Chance puts one race of eight 3 answers behind: less than the doubt of a race, more than that of a comparison."""
    truth = np.ones(200, np.int64)
    found = truth.copy()
    found[derive(0, "race").permutation(len(truth))[:wrong]] = 0  # of the rows that are asked for first
    ran = race(Model(found), truth, truth, accuracy, RaceRules(first=16, growth=1.3, doubt=0.3))
    assert ran.whole == whole


def test_the_lead_that_was_seen_counts_as_one_of_the_swaps() -> None:
    """One answer behind is the work of chance in half of all races: of 7 swaps hardly ever one or none has the lead."""
    ended = 0
    for rows in range(16, 76):
        truth = np.ones(rows + 1, np.int64)
        found = truth.copy()
        found[derive(0, "race").permutation(len(truth))[0]] = 0
        rules = RaceRules(first=rows, growth=2.0, doubt=0.3)
        ended += not race(Model(found), truth, truth, accuracy, rules).whole
    assert 0 < ended < 9  # 13 if two of seven were allowed


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40)
def test_who_is_as_good_as_the_rival_on_the_rows_so_far_goes_on(seed: int) -> None:
    truth = labels(200, seed)
    rival = right(truth, 0.7, seed)
    assert race(Model(rival), truth, rival, accuracy).whole
    better = np.where(derive(seed, "better").random(200) < 0.1, truth, rival)
    assert race(Model(better), truth, rival, accuracy).whole  # on every subset of rows at least as good


Draw = Callable[[Answers, int], tuple[Answers, Answers]]


def stopped(races: int, rows: int, draw: Draw, *, least: bool) -> list[bool]:
    """Run races of random models against rivals; with `least` only those that end at least as well as the rival."""
    found = []
    for seed in range(races):
        truth = labels(rows, seed)
        candidate, rival = draw(truth, seed)
        if not least or accuracy(candidate, truth) >= accuracy(rival, truth):
            found.append(not race(Model(candidate), truth, rival, accuracy).whole)
    return found


def alike(truth: Answers, seed: int, share: float = 0.85, agreed: float = 0.7) -> tuple[Answers, Answers]:
    """Draw two models of the same quality that agree on most rows, as sub-networks of one network do."""
    rival, other = right(truth, share, 2 * seed), right(truth, share, 2 * seed + 1)
    same = derive(seed, "same").random(len(truth)) < agreed
    return np.where(same, rival, other), rival


def alone(truth: Answers, seed: int) -> tuple[Answers, Answers]:
    return alike(truth, seed, agreed=0.0)


def nearly_equal(truth: Answers, seed: int) -> tuple[Answers, Answers]:
    """Draw two models that differ in a few rows only, where a lead of five is soon there by chance."""
    return alike(truth, seed, agreed=0.95)


def against_the_best(truth: Answers, seed: int) -> tuple[Answers, Answers]:
    """Draw eight models of the same quality; the best of them on these rows is the rival, as in a search."""
    drawn = [alike(truth, 8 * seed + number)[0] for number in range(8)]
    *others, rival = sorted(drawn, key=lambda answers: accuracy(answers, truth))
    return others[seed % 7], rival


@pytest.mark.slow
@pytest.mark.parametrize("draw", [alike, alone, nearly_equal])
def test_as_few_are_stopped_that_are_of_the_same_quality_as_the_rules_say(draw: Draw) -> None:
    ended = stopped(1000, 436, draw, least=False)
    doubt = RaceRules().doubt
    assert np.mean(ended) <= doubt + 2 * np.sqrt(doubt * (1 - doubt) / len(ended))  # and what chance adds


@pytest.mark.slow
@pytest.mark.parametrize("draw", [alike, alone])
def test_hardly_any_are_stopped_that_would_have_ended_as_well_as_the_rival(draw: Draw) -> None:
    ended = stopped(800, 436, draw, least=True)
    assert len(ended) > 300
    assert np.mean(ended) <= 0.005


def test_few_are_stopped_whose_rival_is_the_best_of_its_like_on_these_rows() -> None:
    assert np.mean(stopped(150, 436, against_the_best, least=False)) <= 0.08  # those are behind it, by chance


def test_hardly_any_are_stopped_that_are_better() -> None:
    def draw(truth: Answers, seed: int) -> tuple[Answers, Answers]:
        return right(truth, 0.88, 2 * seed), right(truth, 0.8, 2 * seed + 1)

    assert not any(stopped(60, 400, draw, least=False))


@pytest.mark.slow
def test_most_are_stopped_that_are_clearly_worse_and_most_rows_are_saved() -> None:
    spent = []
    for seed in range(30):
        truth = labels(1000, seed)
        spent.append(len(race(Model(right(truth, 0.6, seed)), truth, right(truth, 0.85, seed + 99), accuracy).rows))
    assert np.mean(np.array(spent) < 1000) == 1.0
    assert np.mean(spent) < 200


def test_more_doubt_ends_more_races() -> None:
    truth = labels(400, 1)
    model, rival = right(truth, 0.80, 2), right(truth, 0.84, 3)
    rows = [len(race(Model(model), truth, rival, accuracy, RaceRules(doubt=doubt)).rows) for doubt in (0.0, 0.01, 0.4)]
    assert rows == sorted(rows, reverse=True)
    assert rows[0] > rows[-1]


def test_numbers_are_raced_as_labels_are() -> None:
    truth = derive(1, "numbers").normal(size=400)
    noise = derive(2, "noise").normal(size=(2, 400))
    close, far = truth + 0.2 * noise[0], (truth + 3 * noise[1]).astype(np.float32)
    ended = race(Model(far), truth, close, pearson)
    assert not ended.whole
    whole = race(Model(close), truth, far, pearson)
    assert whole.whole
    assert whole.answers.tolist() == close.tolist()
    constant = race(Model(np.zeros(400)), truth, close, pearson)  # a correlation of nothing is 0, and no fault
    assert not constant.whole
