from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest
import torch
from numpy.random import Generator
from tests.train.cases import EVERY_KIND, VISION, few

from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.rng import derive
from formwright.tasks import image_kinds
from formwright.tasks.image_kinds import IMAGE_CLASSIFICATION
from formwright.train.augment import Augmented, flip, shift
from formwright.train.fit import task_stream
from formwright.train.hyperparameters import AUGMENTATIONS, Hyperparameters
from formwright.train.prepare import prepare
from formwright.train.streams import Batch

PICTURES = torch.rand(64, 1, 8, 8, generator=torch.Generator().manual_seed(0)) + 1  # no pixel is 0


def test_a_shifted_picture_is_moved_by_at_most_an_eighth_of_its_side() -> None:
    found = shift(PICTURES, derive(0, "test"))
    places = set()
    for before, after in zip(PICTURES[:, 0], found[:, 0], strict=True):
        moves = [
            (down, right)
            for down in (-1, 0, 1)
            for right in (-1, 0, 1)
            if torch.equal(after[1:7, 1:7], before[1 - down : 7 - down, 1 - right : 7 - right])
        ]
        assert len(moves) == 1
        (down, right) = moves[0]
        assert int((after == 0).sum()) == 64 - (8 - abs(down)) * (8 - abs(right))
        places.add(moves[0])
    assert len(places) == 9


def test_half_of_the_pictures_are_mirrored() -> None:
    found = flip(PICTURES, derive(0, "test"))
    mirrored = [torch.equal(after, before.flip(-1)) for before, after in zip(PICTURES, found, strict=True)]
    kept = [torch.equal(after, before) for before, after in zip(PICTURES, found, strict=True)]
    assert all(one != other for one, other in zip(mirrored, kept, strict=True))
    assert 16 < sum(mirrored) < 48


def test_a_step_has_the_same_changes_every_time_and_other_steps_have_others() -> None:
    prepared, recipe = prepare(few("digits"), VISION, 0), Hyperparameters(10, 256, augment="shift, flip")
    plain = task_stream(prepared, replace(recipe, augment=""))
    first, again = task_stream(prepared, recipe), task_stream(prepared, recipe)
    assert torch.equal(first.batch(3).inputs, again.batch(3).inputs)
    assert not torch.equal(first.batch(3).inputs, plain.batch(3).inputs)
    assert torch.equal(first.batch(3).labels, plain.batch(3).labels)
    other = replace(recipe, seed=1)
    assert not torch.equal(task_stream(prepared, other).batch(3).inputs, first.batch(3).inputs)


class Unchanging:
    """A stream that shows the same pictures at every step."""

    def batch(self, _: int) -> Batch:
        return Batch(PICTURES, torch.zeros(len(PICTURES)))


@pytest.mark.parametrize("name", AUGMENTATIONS.names())
def test_the_same_pictures_are_changed_otherwise_at_another_step(name: str) -> None:
    stream = Augmented(Unchanging(), 0, (name,))
    assert not torch.equal(stream.batch(3).inputs, stream.batch(4).inputs)


def test_changes_are_named_and_are_for_pictures() -> None:
    with pytest.raises(UnknownName, match="flip"):
        Hyperparameters(10, augment="flipp")
    card, task = EVERY_KIND["frame-classification"]
    with pytest.raises(IllegalInput, match=r"flip.*waves"):
        task_stream(prepare(task(), card, 32), Hyperparameters(10, augment="flip"))
    assert set(IMAGE_CLASSIFICATION.augmentations) <= set(AUGMENTATIONS.names())


def test_a_kind_says_which_changes_its_inputs_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    # mirrored pictures may mean something else, as those of text do
    monkeypatch.setattr(image_kinds, "IMAGE_CLASSIFICATION", replace(IMAGE_CLASSIFICATION, augmentations=("shift",)))
    prepared = prepare(few("digits"), VISION, 0)
    assert isinstance(task_stream(prepared, Hyperparameters(10, augment="shift")), Augmented)
    with pytest.raises(IllegalInput, match=r"flip.*shift"):
        task_stream(prepared, Hyperparameters(10, augment="shift,flip"))


def negative(pictures: torch.Tensor, rng: Generator) -> torch.Tensor:
    """Turn dark pixels into light ones, and light ones into dark ones."""
    return -pictures


def test_another_package_brings_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    AUGMENTATIONS.names()
    (known,) = [key for key in AUGMENTATIONS.__dict__ if key.endswith("_entries")]
    entry = EntryPoint("negative", f"{__name__}:negative", AUGMENTATIONS.group)
    monkeypatch.setitem(AUGMENTATIONS.__dict__, known, AUGMENTATIONS.__dict__[known] | {"negative": entry})
    monkeypatch.setattr(image_kinds, "IMAGE_CLASSIFICATION", replace(IMAGE_CLASSIFICATION, augmentations=("negative",)))
    prepared, recipe = prepare(few("digits"), VISION, 0), Hyperparameters(10, augment="negative")
    plain = task_stream(prepared, replace(recipe, augment="")).batch(3).inputs
    assert torch.equal(task_stream(prepared, recipe).batch(3).inputs, -plain)


def test_every_change_is_made_of_what_the_one_before_it_made() -> None:
    rng = derive(0, "augment", 3)
    expected = flip(shift(PICTURES, rng), rng)
    assert torch.equal(Augmented(Unchanging(), 0, ("shift", "flip")).batch(3).inputs, expected)
