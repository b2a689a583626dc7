import pytest
import torch
from tests.nn.cases import MIXERS, block, stack, translators
from tests.nn.helpers import filled, hollow, run

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.nn.slots import Slots

CARDS = {"encoder": Card(stack((block(MIXERS["sdp"], "post"),) * 2), pooler=True), **translators()}


@pytest.mark.parametrize("name", CARDS)
def test_a_model_runs_with_lent_weights_as_with_its_own(name: str) -> None:
    owner, empty = filled(hollow(CARDS[name])), hollow(CARDS[name]).double().eval()
    before = dict(empty.named_parameters())
    with Slots(empty).lent(dict(owner.named_parameters())):
        lent = run(empty, 2, 7)
    assert torch.equal(lent.hidden, run(owner, 2, 7).hidden)
    assert all(parameter is before[name] for name, parameter in empty.named_parameters())


def test_gradients_reach_the_lent_tensors() -> None:
    owner, empty = filled(hollow(CARDS["encoder"])), hollow(CARDS["encoder"]).double().eval()
    whole = {name: weight.detach().clone().requires_grad_() for name, weight in owner.named_parameters()}
    with Slots(empty).lent({name: weight * 1.0 for name, weight in whole.items()}):
        run(empty).hidden.sum().backward()
    run(owner).hidden.sum().backward()
    for name, parameter in owner.named_parameters():
        assert (parameter.grad is None) == (whole[name].grad is None)
        if parameter.grad is not None:
            assert torch.allclose(parameter.grad, whole[name].grad)


def test_weights_come_back_after_an_error() -> None:
    model = filled(hollow(CARDS["encoder"]))
    name, own = next(iter(model.named_parameters()))
    model.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError), Slots(model).lent({name: torch.zeros_like(own)}):
        run(model)
    assert dict(model.named_parameters())[name] is own


def test_an_unknown_weight_is_refused_and_nothing_is_lent() -> None:
    model = filled(hollow(CARDS["encoder"]))
    name, own = next(iter(model.named_parameters()))
    slots = Slots(model)
    with pytest.raises(IllegalInput, match="no weight called 'nonsense'"), slots.lent({name: own * 0, "nonsense": own}):
        pass
    assert dict(model.named_parameters())[name] is own
