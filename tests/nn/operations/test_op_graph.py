"""Programs make every value once, and know attention when they see it."""

from collections.abc import Callable

import pytest
import torch
from numpy.random import default_rng
from tests.nn.helpers import close, filled, mask_of, normal
from torch import Tensor
from torch.nn import functional as F

from formwright.arch.ops import OpGraph
from formwright.arch.primitives import BINARY, UNARY, Term, inputs_of, shape_of
from formwright.nn.operations.op_graph import ATTEND, OpGraphAttention, OpGraphProgram, compiled, widest
from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext
from formwright.space import Expressions
from formwright.space.zoo.autobert_zero import SECOND_LAYER, STANDARD_ATTENTION, TWELFTH_LAYER

Formula = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
HEADS, SIZE, WIDTH = 2, 4, 10
LENGTHS = [1, 2, 5, 9]

# Each term beside what it means for one head of one sentence, in torch's own words: q, k, v and p are (tokens, size).
FORMULAS: dict[Term, Formula] = {
    STANDARD_ATTENTION: lambda q, k, v, p: F.scaled_dot_product_attention(q[None], k[None], v[None])[0],
    SECOND_LAYER: lambda q, k, v, p: (q @ F.softplus(k.T) / 4**0.5).softmax(1) @ (k + q),
    TWELFTH_LAYER: lambda q, k, v, p: (q @ (k / 4**0.5 + v).T / 4**0.5).softmax(1) @ v,
    ("neg", "Q"): lambda q, k, v, p: -q,
    ("add", "Q", "P"): lambda q, k, v, p: q + p,
    ("logsigmoid", "K"): lambda q, k, v, p: k.sigmoid().log(),
    ("softsign", "K"): lambda q, k, v, p: k / (1 + k.abs()),
    ("scale", "V"): lambda q, k, v, p: v / 4**0.5,
    ("transpose", ("scale", ("transpose", "V"))): lambda q, k, v, p: v / 4**0.5,
    ("softmax", "V"): lambda q, k, v, p: v.softmax(1),  # over features
    ("transpose", ("softmax", ("transpose", "V"))): lambda q, k, v, p: v.softmax(0),  # over tokens
    ("matmul", ("softmax", ("matmul", "Q", ("transpose", "K"))), "V"): lambda q, k, v, p: (q @ k.T).softmax(1) @ v,
    ("matmul", ("transpose", ("softmax", ("matmul", "Q", ("transpose", "K")))), "V"): lambda q, k, v, p: (
        (q @ k.T).softmax(1).T @ v
    ),
    ("matmul", ("matmul", "Q", ("transpose", "K")), "V"): lambda q, k, v, p: q @ k.T @ v,
    ("matmul", "Q", ("matmul", ("transpose", "K"), "V")): lambda q, k, v, p: q @ (k.T @ v),
    ("matmul", "Q", ("softmax", ("matmul", ("transpose", "K"), "V"))): lambda q, k, v, p: q @ (k.T @ v).softmax(1),
    ("matmul", ("cosine", "Q", "K"), "V"): lambda q, k, v, p: (
        F.cosine_similarity(q[:, None], k[None], dim=-1, eps=1e-12) @ v
    ),
    ("matmul", "P", ("cosine", ("transpose", "Q"), ("transpose", "K"))): lambda q, k, v, p: (
        p @ F.cosine_similarity(q.T[:, None], k.T[None], dim=-1, eps=1e-12)
    ),
    ("matmul", ("euclidean", "Q", "K"), "V"): lambda q, k, v, p: torch.cdist(q, k) @ v,
    ("matmul", "P", ("euclidean", ("transpose", "Q"), ("transpose", "K"))): lambda q, k, v, p: (
        p @ torch.cdist(q.T, k.T)
    ),
    ("matmul", ("cosine", ("matmul", "Q", ("transpose", "K")), ("matmul", "K", ("transpose", "Q"))), "V"): (
        lambda q, k, v, p: F.cosine_similarity((q @ k.T)[:, None], (k @ q.T)[None], dim=-1, eps=1e-12) @ v
    ),
    ("matmul", ("euclidean", ("matmul", "Q", ("transpose", "K")), ("matmul", "K", ("transpose", "Q"))), "V"): (
        lambda q, k, v, p: torch.cdist(q @ k.T, k @ q.T) @ v
    ),
    ("matmul", ("softmax", ("neg", ("euclidean", "K", "K"))), "V"): lambda q, k, v, p: (
        (-torch.cdist(k, k, compute_mode="donot_use_mm_for_euclid_dist")).softmax(1) @ v
    ),
}


def direct(module: OpGraphAttention, formula: Formula, x: Tensor) -> Tensor:
    """Run a formula head by head on one sentence (tokens, width), with the module's linear maps around it."""
    zeros = x.new_zeros(len(x), HEADS * SIZE)
    letters = [module.inputs[letter](x) if letter in module.inputs else zeros for letter in "QKVP"]
    heads = [formula(*(letter[:, h * SIZE : (h + 1) * SIZE] for letter in letters)) for h in range(HEADS)]
    result: Tensor = module.output(torch.cat(heads, 1))
    return result


def interpreted(term: Term, *, eager: bool = False) -> OpGraphAttention:
    return filled(OpGraphAttention(OpGraph(HEADS, SIZE, term), WIDTH, 7, 0, Settings(eager=eager)))


def test_the_formulas_cover_every_primitive_and_every_shape() -> None:
    found: set[tuple[object, ...]] = set()

    def visit(term: Term) -> None:
        if not isinstance(term, str):
            found.add((term[0], *(shape_of(operand) for operand in term[1:])))
            for operand in term[1:]:
                visit(operand)

    for term in FORMULAS:
        visit(term)
    assert {name for name, *_ in found} == {*UNARY, *BINARY}
    for name in ("cosine", "euclidean"):
        assert {shapes[0] for operation, *shapes in found if operation == name} >= {("n", "d"), ("d", "n"), ("n", "n")}
    for name in ("softmax", "scale"):
        assert {shapes[0] for operation, *shapes in found if operation == name} >= {("n", "d"), ("d", "n"), ("n", "n")}


@torch.no_grad()
@pytest.mark.parametrize("term", FORMULAS, ids=str)
@pytest.mark.parametrize("length", LENGTHS)
def test_a_graph_is_its_formula(term: Term, length: int) -> None:
    module, x = interpreted(term), normal(1, length, WIDTH)
    assert close(module(x, StackContext())[0], direct(module, FORMULAS[term], x[0]), 1e-5)


@torch.no_grad()
@pytest.mark.parametrize("term", FORMULAS, ids=str)
@pytest.mark.parametrize("left", [False, True])
def test_every_sentence_of_a_padded_batch_follows_the_formula_alone(term: Term, left: bool) -> None:
    module, x, mask = interpreted(term), normal(4, 11, WIDTH), mask_of(LENGTHS, 11, left=left)
    result = module(x, StackContext(mask))
    for sentence in range(4):
        real = mask[sentence]
        assert close(result[sentence][real], direct(module, FORMULAS[term], x[sentence][real]), 1e-5)


@pytest.mark.parametrize(
    "term", [STANDARD_ATTENTION, SECOND_LAYER, TWELFTH_LAYER], ids=["standard", "second", "twelfth"]
)
@pytest.mark.parametrize("padded", [False, True])
def test_fused_and_eager_give_equal_outputs_and_gradients(term: Term, padded: bool) -> None:
    mask = mask_of(LENGTHS, 11)
    found = []
    for eager in (False, True):
        module, x = interpreted(term, eager=eager), normal(4, 11, WIDTH).requires_grad_()
        result = module(x, StackContext(mask) if padded else StackContext())
        real = result[mask] if padded else result
        gradients = torch.autograd.grad((real * normal(*real.shape, seed=2)).sum(), [x, *module.parameters()])
        found.append([real, *gradients])
    assert all(close(fused, eager, 1e-9) for fused, eager in zip(*found, strict=True))


@torch.no_grad()
@pytest.mark.parametrize("eager", [False, True])
def test_masks_hide_keys_and_not_queries(eager: bool) -> None:
    module, x, mask = interpreted(STANDARD_ATTENTION, eager=eager), normal(1, 5, WIDTH), mask_of([3], 5)
    result = module(x, StackContext(mask))[0]
    for query in range(5):  # padding attends to what is real, too
        seen = torch.cat([x[0, :3], x[0, query : query + 1]])
        letters = {name: module.inputs[name](seen).unflatten(-1, (HEADS, SIZE)).transpose(0, 1) for name in "QKV"}
        weights = (letters["Q"][:, 3:] @ letters["K"][:, :3].mT / SIZE**0.5).softmax(-1)
        alone = module.output((weights @ letters["V"][:, :3]).transpose(0, 1).flatten(1))[0]
        assert close(result[query], alone)


@pytest.mark.parametrize(("term", "times"), [(STANDARD_ATTENTION, 1), (SECOND_LAYER, 1), (("neg", "Q"), 0)], ids=str)
def test_attention_goes_through_the_fused_kernel(term: Term, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, kernel = [], F.scaled_dot_product_attention

    def counted(*arguments: Tensor, **rest: float) -> Tensor:
        calls.append(1)
        return kernel(*arguments, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr("torch.nn.functional.scaled_dot_product_attention", counted)
    interpreted(term)(normal(1, 3, WIDTH), StackContext())
    interpreted(term, eager=True)(normal(1, 3, WIDTH), StackContext())
    assert len(calls) == times


def test_only_the_letters_that_occur_are_projected() -> None:
    assert list(interpreted(("add", "Q", "P")).inputs) == ["Q", "P"]
    assert list(interpreted(SECOND_LAYER).inputs) == ["Q", "K"]


def test_equal_parts_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def softsign(x: Tensor) -> Tensor:
        calls.append(1)
        return x

    monkeypatch.setattr("torch.nn.functional.softsign", softsign)
    part = ("softsign", "Q")
    for eager in (True, False):
        term = ("add", ("neg", part), ("add", part, ("scale", part)))
        interpreted(term, eager=eager)(normal(1, 3, WIDTH), StackContext())
    assert len(calls) == 2, "once each time"


def test_distances_are_exact_and_their_gradients_finite() -> None:
    module = interpreted(("matmul", ("euclidean", "Q", "Q"), "V"))
    x = normal(1, 1, WIDTH).expand(1, 4, WIDTH).clone().requires_grad_()  # four equal tokens: no distance anywhere
    module(x, StackContext()).sum().backward()
    assert x.grad.isfinite().all()
    module = interpreted(("matmul", ("euclidean", "Q", "Q"), "V")).float()
    x = 3.0 + 1e-3 * normal(1, 6, WIDTH, dtype=torch.float32)
    expected = filled(interpreted(("matmul", ("euclidean", "Q", "Q"), "V")))(x.double(), StackContext())
    assert close(module(x, StackContext()).double(), expected, 1e-5)
    found = {name: widest(torch.device(name)) for name in ("cpu", "cuda", "mps")}
    assert found == {"cpu": torch.float64, "cuda": torch.float64, "mps": torch.float32}


SCORES: Term = ("matmul", "Q", ("transpose", "K"))


def attention(scores: Term, values: Term = "V") -> Term:
    return ("matmul", ("softmax", scores), values)


def operations(program: OpGraphProgram) -> list[str]:
    return [step.operation for step in program.steps]


@pytest.mark.parametrize(
    "scores",
    [
        ("scale", SCORES),
        ("matmul", ("scale", "Q"), ("transpose", "K")),
        ("transpose", ("scale", ("matmul", "K", ("transpose", "Q")))),
        ("scale", ("neg", ("matmul", "Q", ("neg", ("transpose", "K"))))),
    ],
    ids=str,
)
def test_standard_attention_is_one_fused_step_however_it_is_written(scores: Term) -> None:
    (step,) = compiled(attention(scores)).steps
    assert (step.operation, step.operands, step.scales) == (ATTEND, (0, 1, 2), 1)


@pytest.mark.parametrize(("term", "others"), [(SECOND_LAYER, 6), (TWELFTH_LAYER, 2)], ids=["second", "twelfth"])
def test_the_published_layers_are_fused_around_what_is_new_in_them(term: Term, others: int) -> None:
    found = operations(compiled(term))
    assert (found.count(ATTEND), len(found)) == (1, 1 + others)
    assert not {"softmax", "matmul"} & set(found)


@pytest.mark.parametrize(
    "term",
    [
        ("add", attention(SCORES), ("matmul", ("transpose", ("softmax", SCORES)), "V")),  # its weights are used again
        ("add", attention(("scale", SCORES)), ("matmul", ("softsign", ("scale", SCORES)), "V")),  # its scores are
        attention(SCORES, ("matmul", "Q", ("matmul", ("transpose", "K"), "V"))),  # values may be of any size
        ("matmul", "Q", ("softmax", ("matmul", ("transpose", "K"), "V"))),  # over features
        ("matmul", "Q", attention(("matmul", ("transpose", "K"), "V"), ("matmul", ("transpose", "K"), "V"))),
    ],
    ids=str,
)
def test_what_is_not_quite_attention_is_not_fused(term: Term) -> None:
    assert ATTEND not in operations(compiled(term))


def test_programs_are_as_short_as_possible() -> None:
    assert [compiled(attention(scores)).steps[-1].scales for scores in (SCORES, ("scale", ("scale", SCORES)))] == [0, 2]
    written = ("neg", ("neg", attention(("scale", SCORES))))
    found = operations(compiled(written, fused=False))
    assert found == ["transpose", "matmul", "scale", "softmax", "matmul", "neg", "neg"]
    assert operations(compiled(written)) == [ATTEND]
    term = ("matmul", ("add", SCORES, ("transpose", SCORES)), "V")  # simplified, both summands are products
    assert operations(compiled(term)).count("matmul") == 2
    assert compiled("P") == compiled(("neg", ("neg", "P"))) == OpGraphProgram((), 0)


@pytest.mark.parametrize("fused", [True, False])
def test_every_value_is_made_once_and_from_earlier_ones(fused: bool) -> None:
    part, rng = Expressions(6), default_rng(0)
    for _ in range(100):
        term = part.sample(rng, "gene")
        program, first = compiled(term, fused=fused), len(inputs_of(term))
        assert len({(step.operation, step.operands) for step in program.steps}) == len(program.steps)
        assert all(max(step.operands) < first + place for place, step in enumerate(program.steps))
        assert program.result == first + len(program.steps) - 1 or not program.steps
