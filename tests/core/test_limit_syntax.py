import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput
from formwright.core.limit_syntax import Amount, WrittenLimit


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("5M", Amount(5e6)),
        (" 1.1 m ", Amount(1_100_000.0)),
        ("800k", Amount(8e5)),
        ("2G", Amount(2e9)),
        ("7b", Amount(7e9)),
        ("1_000", Amount(1000.0)),
        ("5e6", Amount(5e6)),
        ("-.5E-1", Amount(-0.05)),
        ("50 %", Amount(50.0, is_share=True)),
        ("8ms", Amount(8.0, is_ms=True)),
        ("five", None),
        ("5 X", None),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("9e999999M", None),
        ("1e99999999999999999999", None),
        ("", None),
    ],
)
def test_amounts(text: str, amount: Amount | None) -> None:
    assert Amount.read(text) == amount


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_read_to_the_last_digit(value: float) -> None:
    assert Amount.read(repr(value)) == Amount(value)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("params<=5M", WrittenLimit("params", "<=", 5e6, False)),
        (" params-body >= 5 k ", WrittenLimit("params-body", ">=", 5e3, False)),
        ("macs=50%", WrittenLimit("macs", "=", 50.0, True)),
        ("latency_ms<=5ms", WrittenLimit("latency_ms", "<=", 5.0, False)),
        ("params", None),
        ("accuracy:max", None),
        ("params<5", None),
    ],
)
def test_limits(text: str, limit: WrittenLimit | None) -> None:
    assert WrittenLimit.read(text) == limit


@pytest.mark.parametrize("text", ["params<=many", "params<=5ms", "params<=5 M 6"])
def test_a_number_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(IllegalInput, match=text.partition("=")[2]):
        WrittenLimit.read(text)
