import copy
import pickle
from dataclasses import FrozenInstanceError

import pytest

from formwright.space import Case, Fields


def test_fields_are_read_by_attribute_by_key_and_in_order() -> None:
    fields = Fields.of(heads=2, mixer=Case("sa", "sdp"))
    assert fields.heads == fields["heads"] == 2
    assert fields.mixer.tag == "sa"
    assert list(fields) == ["heads", "mixer"]
    assert dict(fields) == {"heads": 2, "mixer": Case("sa", "sdp")}
    assert len(fields) == 2
    assert repr(fields) == "Fields(heads=2, mixer=Case(tag='sa', value='sdp'))"


def test_equal_fields_are_one_value() -> None:
    assert Fields.of(heads=2) == Fields.of(heads=2)
    assert len({Fields.of(heads=2), Fields.of(heads=2), Fields.of(heads=4)}) == 2
    assert Fields.of(heads=2) != Fields.of(width=2)


def test_fields_survive_copying_and_pickling() -> None:
    fields = Fields.of(heads=2, layers=(Fields.of(width=3),))
    assert pickle.loads(pickle.dumps(fields)) == copy.deepcopy(fields) == copy.copy(fields) == fields


def test_unknown_names_are_refused_and_the_known_ones_named() -> None:
    fields = Fields.of(heads=2, width=3)
    with pytest.raises(AttributeError, match="no field 'head'; fields are heads, width"):
        _ = fields.head
    with pytest.raises(KeyError, match="head"):
        _ = fields["head"]
    assert not hasattr(fields, "_hidden")


def test_values_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Case("sa", 1).tag = "lt"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        Fields.of(heads=2).pairs = ()  # type: ignore[misc]
