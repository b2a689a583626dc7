"""The contract kit proves the rule: designs follow from seed and step alone, options are plain JSON."""

from formwright_thumb.rule import Thrifty

from formwright.testing.rule_contract import RuleContract


class TestThrifty(RuleContract):
    def examples(self):
        return [Thrifty(), Thrifty(drawn=1)]
