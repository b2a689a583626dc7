from numpy.random import default_rng

from formwright.arch.primitives import Term
from formwright.report.term_plan import plan
from formwright.space import Expressions
from formwright.space.zoo.autobert_zero import SECOND_LAYER, STANDARD_ATTENTION


def words(term: Term) -> list[str]:
    return [node.words for node in plan(term)]


def test_standard_attention_reads_from_left_to_right() -> None:
    nodes = plan(STANDARD_ATTENTION)
    assert words(STANDARD_ATTENTION) == ["Q", "K", "xᵀ", "x·y", "x / √d", "softmax", "V", "x·y"]
    assert [node.column for node in nodes] == [1, 0, 1, 2, 3, 4, 4, 5]
    assert nodes[3].operands == (0, 2)


def test_softplus_is_one_operation_and_terms_are_simplified() -> None:
    assert words(SECOND_LAYER).count("softplus") == 1
    assert "logsigmoid" not in words(SECOND_LAYER)
    assert words(("neg", ("neg", "Q"))) == ["Q"]


def test_operations_are_shared_and_inputs_are_not() -> None:
    part = ("softsign", "Q")
    found = words(("add", part, ("softmax", part)))
    assert (found.count("softsign"), found.count("Q")) == (1, 1)
    assert words(("matmul", "Q", ("matmul", ("transpose", "Q"), "Q"))).count("Q") == 3


def test_nothing_stands_on_anything_else_and_all_lines_run_to_the_right() -> None:
    part, rng = Expressions(7), default_rng(0)
    for _ in range(100):
        nodes = plan(part.sample(rng, "gene"))
        for place, node in enumerate(nodes):
            assert all(operand < place and nodes[operand].column < node.column for operand in node.operands)
            beside = [other.row for other in nodes[:place] if other.column == node.column]
            assert all(abs(node.row - row) >= 1 for row in beside)
        read = {operand for node in nodes for operand in node.operands}
        assert read == set(range(len(nodes) - 1)), "everything but the result is used"
