from pathlib import Path
from typing import Any

import pytest
import torch
from tests.supernet.small import BERT, SPEC, VIT, card, inputs_of, model, sentences
from torch import Tensor

from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.space.elastic import elastic
from formwright.supernet.automatic import sub_network
from formwright.supernet.groups import stream_groups
from formwright.supernet.hull import Hull
from formwright.supernet.importance import uniform
from formwright.supernet.lessons import Distil, Labels
from formwright.supernet.network import StepTrackingStream, SuperNetwork, copy_of_teacher
from formwright.supernet.rules import Draw, Sandwich
from formwright.train.distil import Answers, Mix, distilled
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import Saving, scores_of, train
from formwright.train.loop import inputs_of as inputs_of_rows
from formwright.train.losses import loss_of
from formwright.train.streams import Batch

SMALLEST = sub_network(card(), ((1, 8),) * 3)


def sandwich(between: int = 1) -> Draw:
    return Sandwich(between).bind(Hull(elastic(card(), (1, 2, 4), (8, 16, 24)), card(), SMALLEST), 1)


class Rows:
    """Batches of random sentences whose first token decides the label."""

    def batch(self, step: int) -> Batch:
        tokens, mask = sentences(8, step)
        return Batch(tokens, tokens[:, 0] % 2, mask)


def network(between: int = 1) -> SuperNetwork:
    return SuperNetwork(model(1), sandwich(between), model(2))


def trained(
    folder: Path | None, until: int | None = None, steps: int = 12, rate: float = 3e-3
) -> tuple[SuperNetwork, list[float]]:
    one = network()
    saving = None if folder is None else Saving(folder, 1)
    recipe = Hyperparameters(steps, 8, rate, decay="cosine")
    losses = train(one, Rows(), Distil(0.5).bind("sequence-classification"), recipe, saving, until=until)
    return one, losses


def test_the_largest_sub_network_is_the_model() -> None:
    one = network().eval()
    tokens, mask = sentences()
    assert torch.equal(one.answer(card(), tokens, mask), one.model(tokens, mask))


def test_an_extracted_model_says_what_its_sub_network_says() -> None:
    one = network().eval()
    tokens, mask = sentences()
    for small in sandwich(5)(derive(3), 0):
        found = one.extracted(small)
        assert torch.allclose(found(tokens, mask), one.answer(small, tokens, mask), atol=1e-6)
        memory = {weight.data_ptr() for weight in one.parameters()}
        assert all(weight.data_ptr() not in memory for weight in found.parameters())


def test_sub_networks_drop_out_while_they_are_trained_and_only_then() -> None:
    one = SuperNetwork(model(1, dropout=0.5), sandwich(), model(2))
    inputs = sentences()
    for small in (card(), SMALLEST):
        trained = [one.train().answer(small, *inputs) for _ in range(2)]
        judged = [one.eval().answer(small, *inputs) for _ in range(2)]
        assert torch.equal(*judged)
        assert torch.allclose(judged[0], one.extracted(small)(*inputs), atol=1e-6)
        assert not torch.equal(*trained)


def test_gradients_of_the_smallest_reach_the_leading_weights_only() -> None:
    one = network()
    tokens, mask = sentences()
    one.answer(SMALLEST, tokens, mask).sum().backward()
    gradient = one.model.transformer.encoder.layers[0].feed_forward.maps[0].weight.grad
    assert gradient[:8].abs().sum() > 0
    assert gradient[8:].abs().sum() == 0


def smallest_of(of: Card) -> Card:
    return sub_network(of, ((1, 8),) * 2, 6)


def with_hidden(of: Card) -> tuple[SuperNetwork, Draw]:
    draw = Sandwich(1).bind(Hull(elastic(of, (1, 4), (8, 24), hidden=(6, 10, 16)), of, smallest_of(of)), 1)
    return SuperNetwork(model(1, of=of), draw, model(2, of=of)), draw


@pytest.mark.parametrize("of", [BERT, VIT], ids=["bert", "vit"])
def test_a_smaller_hidden_size_learns_in_the_leading_numbers_only(of: Card) -> None:
    one, _ = with_hidden(of)
    one.answer(smallest_of(of), *inputs_of(of)).sum().backward()
    scored = {(axis.name, axis.axis) for group in stream_groups(of, SPEC) for axis in (*group.weights, *group.biases)}
    weights = dict(one.model.named_parameters())
    for name, axis in scored:
        gradient = weights[name].grad
        assert gradient.narrow(axis, 0, 6).abs().sum() > 0
        assert gradient.narrow(axis, 6, 10).abs().sum() == 0


def test_sub_networks_of_all_hidden_sizes_are_trained() -> None:
    one, draw = with_hidden(BERT)
    sizes = {small.output_width for step in range(9) for small in draw(derive(step), 0)[1:-1]}
    assert sizes == {6, 10, 16}
    before = {name: weight.detach().clone() for name, weight in one.named_parameters()}
    losses = train(one, Rows(), Distil(0.5).bind("sequence-classification"), Hyperparameters(3, 8, 3e-3))
    assert len(losses) == 3
    assert all(not torch.equal(weight, before[name]) for name, weight in one.named_parameters())
    for small in draw(derive(7), 0):
        said = one.eval().answer(small, *inputs_of(BERT))
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
    rows, loss = Rows().batch(1000), distilled("sequence-classification", Mix(0.5, 0.5))
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


def test_the_head_is_shared_and_labels_alone_will_do() -> None:
    assert network().views(SMALLEST).missing == ()
    assert SPEC.labels == 2
    one = SuperNetwork(model(1), sandwich())
    assert all(shown.teacher is None for shown in scores_of(one.train(), Rows().batch(0)).each(Rows().batch(0)))
    assert len(train(one, Rows(), Labels().bind("sequence-classification"), Hyperparameters(2, 8))) == 2


class Held:
    """A tensor that a graph keeps for its way back, and the numbers that are kept now and were at most."""

    now = most = 0

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        Held.now += tensor.numel()
        Held.most = max(Held.most, Held.now)

    def __del__(self) -> None:
        Held.now -= self.tensor.numel()


def most_held(designs: int) -> int:
    """Give how many numbers the graphs of a step keep at once, where all its designs are the largest one."""
    one, Held.now, Held.most = SuperNetwork(model(1), lambda rng, step: [card()] * designs), 0, 0
    with torch.autograd.graph.saved_tensors_hooks(Held, lambda held: held.tensor):
        train(one, Rows(), Labels().bind("sequence-classification"), Hyperparameters(1, 8))
    return Held.most


def test_graphs_of_a_step_do_not_live_at_the_same_time() -> None:
    assert most_held(6) <= 1.1 * most_held(1)


def test_a_step_of_several_designs_is_the_mean_of_their_steps() -> None:
    one, rows = network(2), Rows().batch(0)
    torch.manual_seed(3)
    for loss in Labels().bind("sequence-classification")(one(), rows):
        loss.backward()
    found = {name: weight.grad for name, weight in one.named_parameters() if weight.grad is not None}
    again = network(2)
    torch.manual_seed(3)
    losses = [loss_of("sequence-classification")(again.answer(c, *inputs_of_rows(rows)), rows) for c in again.cards()]
    torch.stack(losses).mean().backward()
    assert len(losses) == 4
    for name, weight in again.named_parameters():
        assert torch.allclose(found[name], weight.grad, atol=1e-7), name


def test_batches_tell_the_network_its_step() -> None:
    seen = []

    def draw(rng: object, step: int) -> list[Card]:
        seen.append(step)
        return [SMALLEST]

    one = SuperNetwork(model(1), draw)
    recipe = Hyperparameters(3, 8, accumulate=2)
    train(one, StepTrackingStream(Rows(), one, recipe.accumulate), Labels().bind("sequence-classification"), recipe)
    assert seen == [0, 0, 1, 1, 2, 2]


def test_the_designs_of_a_later_batch_of_a_step_do_not_depend_on_the_first_one() -> None:
    """Dropout, of which larger designs draw more, moves torch's generator."""
    found = []
    for dropout, many in ((0.0, 1), (0.3, 1), (0.3, 3)):
        one, cards = SuperNetwork(model(1, dropout=dropout), sandwich(3)), list[list[Card]]()
        drawn = one.drawn

        def noted(draw: int, step: int, drawn: Any = drawn, many: int = many, cards: Any = cards) -> list[Card]:
            cards.append(drawn(draw, step))
            return cards[-1][:many]  # how many of them are run says nothing of what is drawn

        one.drawn = noted
        recipe = Hyperparameters(3, 8, accumulate=3, seed=4)
        train(one, StepTrackingStream(Rows(), one, 3), Labels().bind("sequence-classification"), recipe)
        assert len(cards) == 9
        assert len({tuple(some) for some in cards}) > 6
        found.append(cards)
    assert found[0] == found[1] == found[2]


def test_the_first_batch_of_a_step_is_drawn_by_the_number_that_the_step_is_seeded_for() -> None:
    one = SuperNetwork(model(1), sandwich(3))
    for part in (0, 1, 2, 0):
        one.part = part
        torch.manual_seed(7)
        one.cards()
        torch.manual_seed(7)
        assert (one.draw == int(torch.randint(1 << 62, (1,)))) == (part == 0)


def test_a_network_begins_with_a_copy_of_its_teacher() -> None:
    known = model(2)
    inputs = sentences()
    for importance in (None, uniform(card())):
        start = copy_of_teacher(known, importance, whole_embedding=importance is not None)
        assert torch.allclose(start(*inputs), known(*inputs), atol=1e-6)
        frozen = {name for name, weight in start.named_parameters() if not weight.requires_grad}
        assert all("embedding" in name for name in frozen)
        assert bool(frozen) == (importance is not None)
        assert all(weight.requires_grad for weight in known.parameters())


def test_the_teacher_goes_wherever_the_network_goes() -> None:
    known = model(2)
    one = SuperNetwork(model(1), sandwich(), known).double()
    assert {weight.dtype for weight in (*one.parameters(), *known.parameters())} == {torch.float64}
