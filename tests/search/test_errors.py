import pickle

import pytest

from formwright.core.errors import FormwrightError
from formwright.search.errors import NoLegalDesign, SpaceExhausted


@pytest.mark.parametrize(("kind", "builtin"), [(SpaceExhausted, LookupError), (NoLegalDesign, ValueError)])
def test_errors_are_ours_and_builtin_and_cross_process_borders(
    kind: type[FormwrightError], builtin: type[Exception]
) -> None:
    error = kind("nothing is left.")
    assert isinstance(error, builtin)
    assert isinstance(error, FormwrightError)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (kind, "nothing is left.")
