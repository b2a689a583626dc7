import numpy as np
import pytest

from formwright.core.errors import IllegalInput
from formwright.search.slots import slots
from formwright.search.vocabulary import Vocabulary
from formwright.space import Expressions, Record
from formwright.testing.spaces import small

PART = small().root
VOCABULARY = Vocabulary.of(PART)


def test_every_option_has_a_token_of_its_own() -> None:
    assert VOCABULARY.size == sum(slot.options for slot in slots(PART))
    read = [tuple(VOCABULARY.read(design)[0].tolist()) for design in small().enumerate()]
    assert len(set(read)) == len(read)
    assert all(len(set(tokens)) == len(tokens) for tokens in read)
    assert set(np.concatenate(read)) == set(range(VOCABULARY.size))


def test_a_token_is_among_those_possible_in_its_place() -> None:
    for design in small().enumerate():
        tokens, possible = VOCABULARY.read(design)
        assert possible[np.arange(len(tokens)), tokens].all()
        assert (possible.sum(axis=1) > 1).all()
        assert (possible.sum(axis=0) <= 1).all()


def test_parts_without_slots_are_refused() -> None:
    with pytest.raises(IllegalInput, match="cannot search Expressions"):
        Vocabulary.of(Record.of(cell=Expressions(2)))
