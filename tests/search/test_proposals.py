import pickle
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from formwright.core.errors import FormwrightError
from formwright.core.records import Budget, History, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search.proposals import (
    NoLegalDesign,
    SpaceExhausted,
    anything,
    breeding,
    first_unseen,
    random_unseen,
    warming_up,
    youngest,
)
from formwright.space import Choice, Record, Space
from formwright.testing.toy_problem import large, small, tiny, twins


def asked(space: Space, designs: list[Any]) -> History:
    return History(tuple(Trial(number, Request(space.card(design))) for number, design in enumerate(designs)))


def test_a_new_proposal_is_taken_as_it_is() -> None:
    space = small()
    design = space.sample(derive(5))
    found = first_unseen(space, History(), derive(0), lambda: design)
    assert (found.design, found.card) == (design, space.card(design))
    assert found.request(Budget(3), 8) == Request(space.card(design), Budget(3), 8, design)


def test_a_proposal_that_is_not_new_is_left_by_mutation() -> None:
    space = large()
    design = space.sample(derive(5), "gene")
    distances = Counter[int]()
    for seed in range(30):
        found = first_unseen(space, asked(space, [design]), derive(seed), lambda: design)
        assert found.card != space.card(design)
        distances[len(found.design["layers"]) == len(design["layers"])] += 1
    assert distances[True] > 20  # draws over the whole space would nearly all be twelve layers deep


@pytest.mark.parametrize("space", [tiny(), twins()], ids=lambda space: str(space.name))
def test_the_last_design_is_found_however_few_are_left(space: Space) -> None:
    designs = list(space.enumerate())
    cards = {space.card(design).digest for design in designs}
    for left in (0, 5, 11):
        missing = sorted(cards)[left]
        others = [design for design in designs if space.card(design).digest != missing]
        found = first_unseen(space, asked(space, others), derive(0), lambda: designs[0])
        assert found.card.digest == missing


def test_everything_that_is_left_may_be_found() -> None:
    space = small()
    designs = list(space.enumerate())

    def legal(card: Any) -> bool:
        return card in (space.card(designs[0]), space.card(designs[-1]))

    found = Counter(
        first_unseen(space, asked(space, designs[1:-1]), derive(seed), lambda: designs[1], legal, tries=1).design
        for seed in range(20)
    )
    assert set(found) == {designs[0], designs[-1]}


def test_a_space_is_exhausted_by_requests_and_limits() -> None:
    space = tiny()
    with pytest.raises(SpaceExhausted, match="every design of space 'tiny' has been asked for"):
        random_unseen(space, asked(space, list(space.enumerate())), derive(0))
    first = next(iter(space.enumerate()))
    with pytest.raises(SpaceExhausted, match="asked for within the limits; 11 others are not"):
        random_unseen(space, asked(space, [first]), derive(0), lambda card: card == space.card(first))
    one = tiny().card(next(iter(tiny().enumerate())))
    wide = Space(
        "wide", Record.of(**{f"gene{index}": Choice(tuple(range(10))) for index in range(6)}), lambda design: one
    )
    with pytest.raises(SpaceExhausted, match="none of 1200 designs drawn from space 'wide' is new"):
        random_unseen(wide, asked(wide, [wide.sample(derive(0))]), derive(1))


def test_no_legal_design_is_told_with_the_number_of_tries() -> None:
    with pytest.raises(NoLegalDesign, match="none of the 12 designs of space 'tiny' is within the limits"):
        random_unseen(tiny(), History(), derive(0), lambda card: False)
    with pytest.raises(NoLegalDesign, match="1200 designs were drawn, 1200 of them new and all beyond a limit"):
        random_unseen(large(), History(), derive(0), lambda card: False)
    space = large().restrict("shallow", lambda card: len(card.encoder.layers) < 12)  # type: ignore[union-attr]
    with pytest.raises(NoLegalDesign, match="were drawn"):
        random_unseen(space, History(), derive(0), lambda card: False)
    assert anything(None)


def test_a_design_without_moves_does_not_stop_it() -> None:
    space = tiny().restrict("two designs", lambda card: len(card.encoder.layers) == 1)  # type: ignore[union-attr]
    only = space.restrict("one design", lambda card: card == space.card(next(space.enumerate())))
    design = next(only.enumerate())
    with pytest.raises(SpaceExhausted):
        first_unseen(only, asked(only, [design]), derive(0), lambda: only.mutate(design, derive(1)))


@pytest.mark.parametrize(("kind", "builtin"), [(SpaceExhausted, LookupError), (NoLegalDesign, ValueError)])
def test_errors_are_ours_and_builtin_and_cross_process_borders(
    kind: type[FormwrightError], builtin: type[Exception]
) -> None:
    error = kind("nothing is left.")
    assert isinstance(error, builtin)
    assert isinstance(error, FormwrightError)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (kind, "nothing is left.")


def mixed() -> History:
    space = small()
    design = space.sample(derive(0))
    known, foreign = Request(space.card(design), design=design), Request(space.card(design))
    done = Observation({"accuracy": 1.0})
    finished = (Trial(0, known, "finished", done), Trial(1, foreign, "finished", done))
    return History((*finished, Trial(2, known), Trial(3, known, "failed", reason="no memory")))


def test_finished_trials_of_the_space_breed_the_youngest_last() -> None:
    assert [trial.number for trial in breeding(mixed())] == [0]
    assert warming_up(mixed(), 4)
    assert not warming_up(mixed(), 3)
    finished = [replace(mixed().trials[0], number=number) for number in range(4, 7)]
    history = History((*mixed().trials, *finished))
    assert [trial.number for trial in breeding(history)] == [0, 4, 5, 6]
    assert [trial.number for trial in youngest(history, 2)] == [5, 6]
    assert [trial.number for trial in youngest(history, 9)] == [0, 4, 5, 6]
