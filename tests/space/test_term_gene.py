import pytest
from numpy.random import default_rng

from formwright.arch.primitives import Term
from formwright.space import Choice, Expressions, Record, Repeat, Switch
from formwright.space.term_gene import TermGene
from formwright.space.value import Case, Fields

PART = Expressions(largest=5)
ATTENTION: Term = ("matmul", ("softmax", ("matmul", "Q", ("transpose", "K"))), "V")


@pytest.fixture(name="gene")
def gene_of_an_attention() -> TermGene:
    (gene,) = PART.genes(ATTENTION, ("mixer",))
    assert isinstance(gene, TermGene)
    return gene


def test_it_names_operations_and_inputs(gene: TermGene) -> None:
    assert gene.name == "mixer"
    assert gene.operations == ("transpose", "matmul", "softmax", "matmul")
    assert gene.inputs == ("Q", "K", "V")
    assert gene.options == PART.choices(ATTENTION)


def test_moves_keep_the_limits_of_the_part(gene: TermGene) -> None:
    rng = default_rng(0)
    assert gene.with_operation(2, "neg", rng) == ("matmul", ("neg", ATTENTION[1][1]), "V")
    assert gene.with_insertion(2, "neg", rng) == ("matmul", ("softmax", ("neg", ATTENTION[1][1])), "V")
    assert gene.with_insertion(2, "add", rng) is None  # would need three more operations
    assert gene.without_operation(2, rng) == ("matmul", ATTENTION[1][1], "V")
    assert gene.with_input(2, "P") == ("matmul", ATTENTION[1], "P")
    (narrow,) = Expressions(5, least_inputs=3).genes(ATTENTION)
    assert isinstance(narrow, TermGene)
    assert narrow.with_input(2, "K") is None


def test_genes_that_others_depend_on_are_structural() -> None:
    part = Record.of(
        layers=Repeat(Switch.of(attention=Expressions(3), convolution=Choice((3, 5))), (1, 2)), width=Choice((8, 16))
    )
    design = Fields.of(layers=(Case("attention", ("add", "K", "Q")), Case("convolution", 5)), width=8)
    assert part.contains(design)
    assert [(gene.name, gene.structural) for gene in part.genes(design)] == [
        ("layers", True),
        ("layers[0]", True),
        ("layers[0].attention", False),
        ("layers[1]", True),
        ("layers[1].convolution", False),
        ("width", False),
    ]
