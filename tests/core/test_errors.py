import pickle

import pytest

from formwright.core.errors import (
    BuildFailed,
    Fault,
    FormwrightError,
    IllegalDesign,
    IllegalInput,
    MissingExtra,
    NotCountable,
    UnknownName,
    nearest,
)

SEARCHERS = ["regularized_evolution", "random", "boshnas"]
ERRORS = [
    (UnknownName("searcher", "regevo", SEARCHERS), LookupError),
    (IllegalDesign([Fault("layers[3].heads", "is 12")], what="space"), ValueError),
    (IllegalInput("bad"), ValueError),
    (BuildFailed("no card"), RuntimeError),
    (NotCountable("too large"), ValueError),
    (MissingExtra("ray", "ray"), ImportError),
]


@pytest.mark.parametrize(("error", "builtin"), ERRORS)
def test_every_error_has_the_root_and_a_builtin_kind_and_is_pickled(error: FormwrightError, builtin: type) -> None:
    assert isinstance(error, FormwrightError)
    assert isinstance(error, builtin)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (UnknownName("searcher", "regevo", SEARCHERS), ["'regularized_evolution'", "3", "`formwright list searchers`"]),
        (UnknownName("version of SQuAD", "qqq", ["1.1", "2.0"]), ["'qqq'", "1.1, 2.0"]),
        (UnknownName("recipe", "qqq", ["a", "b"]), ["2", "`formwright list recipes`"]),
        (MissingExtra("onnxruntime", "onnx"), ["onnxruntime", 'pip install "formwright[onnx]"']),
    ],
)
def test_an_error_says_what_to_do(error: FormwrightError, told: list[str]) -> None:
    assert all(one in str(error) for one in told)
    assert ("Nearest" in str(error)) == ("regevo" in str(error))  # nothing far-fetched


def test_illegal_design_lists_every_fault_on_its_own_line() -> None:
    error = IllegalDesign([Fault("layers[0].width", "is missing"), Fault("layers[3].heads", "is 12")])
    assert str(error).splitlines() == [
        "illegal card, 2 faults:",
        "  layers[0].width: is missing",
        "  layers[3].heads: is 12",
    ]
    assert str(Fault("", "is empty")) == "is empty"  # without a place there is no colon


def test_nearest_ignores_case() -> None:
    assert nearest("BERT-BASE", ["bert-large", "bert-base", "vit"]) == ["bert-base"]
    assert nearest("bert-base", []) == []
