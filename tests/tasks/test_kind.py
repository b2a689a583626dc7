"""Every kind of data keeps its contract, and the records can be read without torch."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest
from tests.train.cases import EVERY_KIND

from formwright.arch.card import Card
from formwright.core.errors import UnknownName
from formwright.tasks import image_kinds
from formwright.tasks.image_kinds import IMAGE_CLASSIFICATION
from formwright.tasks.kind import KINDS
from formwright.tasks.preprocessor import Preprocessor
from formwright.tasks.rows import ImageRows, Splits
from formwright.tasks.task import Task
from formwright.tasks.text_kinds import MULTI_LABEL
from formwright.testing.kind_contract import KindContract


def test_all_kinds_are_listed_without_torch_and_checked_here() -> None:
    code = (
        "import sys; from formwright.tasks.kind import KINDS; "
        "print(*(KINDS.get(name).name for name in KINDS.names())); sys.exit('torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == KINDS.names()
    assert set(KINDS.names()) == set(EVERY_KIND)


def test_an_unknown_kind_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="regression"):
        KINDS.get("regresion")


class _Kind(KindContract):
    name: str

    def task(self) -> Task:
        return EVERY_KIND[self.name][1]()

    def card(self) -> Card:
        return EVERY_KIND[self.name][0]


class TestSequenceClassification(_Kind):
    name = "sequence-classification"


class TestMultiLabel(_Kind):
    name = "multi-label-classification"


class TestRegression(_Kind):
    name = "regression"


class TestSpanExtraction(_Kind):
    name = "span-extraction"


class TestTags(_Kind):
    name = "token-classification"


class TestRelations(_Kind):
    name = "relation-classification"


class TestMaskedLm(_Kind):
    name = "masked-lm"


class TestCausalLm(_Kind):
    name = "causal-lm"


class TestSeq2SeqLm(_Kind):
    name = "seq2seq-lm"


class TestImages(_Kind):
    name = "image-classification"


class TestFrames(_Kind):
    name = "frame-classification"


@dataclass(frozen=True)
class Brightness(Preprocessor):
    """A preprocessor of another package: pixels are divided by the brightest of the training rows."""

    brightest: float

    @classmethod
    def fit(cls, rows: Any, embedding: Any) -> "Brightness":
        return cls(float(rows.pixels.max()))

    @classmethod
    def of_config(cls, config: Mapping[str, Any], embedding: Any) -> "Brightness":
        return cls(config["brightest"])

    @property
    def config(self) -> dict[str, Any]:
        return {"brightest": self.brightest}


def divided(rows: ImageRows, reader: Brightness, _: int) -> ImageRows:
    return replace(rows, pixels=(rows.pixels / reader.brightest).astype(np.float32))


FOREIGN = replace(IMAGE_CLASSIFICATION, name="acme-pictures", examples=divided, preprocessor=Brightness)


def test_the_contract_finds_augmentations_that_nobody_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kit(_Kind):
        name = "image-classification"

    monkeypatch.setattr(image_kinds, "IMAGE_CLASSIFICATION", replace(IMAGE_CLASSIFICATION, augmentations=("blur",)))
    with pytest.raises(AssertionError, match="augmentations"):
        Kit().test_it_is_known_by_its_name_and_all_its_functions_exist()


class TestKindOfAnotherPackage(_Kind):
    name = "image-classification"

    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        entry = EntryPoint(FOREIGN.name, f"{__name__}:FOREIGN", KINDS.group)
        monkeypatch.setitem(KINDS._entries(), FOREIGN.name, entry)

    def task(self) -> Task:
        return replace(super().task(), kind=FOREIGN.name)


SHAPES = replace(
    IMAGE_CLASSIFICATION,
    name="acme-labels",
    **{
        name: getattr(MULTI_LABEL, name)
        for name in ("multi_label", "metrics", "loss", "distillation_loss", "judge", "answer", "constant", "predict")
    },
)


def _labelled(rows: ImageRows) -> ImageRows:
    """Give each digit the labels even, large and round."""
    labels = np.stack((rows.labels % 2 == 0, rows.labels > 4, np.isin(rows.labels, (0, 6, 8, 9))), axis=1)
    return replace(rows, labels=labels.astype(np.float32))


def _labelled_splits() -> Splits[ImageRows]:
    view = EVERY_KIND["image-classification"][1]().search_view()
    return Splits(_labelled(view.train), _labelled(view.validation), None)


class TestPicturesWithSeveralLabels(_Kind):
    name = "image-classification"

    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(KINDS._entries(), SHAPES.name, EntryPoint(SHAPES.name, f"{__name__}:SHAPES", KINDS.group))

    def task(self) -> Task:
        return Task(
            "shapes", SHAPES.name, "micro-f1", _labelled_splits, SHAPES.metrics, labels=("even", "large", "round")
        )
