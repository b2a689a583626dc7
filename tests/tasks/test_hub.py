import pickle
import re
from typing import Any

import pytest
from tests.tasks.fake_datasets import Classes, Feature, Give, Lists, Split, fake_library  # noqa: F401  a fixture

from formwright.core.errors import IllegalInput
from formwright.tasks import load_task
from formwright.tasks.glue import glue_task
from formwright.tasks.hub import hub_task
from formwright.tasks.kind import own_kinds
from formwright.tasks.test_split import open_test


def split(size: int, labels: list[int] | None = None, **more: list[Any]) -> Split:
    features = {"sentence": Feature("string"), "label": Classes("int64", ["bad", "good"]), "idx": Feature("int32")}
    columns = {
        "sentence": [f"words {row}" for row in range(size)],
        "label": labels or [row % 2 for row in range(size)],
        "idx": list(range(size)),
    }
    return Split(features | {name: Feature("string") for name in more}, columns | more)


def test_a_dataset_is_fetched_once_with_its_configuration(give: Give) -> None:
    asked = give({"train": split(20), "validation": split(6), "test": split(4)})
    task = hub_task("owner/name:config")
    assert (task.name, task.labels, task.metrics) == ("owner/name:config", ("bad", "good"), ("accuracy", "f1"))
    assert (len(task.search_view().train), len(task.search_view().validation), len(open_test(task))) == (20, 6, 4)
    assert (task.search_view().train.texts[1], asked) == (("words 1",), [("owner/name", "config")])


def test_splits_that_a_dataset_lacks(give: Give) -> None:
    give({"train": split(20), "validation": split(6), "test": split(4, [-1] * 4)})
    assert len(open_test(hub_task("owner/name"))) == 3
    asked = give({"train": split(20)})
    assert (len(hub_task("owner/name").search_view().train), asked) == (16, [("owner/name", None)])
    with pytest.raises(IllegalInput, match="without a validation set"):
        hub_task("owner/name", official_dev=True)


def test_columns_may_be_named(give: Give) -> None:
    give({"train": split(20, title=["a"] * 20, author=["b"] * 20)})
    with pytest.raises(IllegalInput, match="the columns sentence, label, idx, title, author; name one or two of them"):
        hub_task("owner/name")
    assert hub_task("owner/name", ("title", "sentence")).search_view().train.texts[0] == ("a", "words 0")
    with pytest.raises(IllegalInput, match=r"split train of owner/name: no column called 'titel'. Nearest: 'title'"):
        hub_task("owner/name", ("titel",))


def test_labels_may_be_text_or_scores(give: Give) -> None:
    features = {"sentence": Feature("string"), "label": Feature("string"), "score": Feature("float32")}
    columns = {
        "sentence": [f"words {row}" for row in range(20)],
        "label": ["x", "y"] * 10,
        "score": [row / 4 for row in range(20)],
    }
    give({"train": Split(features, columns)})
    assert hub_task("owner/name", ("sentence",)).labels == ("x", "y")
    assert hub_task("owner/name", ("sentence",), "score").kind == "regression"
    columns["label"][3] = None
    with pytest.raises(IllegalInput, match="split train of owner/name, row 4: an empty label"):
        hub_task("owner/name", ("sentence",))


def test_lists_of_classes_and_columns_of_flags_are_several_labels(give: Give) -> None:
    labels = [[0], [1, 0], [], [1]] * 10
    features = {"sentence": Feature("string"), "label": Lists("list", Classes("int64", ["rust", "brake"]))}
    flags = {name: [int(place in one) for one in labels] for place, name in enumerate(("rust", "brake"))}
    columns = {"sentence": [f"words {row}" for row in range(40)], "label": labels, **flags}
    give({"train": Split(features | dict.fromkeys(flags, Feature("int64")), columns)})
    listed = hub_task("owner/name", ("sentence",))
    assert (listed.kind, listed.labels) == ("multi-label-classification", ("brake", "rust"))
    assert set(listed.search_view().train.labels) == {(0, 1), (1, 1), (0, 0), (1, 0)}
    assert hub_task("owner/name", ("sentence",), "brake,rust").search_view() == listed.search_view()
    assert hub_task("owner/name", ("sentence",), "rust", kind="regression").kind == "regression"


def test_missing_rows_and_splits_are_refused(give: Give) -> None:
    rows = split(20)
    rows.columns["sentence"][2] = None
    give({"train": rows})
    with pytest.raises(IllegalInput, match="split train of owner/name, row 3: no text in 'sentence'"):
        hub_task("owner/name")
    give({"test": split(20)})
    with pytest.raises(IllegalInput, match="owner/name has no split 'train'; it has test"):
        hub_task("owner/name")


def test_a_failed_download_says_what_else_can_be_done(give: Give) -> None:
    give(ConnectionError("Couldn't reach the Hub\n(and many more words)"))
    with pytest.raises(IllegalInput) as error:
        hub_task("owner/name")
    assert "owner/name: ConnectionError: Couldn't reach the Hub. Check the name and the network" in str(error.value)
    assert "name that folder as the task" in str(error.value)
    with pytest.raises(IllegalInput, match="give the folder of SST-2 with --data DIR"):
        glue_task("sst2").search_view()


def test_glue_comes_from_the_hub_where_no_folder_is_given(give: Give) -> None:
    names = ["entailment", "neutral", "contradiction"]
    features = {"premise": Feature("string"), "hypothesis": Feature("string"), "label": Classes("int64", names)}
    columns = {"premise": list("abcdef"), "hypothesis": list("uvwxyz"), "label": [0, 1, 2, 0, 1, 2]}
    asked = give({"train": Split(features, columns), "validation_matched": Split(features, columns)})
    task = pickle.loads(pickle.dumps(glue_task("mnli", official_dev=True)))
    assert asked == []  # nothing is fetched before rows are needed
    assert task.search_view().validation.texts[5] == ("f", "z")
    assert task.search_view().validation.labels == (0, 1, 2, 0, 1, 2)
    assert task.labels == tuple(names)
    assert asked == [("nyu-mll/glue", "mnli")]
    assert task.division == "the dev set (officially 9,815 rows) of 6 rows, whole"


def test_classes_of_glue_keep_their_names(give: Give) -> None:
    features = {"sentence": Feature("string"), "label": Classes("int64", ["positive", "negative"])}
    columns = {"sentence": ["a", "b"], "label": [0, 1]}
    give({"train": Split(features, columns), "validation": Split(features, columns)})
    assert glue_task("sst2", official_dev=True).search_view().train.labels == (1, 0)  # ours are the other way round


@pytest.mark.parametrize("short", sorted(own_kinds()))
def test_kinds_of_other_rows_than_labelled_texts_are_refused_before_a_download(give: Give, short: str) -> None:
    asked = give({"train": split(20)})
    texts = {"classification", "multi-label", "regression"}
    if short in texts:
        label = "idx" if short == "regression" else "label"
        assert load_task("owner/name", text=("sentence",), label=label, kind=short).kind == own_kinds()[short].name
        return
    with pytest.raises(IllegalInput, match=f"owner/name.*{short}.*folder") as error:
        load_task("owner/name", kind=short)
    assert texts <= set(re.findall(r"[\w-]+", str(error.value)))
    assert not asked
