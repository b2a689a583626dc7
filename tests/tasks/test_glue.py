import gzip
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from formwright.core.errors import IllegalInput
from formwright.tasks import load_task
from formwright.tasks.glue import GLUE, glue_task
from formwright.tasks.metrics import METRICS
from formwright.tasks.test_split import open_test

Write = Callable[..., Path]
LAYOUTS = {
    "cola": ("", "gj04\t{label}\t\t{one}"),
    "sst2": ("sentence\tlabel", "{one}\t{label}"),
    "mrpc": ("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "{label}\t7\t8\t{one}\t{two}"),
    "stsb": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
        "0\tx\tx\t2012\t0\tnone\tnone\t{one}\t{two}\t{label}",
    ),
    "mnli": (
        "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse"
        "\tsentence2_parse\tsentence1\tsentence2\tlabel1\tgold_label",
        "0\t1\t1e\tx\t(\t(\t(\t(\t{one}\t{two}\tneutral\t{label}",
    ),
    "rte": ("index\tsentence1\tsentence2\tlabel", "0\t{one}\t{two}\t{label}"),
    "qnli": ("index\tquestion\tsentence\tlabel", "0\t{one}\t{two}\t{label}"),
    "qqp": ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "0\t1\t2\t{one}\t{two}\t{label}"),
    "wnli": ("index\tsentence1\tsentence2\tlabel", "0\t{one}\t{two}\t{label}"),
}
WEAPONS = "Weapons of Mass Destruction Found in Iraq"
CARROT = "carrot. When I pulled the pin out"
# what the data folder holds: rows of training and dev, the first training row and its label
REAL = {
    "cola": (8551, 1043, ("Our friends won't buy this analysis, let alone the next one we propose.",), 1),
    "sst2": (67349, 872, ("hide new secretions from the parental units ",), 0),
    "stsb": (5749, 1500, ("A plane is taking off.", "An air plane is taking off."), 5.0),
    "rte": (2490, 277, (f"No {WEAPONS} Yet.", f"{WEAPONS}."), 1),
    "wnli": (635, 71, (f"I stuck a pin through a {CARROT}, it had a hole.", "The carrot had a hole."), 1),
}


def written(name: str) -> tuple[str, ...]:
    labelling = GLUE[name].labelling
    return labelling.written or labelling.names or ("0.000", "2.500", "5.000")


def lines(name: str, size: int) -> str:
    head, row = LAYOUTS[name]
    labels = written(name)
    rows = [row.format(one=f'one "{n}', two=f"two {n}", label=labels[n % len(labels)]) for n in range(size)]
    return "\r\n".join([head, *rows] if head else rows)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Give a function that writes the files of a task in the official layout and returns its folder."""

    def call(name: str, train: str | None = None, dev: str | None = None, end: str = ".tsv") -> Path:
        folder = tmp_path / "glue" / GLUE[name].folder
        folder.mkdir(parents=True)
        for stem, content in (("train", train or lines(name, 12)), (GLUE[name].dev, dev or lines(name, 6))):
            data = ("\ufeff" + content).encode()
            (folder / (stem + end)).write_bytes(gzip.compress(data) if end.endswith(".gz") else data)
        return folder

    return call


@pytest.mark.parametrize("name", GLUE)
@pytest.mark.parametrize("end", [".tsv", ".tsv.gz"])
def test_every_task_is_read_from_the_official_layout(write: Write, name: str, end: str) -> None:
    folder = write(name, end=end)
    task = glue_task(name, folder)
    view, spec = task.search_view(), GLUE[name]
    assert (len(view.train), len(view.validation), len(open_test(task))) == (12, 3, 3)
    assert view.train.texts[1] == ('one "1', "two 1")[: len(spec.text)]
    expected = (0.0, 2.5, 5.0) if name == "stsb" else tuple(range(len(task.labels)))
    assert view.train.labels[: len(expected)] == expected
    assert task.name == f"glue/{name}"
    assert set(task.metrics) <= set(METRICS.names())
    assert glue_task(name, folder.parent).search_view() == view  # the folder of all tasks will do


def test_classes_and_metrics_are_those_of_glue() -> None:
    assert {name: spec.metrics for name, spec in GLUE.items() if spec.metrics != ("accuracy",)} == {
        "cola": ("matthews", "accuracy"),
        "mrpc": ("accuracy", "f1"),
        "stsb": ("pearson", "spearman"),
        "qqp": ("accuracy", "f1"),
    }
    assert GLUE["sst2"].labelling.names == ("negative", "positive")
    assert GLUE["mnli"].labelling.names == ("entailment", "neutral", "contradiction")
    assert GLUE["rte"].labelling.names == GLUE["qnli"].labelling.names == ("entailment", "not_entailment")
    assert GLUE["wnli"].labelling.names == ("not_entailment", "entailment")


def test_the_dev_set_is_halved_or_kept_whole(write: Write) -> None:
    folder = write("wnli", dev=lines("wnli", 71))
    halved, whole = glue_task("wnli", folder), glue_task("wnli", folder, official_dev=True)
    assert halved.division == "the official dev set of 71 rows, halved by seed 0 into validation and test"
    parts = halved.search_view().validation.texts + open_test(halved).texts
    assert sorted(parts) == sorted(whole.search_view().validation.texts)
    assert whole.division == "the official dev set of 71 rows, whole"
    assert load_task("glue/wnli", folder, official_dev=True).search_view() == whole.search_view()
    assert (halved.has_test, whole.has_test) == (True, False)
    with pytest.raises(IllegalInput, match="glue/wnli has no test rows: validation is the official dev set of 71 rows"):
        open_test(whole)


def test_a_dev_set_of_another_size_is_not_called_official(write: Write) -> None:
    assert glue_task("sst2", write("sst2")).division.startswith("the dev set (officially 872 rows) of 6 rows, halved")


def test_parts_of_the_training_set_will_do_and_are_named(write: Write) -> None:
    folder = write("qqp")
    (folder / "train.tsv").rename(folder / "train_subset.tsv")
    (folder / "dev.tsv").rename(folder / "heldout_from_train.tsv")
    task = glue_task("qqp", folder)
    assert task.about.endswith(
        "; train_subset.tsv is a part of the official training set"
        "; heldout_from_train.tsv is a part of the official training set"
    )
    assert task.division.startswith("the file heldout_from_train.tsv (not the official dev set) of 6 rows, halved")
    with pytest.raises(IllegalInput, match=r"lacks the official dev set, dev\.tsv or dev\.tsv\.gz"):
        glue_task("qqp", folder, official_dev=True)


def test_files_that_glue_prefers_or_leaves_out(write: Write) -> None:
    folder = write("sst2")
    (folder / "train_subset.tsv").write_text("nonsense")
    assert len(glue_task("sst2", folder).search_view().train) == 12
    task = glue_task("qqp", write("qqp", train=lines("qqp", 200) + "\r\n7\t1\t2\thow do I"))
    assert len(task.search_view().train) == 200
    assert task.division.endswith("; broken rows left out: 1")
    folder = write("rte")
    task = pickle.loads(pickle.dumps(glue_task("rte", folder)))
    (folder / "train.tsv").write_text(lines("rte", 5))
    assert len(task.search_view().train) == 5


@pytest.mark.parametrize(
    ("name", "train", "expected"),
    [
        ("sst2", "sentence\tlable\na\t1\n", r"train\.tsv, line 1: no column called 'label'. Nearest: 'lable'"),
        ("sst2", "sentence\tlabel\na\t1\nb\t2\n", r"train\.tsv, line 3: label '2'.* Expected one of: 0, 1"),
        ("sst2", "sentence\tlabel\na\t1\nb\n", r"train\.tsv, line 3: 1 field; expected 2"),
        (
            "cola",
            "sentence\tlabel\na\t1\n",
            "2 faults.*\n.*line 1: 2 fields; expected 4: source, label, mark, sentence",
        ),
        ("rte", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\t1\n", "Expected one of: entailment, not_entailment"),
        (
            "stsb",
            LAYOUTS["stsb"][0] + "\n0\t\t\t\t\t\t\ta\tb\thigh\n",
            "line 2: score 'high'; expected a finite number",
        ),
        ("stsb", LAYOUTS["stsb"][0] + "\n0\t\t\t\t\t\t\ta\tb\tnan\n", "line 2: score 'nan'"),
        ("wnli", "\n", r"train\.tsv is empty"),
        ("wnli", LAYOUTS["wnli"][0], r"train\.tsv has no rows"),
    ],
)
def test_bad_files_are_told_with_file_and_line(write: Write, name: str, train: str, expected: str) -> None:
    with pytest.raises(IllegalInput, match=expected):
        glue_task(name, write(name, train=train)).search_view()


def test_missing_files_are_told_with_what_was_looked_for(tmp_path: Path) -> None:
    names = r"train\.tsv, train\.tsv\.gz, train_subset\.tsv, train_subset\.tsv\.gz"
    with pytest.raises(IllegalInput, match=f"no train set of glue/sst2 in .* {names}"):
        glue_task("sst2", tmp_path)
    (tmp_path / "train.tsv").write_text("sentence\tlabel\n")
    with pytest.raises(IllegalInput, match=r"no dev set of glue/mnli in .*dev_matched\.tsv"):
        glue_task("mnli", tmp_path)
    with pytest.raises(IllegalInput, match=r"train\.tsv is a file; expected the folder SST-2"):
        glue_task("sst2", tmp_path / "train.tsv")


def test_a_folder_in_place_of_a_file_is_told(write: Write) -> None:
    folder = write("sst2")
    (folder / "train.tsv").unlink()
    (folder / "train.tsv").mkdir()
    with pytest.raises(IllegalInput, match=r"train\.tsv: it is a folder; expected a file"):
        glue_task("sst2", folder).search_view()


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_the_published_files_are_read_completely(data_dir: Path, name: str) -> None:
    train, dev, first, label = REAL[name]
    task = glue_task(name, data_dir / "glue", official_dev=True)
    view = task.search_view()
    assert (len(view.train), len(view.validation)) == (train, dev)
    assert (view.train.texts[0], view.train.labels[0]) == (first, label)
    assert task.division == f"the official dev set of {dev:,} rows, whole"
    halved = glue_task(name, data_dir / "glue")
    assert abs(len(halved.search_view().validation) - len(open_test(halved))) <= 2


@pytest.mark.data
def test_the_parts_of_mnli_and_qqp_are_read(data_dir: Path) -> None:
    mnli = glue_task("mnli", data_dir / "glue", official_dev=True)
    assert Counter(mnli.search_view().validation.labels) == {0: 3479, 1: 3123, 2: 3213}
    assert len(mnli.search_view().train) == 8999
    assert "train_subset.tsv.gz is a part" in mnli.about
    assert "dev_matched" not in mnli.about
    qqp = glue_task("qqp", data_dir / "glue")
    assert (len(qqp.search_view().train), len(qqp.search_view().validation), len(open_test(qqp))) == (8999, 500, 500)
    assert "heldout_from_train.tsv.gz is a part" in qqp.about


@pytest.mark.data
@pytest.mark.parametrize("name", ["sst2", "rte", "wnli", "mnli"])
def test_chance_is_the_share_of_the_commonest_class(data_dir: Path, name: str) -> None:
    task = glue_task(name, data_dir / "glue", official_dev=True)
    labels = task.search_view().validation.labels
    assert task.chance == Counter(labels).most_common(1)[0][1] / len(labels)


@pytest.mark.data
def test_rows_with_all_official_columns_are_read(data_dir: Path, tmp_path: Path) -> None:
    for name, size in (("mnli", 480), ("qqp", 320)):
        folder = tmp_path / GLUE[name].folder
        folder.mkdir()
        content = (data_dir / "glue" / folder.name / "train_official_rows_sample.tsv").read_bytes()
        for stem in ("train", GLUE[name].dev):
            (folder / f"{stem}.tsv").write_bytes(content)
        assert len(glue_task(name, folder).search_view().train) == size
