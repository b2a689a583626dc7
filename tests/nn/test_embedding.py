import math

import pytest
import torch
from tests.nn.helpers import close, filled, mask_of, normal
from torch import nn
from torch.nn import functional as F

from formwright.arch.embeddings import Embedding, FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.core.errors import IllegalInput
from formwright.nn.embedding import Frames, Patches, Tokens, embedding_module, sinusoidal
from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext

QUIET = Settings(dropout=0.0)
IDS = torch.tensor([[3, 1, 4, 1], [5, 9, 2, 6]])


def tokens(embedding: TokenEmbedding) -> Tokens:
    return filled(Tokens(embedding, QUIET))


@torch.no_grad()
def test_token_position_and_type_vectors_are_summed_and_normalised() -> None:
    module = tokens(TokenEmbedding(10, 6, length=8, types=2))
    kinds = torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1]])
    total = module.tokens.weight[IDS] + module.positions.table[:4] + module.types.weight[kinds]
    expected = F.layer_norm(total, (6,), module.norm.weight, module.norm.bias, 1e-12)
    assert close(module(IDS, StackContext(), kinds), expected)


@torch.no_grad()
def test_types_not_given_are_the_first_type() -> None:
    module = tokens(TokenEmbedding(10, 6, types=2))
    assert torch.equal(module(IDS, StackContext()), module(IDS, StackContext(), torch.zeros_like(IDS)))
    assert not close(module(IDS, StackContext()), module(IDS, StackContext(), torch.ones_like(IDS)))


@torch.no_grad()
def test_factorised_tables_are_widened_last() -> None:
    module = tokens(TokenEmbedding(10, 6, factorised=3, positions="none", norm=False))
    assert module.tokens.weight.shape == (10, 3)
    assert close(module(IDS, StackContext()), module.tokens.weight[IDS] @ module.widen.weight.T + module.widen.bias)


@torch.no_grad()
@pytest.mark.parametrize("positions", ["none", "relative"])
def test_without_positions_of_its_own_the_table_stands_alone(positions: str) -> None:
    module = tokens(TokenEmbedding(10, 6, positions=positions, norm=False))  # type: ignore[arg-type]
    assert torch.equal(module(IDS, StackContext()), module.tokens.weight[IDS])


@torch.no_grad()
def test_tokens_beside_waves_are_scaled_unless_a_norm_follows() -> None:
    waves = sinusoidal(torch.arange(4)[None], 6, torch.float64)
    module = tokens(TokenEmbedding(10, 6, positions="sinusoidal", norm=False))
    assert close(module(IDS, StackContext()), module.tokens.weight[IDS] * math.sqrt(6) + waves)
    normed = tokens(TokenEmbedding(10, 6, positions="sinusoidal"))
    total = normed.tokens.weight[IDS] + waves
    assert close(normed(IDS, StackContext()), F.layer_norm(total, (6,), normed.norm.weight, normed.norm.bias, 1e-12))


@pytest.mark.parametrize("width", [2, 6, 7, 64])
def test_sinusoidal_positions_follow_the_formula(width: int) -> None:
    result = sinusoidal(torch.arange(40)[None], width, torch.float64)[0]
    half = (width + 1) // 2
    for position in range(40):
        for column in range(width):
            rate = 10_000 ** (-(column % half) / max(half - 1, 1))
            wave = math.sin if column < half else math.cos
            assert abs(float(result[position, column]) - wave(position * rate)) < 1e-5


@torch.no_grad()
@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
@pytest.mark.parametrize("left", [False, True])
def test_positions_count_real_tokens(positions: str, left: bool) -> None:
    module = tokens(TokenEmbedding(10, 6, positions=positions, length=4))  # type: ignore[arg-type]
    mask = mask_of([4, 2], 7, left=left)  # more tokens than positions, but no sentence is that long
    padded = torch.zeros(2, 7, dtype=torch.long)
    padded[0][mask[0]], padded[1][mask[1]] = IDS[0], IDS[1, :2]
    result = module(padded, StackContext(mask))
    assert close(result[0][mask[0]], module(IDS[:1], StackContext())[0])
    assert close(result[1][mask[1]], module(IDS[1:, :2], StackContext())[0])


@pytest.mark.parametrize("length", [1, 3])
def test_a_sentence_longer_than_the_positions_is_refused(length: int) -> None:
    with pytest.raises(IllegalInput, match=f"4 tokens.*{length}"):
        tokens(TokenEmbedding(10, 6, length=length))(IDS, StackContext())


@torch.no_grad()
@pytest.mark.parametrize("class_tokens", [0, 1, 2])
@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "none"])
def test_patches_are_a_strided_convolution(class_tokens: int, positions: str) -> None:
    embedding = PatchEmbedding(12, 4, 6, 3, class_tokens, positions)  # type: ignore[arg-type]
    module, image = filled(Patches(embedding, QUIET)), normal(2, 3, 12, 12)
    kernel = module.pixels.weight.unflatten(1, (3, 4, 4))  # type: ignore[no-untyped-call]
    expected = F.conv2d(image, kernel, module.pixels.bias, stride=4).flatten(2).transpose(1, 2)
    assert (module.class_token is None) == (class_tokens == 0)
    if module.class_token is not None:
        assert module.class_token.shape == (class_tokens, 6)
        expected = torch.stack([torch.cat((module.class_token, image_patches)) for image_patches in expected])
    if module.positions.table is not None:
        expected = expected + module.positions.table
    elif positions == "sinusoidal":
        expected = expected + sinusoidal(torch.arange(embedding.tokens)[None], 6, torch.float64)
    assert close(module(image, StackContext()), expected)
    assert expected.shape == (2, 9 + class_tokens, 6)


@torch.no_grad()
def test_frames_are_normalised_mapped_and_numbered() -> None:
    module, frames = filled(Frames(FrameEmbedding(5, 6, length=9), QUIET)), normal(2, 4, 5)
    normed = F.layer_norm(frames, (5,), module.norm.weight, module.norm.bias, 1e-12)
    expected = normed @ module.features.weight.T + module.features.bias + module.positions.table[:4]
    assert close(module(frames, StackContext()), expected)


@torch.no_grad()
@pytest.mark.parametrize("embedding", [TokenEmbedding(10, 64), PatchEmbedding(8, 4, 64), FrameEmbedding(5, 64)])
def test_embeddings_drop_out_in_training_only(embedding: Embedding) -> None:
    module: nn.Module = filled(embedding_module(embedding, Settings(dropout=0.5)))
    inputs = {"tokens": IDS, "patches": normal(2, 3, 8, 8), "frames": normal(2, 4, 5)}[embedding.TYPE]
    assert torch.equal(module(inputs, StackContext()), module(inputs, StackContext()))
    assert 0.4 < float((module.train()(inputs, StackContext()) == 0).double().mean()) < 0.6
