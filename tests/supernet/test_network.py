from pathlib import Path

import pytest
import torch
from tests.supernet.small import BERT, SPEC, VIT, card, inputs_of, model, sentences

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.space.zoo.elastic import elastic
from formwright.supernet.automatic import sub_network
from formwright.supernet.hidden import stream_groups
from formwright.supernet.network import SuperNetwork, sandwich_loss
from formwright.supernet.sandwich import Sandwich
from formwright.train.batch import Batch
from formwright.train.distil import Answers, Mix, distilled
from formwright.train.loop import Saving, scores_of, train
from formwright.train.recipe import Recipe

SMALLEST = sub_network(card(), ((1, 8),) * 3)


def sandwich(between: int = 1) -> Sandwich:
    return Sandwich(elastic(card(), (1, 2, 4), (8, 16, 24)), card(), SMALLEST, between)


class Rows:
    """Batches of random sentences whose first token decides the label."""

    def batch(self, step: int) -> Batch:
        tokens, mask = sentences(8, step)
        return Batch(tokens, tokens[:, 0] % 2, mask)


def network(between: int = 1) -> SuperNetwork:
    return SuperNetwork(model(1), model(2), sandwich(between))


def trained(
    folder: Path | None, until: int | None = None, steps: int = 12, rate: float = 3e-3
) -> tuple[SuperNetwork, list[float]]:
    one = network()
    saving = None if folder is None else Saving(folder, 1)
    recipe = Recipe(steps, 8, rate, decay="cosine")
    losses = train(one, Rows(), sandwich_loss("sequence-classification", Mix()), recipe, saving, until=until)
    return one, losses


def test_a_step_trains_both_ends_and_some_between() -> None:
    cards = sandwich(3).cards(derive(0))
    assert cards[0] == card()
    assert cards[-1] == SMALLEST
    assert len(cards) == 5
    assert len({one.digest for one in sandwich(20).cards(derive(1))}) > 10


def test_fewer_than_no_sub_network_between_the_ends_is_refused() -> None:
    with pytest.raises(IllegalInput, match="not -1"):
        sandwich(-1)


def test_the_largest_sub_network_is_the_model() -> None:
    one = network().eval()
    tokens, mask = sentences()
    assert torch.equal(one.answer(card(), tokens, mask), one.model(tokens, mask))


def test_an_extracted_model_says_what_its_sub_network_says() -> None:
    one = network().eval()
    tokens, mask = sentences()
    for small in sandwich(5).cards(derive(3)):
        found = one.extracted(small)
        assert torch.allclose(found(tokens, mask), one.answer(small, tokens, mask), atol=1e-6)
        memory = {weight.data_ptr() for weight in one.parameters()}
        assert all(weight.data_ptr() not in memory for weight in found.parameters())


def test_sub_networks_drop_out_while_they_are_trained_and_only_then() -> None:
    one = SuperNetwork(model(1, dropout=0.5), model(2), sandwich())
    inputs = sentences()
    for small in (card(), SMALLEST):
        trained = [one.train().answer(small, *inputs) for _ in range(2)]
        judged = [one.eval().answer(small, *inputs) for _ in range(2)]
        assert torch.equal(*judged)
        assert torch.allclose(judged[0], one.extracted(small)(*inputs), atol=1e-6)
        assert not torch.equal(*trained)


def test_the_loss_of_a_step_is_the_mean_over_all_its_sub_networks() -> None:
    one, rows = network(), Rows().batch(0)
    answers = scores_of(one.train(), rows)
    mix = Mix(labels=0.5, temperature=3.0)
    each = [distilled("sequence-classification", mix)(said, rows) for said in answers]
    found = sandwich_loss("sequence-classification", mix)(answers, rows)
    assert len({float(loss.detach()) for loss in each}) == 3
    assert float(found.detach()) == pytest.approx(sum(float(loss.detach()) for loss in each) / 3)


def test_a_mix_that_weighs_hidden_states_is_refused_and_not_ignored() -> None:
    loss = sandwich_loss("sequence-classification", Mix(hidden=0.5))
    with pytest.raises(IllegalInput, match="hidden=0"):
        train(network(), Rows(), loss, Recipe(1, 8))


def test_gradients_of_the_smallest_reach_the_leading_weights_only() -> None:
    one = network()
    tokens, mask = sentences()
    one.answer(SMALLEST, tokens, mask).sum().backward()
    gradient = one.model.transformer.encoder.layers[0].feed_forward.maps[0].weight.grad
    assert gradient[:8].abs().sum() > 0
    assert gradient[8:].abs().sum() == 0


def with_hidden(of: Card, between: int = 1) -> SuperNetwork:
    smallest = sub_network(of, ((1, 8),) * 2, 6)
    ends = Sandwich(elastic(of, (1, 4), (8, 24), hidden=(6, 10, 16)), of, smallest, between)
    return SuperNetwork(model(1, of=of), model(2, of=of), ends)


@pytest.mark.parametrize("of", [BERT, VIT], ids=["bert", "vit"])
def test_a_smaller_hidden_size_learns_in_the_leading_numbers_only(of: Card) -> None:
    one = with_hidden(of)
    one.answer(one.sandwich.smallest, *inputs_of(of)).sum().backward()
    scored = {
        (piece.name, piece.axis) for group in stream_groups(of, SPEC) for piece in (*group.weights, *group.biases)
    }
    weights = dict(one.model.named_parameters())
    for name, axis in scored:
        gradient = weights[name].grad
        assert gradient is not None
        assert gradient.narrow(axis, 0, 6).abs().sum() > 0
        assert gradient.narrow(axis, 6, 10).abs().sum() == 0


def test_sub_networks_of_all_hidden_sizes_are_trained() -> None:
    one = with_hidden(BERT)
    sizes = {small.output_width for step in range(9) for small in one.sandwich.cards(derive(step))[1:-1]}
    assert sizes == {6, 10, 16}
    before = {name: weight.detach().clone() for name, weight in one.named_parameters()}
    losses = train(one, Rows(), sandwich_loss("sequence-classification", Mix()), Recipe(3, 8, 3e-3))
    assert len(losses) == 3
    assert all(not torch.equal(weight, before[name]) for name, weight in one.named_parameters())
    for small in one.eval().sandwich.cards(derive(7)):
        said = one.answer(small, *inputs_of(BERT))
        assert torch.isfinite(said).all()
        assert torch.allclose(one.extracted(small)(*inputs_of(BERT)), said, atol=1e-6)


def test_the_teacher_stays_what_it_was_and_is_not_a_part_of_the_network() -> None:
    one, _ = trained(None)
    teacher = model(2)
    tokens, mask = sentences()
    assert torch.equal(one._teacher[0](tokens, mask), teacher(tokens, mask))
    assert len(list(one.parameters())) == len(list(teacher.parameters()))


@pytest.mark.slow
@pytest.mark.long
def test_all_sub_networks_learn() -> None:
    one, losses = trained(None, steps=120, rate=1e-2)
    assert sum(losses[-10:]) < 0.8 * sum(losses[:10])
    rows, loss = Rows().batch(1000), distilled("sequence-classification", Mix())
    for small in (card(), SMALLEST):
        wanted = one._teacher[0](rows.inputs, rows.mask)
        before, after = (
            loss(Answers(each.eval().answer(small, rows.inputs, rows.mask), wanted), rows).item()
            for each in (network(), one)
        )
        assert after < 0.9 * before


def test_a_run_that_was_interrupted_goes_on_bit_by_bit(tmp_path: Path) -> None:
    _, whole = trained(None)
    trained(tmp_path, until=5)
    one, losses = trained(tmp_path)
    assert losses == whole
    again, _ = trained(None)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), again.parameters(), strict=True))


def test_the_head_is_shared() -> None:
    assert network().views(SMALLEST).missing == ()
    assert SPEC.labels == 2
