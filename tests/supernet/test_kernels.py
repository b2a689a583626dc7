import pytest
import torch
from tests.supernet.branched import QK, card, store
from tests.supernet.small import sentences
from torch import Tensor

from formwright.nn.inherit import Inherited, extract
from formwright.nn.settings import Settings
from formwright.supernet.branch_store import taken
from formwright.supernet.branches import HEAD
from formwright.supernet.kernels import seen_through, to_train, weights_of, without_matrices

DESIGN = card(3, QK)
KERNEL = "transformer.encoder.layers.0.mixer.kernel"
CHANGE = "transformer.encoder.layers.0.mixer.change"
STILL = Settings(dropout=0.0)


def weights(change: float = 0.0) -> dict[str, Tensor]:
    """Give the weights of the design, with a matrix that is more or less far from the identity."""
    found = taken(store(), DESIGN)
    noise = torch.randn(3, 3, generator=torch.Generator().manual_seed(1))
    return {**found, CHANGE: noise * change}


def answer(given: dict[str, Tensor], plain: bool) -> Tensor:
    tokens, mask = sentences()
    if plain:
        model = extract(Inherited(without_matrices(given), ()), DESIGN, STILL, HEAD)
    else:
        model = to_train(DESIGN, given, HEAD, STILL)
    scores: Tensor = model.eval()(tokens, mask)
    return scores


def test_the_identity_leaves_a_kernel_as_it_is() -> None:
    kernel = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    assert seen_through(kernel, torch.zeros(5, 5)).equal(kernel)
    assert without_matrices(weights())[KERNEL].equal(weights()[KERNEL])


def test_a_matrix_is_the_same_for_all_channels() -> None:
    generator = torch.Generator().manual_seed(0)
    kernel, change = (torch.randn(rows, 5, generator=generator) for rows in (4, 5))
    expected = torch.stack([channel @ (torch.eye(5) + change) for channel in kernel])
    assert seen_through(kernel, change).allclose(expected, atol=1e-5)


@pytest.mark.parametrize("change", [0.0, 0.7])
def test_a_model_in_training_and_the_plain_one_answer_alike(change: float) -> None:
    assert answer(weights(change), plain=False).equal(answer(weights(change), plain=True))


def test_a_matrix_changes_the_answer() -> None:
    assert not answer(weights(0.0), plain=True).equal(answer(weights(0.7), plain=True))


def test_weights_come_back_by_the_names_they_had() -> None:
    given = weights(0.7)
    found = weights_of(to_train(DESIGN, given, HEAD, STILL))
    assert found.keys() == given.keys()
    assert all(found[name].equal(given[name]) for name in given)


def test_a_model_in_training_leaves_what_it_was_given_alone() -> None:
    given = weights(0.7)
    before = {name: tensor.clone() for name, tensor in given.items()}
    model = to_train(DESIGN, given, HEAD, STILL)
    kept = weights_of(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    assert all(given[name].equal(before[name]) and kept[name].equal(before[name]) for name in given)


def test_kernel_and_matrix_learn_together() -> None:
    tokens, mask = sentences()
    model = to_train(DESIGN, weights(), HEAD, STILL)
    model(tokens, mask).square().sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters() if ".parametrizations." in name}
    assert len(gradients) == 2
    assert all(gradient is not None and gradient.any() for gradient in gradients.values())
