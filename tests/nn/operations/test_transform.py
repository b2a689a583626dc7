import numpy as np
import pytest
import scipy.fft  # type: ignore[import-untyped]
import torch
from numpy.typing import NDArray
from tests.nn.helpers import close, filled, mask_of, normal
from tests.nn.operations.test_attention import slow_row
from torch import Tensor, nn

from formwright.arch.ops import RelativeAttention, Transform
from formwright.nn.operations.transform import TransformMixer
from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext

KINDS = ["dft", "dct"]
LENGTHS = [1, 2, 7, 12]


def mixer(kind: str, width: int, relative: RelativeAttention | None = None) -> TransformMixer:
    return filled(TransformMixer(Transform(kind, relative), width, width, 0, Settings()))  # type: ignore[arg-type]


def by_library(kind: str, sentence: Tensor) -> Tensor:
    """Transform one sentence with numpy's or scipy's fast transform."""
    array: NDArray[np.float64] = sentence.detach().double().numpy()
    return torch.from_numpy(np.fft.fft2(array).real.copy() if kind == "dft" else scipy.fft.dctn(array, type=2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1, 8, 15])
@pytest.mark.parametrize("length", LENGTHS)
def test_a_sentence_alone_is_transformed_as_by_the_library(kind: str, width: int, length: int) -> None:
    x = normal(1, length, width)
    assert close(mixer(kind, width)(x, StackContext())[0], by_library(kind, x[0]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", [False, True])
def test_each_sentence_of_a_batch_is_transformed_over_its_own_length(kind: str, left: bool) -> None:
    x, mask = normal(4, 14, 8), mask_of(LENGTHS, 14, left=left)
    result = mixer(kind, 8)(x, StackContext(mask))
    for sentence in range(4):
        real = mask[sentence]
        assert close(result[sentence][real], by_library(kind, x[sentence][real]))


@pytest.mark.parametrize("kind", KINDS)
def test_long_sentences_keep_single_precision(kind: str) -> None:
    x = normal(1, 509, 64, dtype=torch.float32)
    assert close(mixer(kind, 64).float()(x, StackContext())[0].double(), by_library(kind, x[0]), 2e-6)


def slow_term(module: TransformMixer, x: Tensor, heads: int, rows: int) -> Tensor:
    """Compute softmax(Q R^T / sqrt(d)) V of one sentence, head by head and token by token."""
    query, value = (part(x).unflatten(-1, (heads, -1)) for part in (module.query, module.value))
    result = torch.zeros_like(value)
    for h in range(heads):
        for i in range(len(x)):
            table = module.term.positions.keys[0][[slow_row(i, j, rows) for j in range(len(x))]]
            result[i, h] = (table @ query[i, h] / query.shape[-1] ** 0.5).softmax(0) @ value[:, h]
    return result.flatten(1)


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", [False, True])
def test_a_position_term_is_added_and_the_sum_mapped(kind: str, left: bool) -> None:
    module = mixer(kind, 8, RelativeAttention(2, 4, 5))
    x, mask = normal(4, 13, 8), mask_of(LENGTHS, 13, left=left)
    result = module(x, StackContext(mask))
    for sentence in range(4):
        real = x[sentence][mask[sentence]]
        expected = module.output(by_library(kind, real) + slow_term(module, real, 2, 5))
        assert close(result[sentence][mask[sentence]], expected)


@pytest.mark.parametrize("kind", KINDS)
def test_transforms_of_two_kinds_and_widths_share_one_context(kind: str) -> None:
    context, mask = StackContext(mask_of([5, 3], 5)), mask_of([5, 3], 5)
    for width in (4, 6):
        for each in (kind, *KINDS):
            x = normal(2, 5, width)
            assert close(mixer(each, width)(x, context)[1][mask[1]], by_library(each, x[1][mask[1]]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_first_used_for_inference_can_still_be_trained(kind: str) -> None:
    width = {"dft": 37, "dct": 41}[kind]  # widths that no other test has put into the cache of matrices
    module, x = mixer(kind, width), normal(1, 3, width)
    with torch.inference_mode():
        module(x, StackContext())
    x = x.requires_grad_()
    module(x, StackContext()).sum().backward()
    assert x.grad.isfinite().all()


class _Alone(nn.Module):
    """Wrap a mixer so that it can be exported."""

    def __init__(self, mixer: TransformMixer) -> None:
        super().__init__()
        self.mixer = mixer

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        result: Tensor = self.mixer(x, StackContext(mask))
        return result


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_exporting_leaves_the_model_usable(kind: str) -> None:
    width = {"dft": 43, "dct": 47}[kind]  # widths that no other test has put into the cache of matrices
    module, x, mask = _Alone(mixer(kind, width)), normal(2, 5, width), mask_of([5, 3], 5)
    assert close(torch.export.export(module, (x, mask)).module()(x, mask), module(x, mask))
    assert close(module(x, mask)[0], by_library(kind, x[0]))
