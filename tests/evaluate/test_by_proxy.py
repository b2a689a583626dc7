"""Scores without training."""

import pytest
from tests.evaluate.toy import card

from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.protocols import Evaluator
from formwright.core.records import Budget, Request
from formwright.cost import params
from formwright.evaluate.by_proxy import ByProxy
from formwright.evaluate.context import Context
from formwright.evaluate.proxies.synflow import synflow

CARD = card(32, 16)


def test_the_metrics_have_the_names_of_the_proxies() -> None:
    found = ByProxy(("synflow", "params")).evaluate(Request(CARD, Budget(3)), Context(4))
    assert found.metrics == {"synflow": synflow(CARD, 4), "params": params(CARD)}
    assert (found.spent.steps, found.spent.macs, found.artifacts) == (0, 0, {})
    assert found.spent.seconds > 0
    assert isinstance(ByProxy(("params",)), Evaluator)


def test_unknown_names_are_refused_before_any_work() -> None:
    with pytest.raises(UnknownName, match="Nearest: 'synflow'"):
        ByProxy(("params", "sinflow"))
    with pytest.raises(IllegalInput, match="name at least one proxy: params, synflow"):
        ByProxy(())
