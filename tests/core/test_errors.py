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
def test_every_error_has_the_root_and_a_builtin_kind(error: FormwrightError, builtin: type[Exception]) -> None:
    assert isinstance(error, FormwrightError)
    assert isinstance(error, builtin)


@pytest.mark.parametrize("error", [error for error, _ in ERRORS])
def test_errors_cross_process_borders(error: FormwrightError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_unknown_name_says_what_is_nearest_and_where_all_are() -> None:
    assert str(UnknownName("searcher", "regevo", SEARCHERS)) == (
        "no searcher called 'regevo'. Nearest: 'regularized_evolution'. All 3: `formwright list searchers`."
    )


def test_unknown_name_lists_names_that_no_command_lists() -> None:
    assert str(UnknownName("version of SQuAD", "qqq", ["1.1", "2.0"])) == (
        "no version of SQuAD called 'qqq'. There are: 1.1, 2.0."
    )
    assert str(UnknownName("recipe", "qqq", ["a", "b"])).endswith("All 2: `formwright list recipes`.")


def test_unknown_name_suggests_nothing_far_fetched() -> None:
    assert "Nearest" not in str(UnknownName("searcher", "qqq", SEARCHERS))


def test_illegal_design_lists_every_fault_on_its_own_line() -> None:
    error = IllegalDesign([Fault("layers[0].width", "is missing"), Fault("layers[3].heads", "is 12")])
    assert str(error).splitlines() == [
        "illegal card, 2 faults:",
        "  layers[0].width: is missing",
        "  layers[3].heads: is 12",
    ]


def test_a_fault_without_a_place_has_no_colon() -> None:
    assert str(Fault("", "is empty")) == "is empty"


def test_missing_extra_gives_the_install_line() -> None:
    assert str(MissingExtra("onnxruntime", "onnx")).endswith('pip install "formwright[onnx]"')


def test_nearest_ignores_case_and_orders_by_likeness() -> None:
    assert nearest("BERT-BASE", ["bert-large", "bert-base", "vit"], limit=2) == ["bert-base", "bert-large"]
    assert nearest("bert-base", []) == []
