"""The lightest way to write a value in each of its four phases."""

from formwright.arch.forms import (
    NEGATED,
    PHASES,
    TURNED,
    Form,
    Forms,
    distance,
    log_sigmoid,
    odd,
    scaled,
    shifted,
    total,
    wrapped,
)
from formwright.arch.primitives import Term


def forms(letter: str) -> Forms:
    return tuple(wrapped(phase, Form(0, letter)) for phase in PHASES)


def terms(of: Forms) -> list[Term]:
    return [form.term for form in of]


def test_phases_of_an_input() -> None:
    assert terms(forms("Q")) == ["Q", ("neg", "Q"), ("transpose", "Q"), ("neg", ("transpose", "Q"))]
    assert [form.weight for form in forms("Q")] == [0, 1, 1, 2]


def test_phases_are_shifted_and_shifted_back() -> None:
    for phase in PHASES:
        assert shifted(shifted(forms("Q"), phase), phase) == forms("Q")
    assert shifted(forms("Q"), NEGATED | TURNED)[0].term == ("neg", ("transpose", "Q"))


def test_scales_stand_around_every_phase() -> None:
    assert terms(scaled(forms("Q"), 2))[1] == ("scale", ("scale", ("neg", "Q")))
    assert scaled(forms("Q"), 0) == forms("Q")


def test_a_minus_stands_in_front_of_a_product() -> None:
    right = shifted(forms("K"), TURNED)
    turned = right, shifted(forms("Q"), TURNED)
    product = odd("matmul", (forms("Q"), right), (shifted(right, TURNED), turned[1]))
    assert terms(product) == [
        ("matmul", "Q", ("transpose", "K")),
        ("neg", ("matmul", "Q", ("transpose", "K"))),
        ("matmul", "K", ("transpose", "Q")),
        ("neg", ("matmul", "K", ("transpose", "Q"))),
    ]


def test_two_minuses_under_a_distance_cancel() -> None:
    negated = [shifted(forms(letter), NEGATED) for letter in "QK"]
    assert [form.term for form in distance(*negated)] == [("euclidean", "Q", "K"), ("neg", ("euclidean", "Q", "K"))]


def test_softplus_weighs_as_much_as_one_operation() -> None:
    plain, softplus = log_sigmoid(shifted(forms("Q"), NEGATED))
    assert plain == Form(2, ("logsigmoid", ("neg", "Q")))
    assert softplus == Form(1, ("neg", ("logsigmoid", ("neg", "Q"))))


def test_parts_of_a_sum_are_negated_together() -> None:
    parts = [forms("V"), shifted(forms("K"), NEGATED), shifted(forms("Q"), NEGATED)]
    plain, negated, *_ = total(parts)
    assert plain.term == ("add", "V", ("neg", ("add", "K", "Q")))
    assert negated.term == ("add", ("add", "K", "Q"), ("neg", "V"))


def test_what_only_names_decide_is_tied() -> None:
    assert not total([forms("K"), forms("Q")])[0].tied
    assert total([forms("K"), forms("Q"), forms("V")])[0].tied
    assert not total([forms("K"), forms("K"), forms("K")])[0].tied
