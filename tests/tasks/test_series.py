"""Series of the UCR archive, and of tables."""

import gzip
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from formwright.arch.embeddings import FrameEmbedding
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.hf.frame_features import series_frames
from formwright.tasks import load_task
from formwright.tasks.frame_kinds import FRAME_CLASSIFICATION, features_reason
from formwright.tasks.frames import FrameReader, FrameRows
from formwright.tasks.kind import KINDS
from formwright.tasks.series import read_frames_files, read_long_table, read_ts, read_wide_table
from formwright.tasks.task import _made, first_rows

TS = """#comment
@problemName Two
@timeStamps false
@univariate false
@dimensions 2
@equalLength false
@classLabel true up down
@data
1,2,3:4,5,6:up
1.5,2:0,1e-1:down
"""


def test_a_ts_file_has_dimensions_and_unequal_lengths(tmp_path: Path) -> None:
    (tmp_path / "x.ts").write_text(TS)
    found = read_ts(tmp_path / "x.ts")
    assert [one.tolist() for one in found.series] == [
        [[1, 4], [2, 5], [3, 6]],
        [[1.5, 0], [2, pytest.approx(0.1)]],
    ]
    assert (found.names, found.labels) == (["up", "down"], ("up", "down"))


@pytest.mark.parametrize("line", ["@", "@timeStamps", "@ missing false"])
def test_lines_of_a_header_may_say_nothing(tmp_path: Path, line: str) -> None:
    (tmp_path / "x.ts").write_text(TS.replace("@timeStamps false", line))
    assert read_ts(tmp_path / "x.ts").names == ["up", "down"]
    (tmp_path / "x.ts").write_text(TS.replace("@classLabel true up down", "@classLabel"))
    with pytest.raises(IllegalInput, match="no labels"):
        read_ts(tmp_path / "x.ts")


def test_series_without_labels_or_of_one_label_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.ts").write_text("@classLabel false\n@data\n1,2,3\n")
    with pytest.raises(IllegalInput, match="@classLabel true"):
        load_task(str(tmp_path / "x.ts"))
    (tmp_path / "x.ts").write_text("@classLabel true up down\n@data\n" + "1,2,3:up\n" * 30)
    with pytest.raises(IllegalInput, match="'up'"):
        load_task(str(tmp_path / "x.ts"))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("4,5,6", "4,5", "line 9"),
        (":0,1e-1", "", "line 10: 1 dimensions"),
        ("4,5,6", "4,?,6", r"line 9: '\?'"),
        ("4,5,6", "4,nan,6", "line 9: NaN"),
        ("@data\n", "", "@data"),
        ("true up down", "false", "no labels"),
        ("@timeStamps false", "@timeStamps true", "time stamps"),
    ],
)
def test_a_faulty_ts_file_is_refused_with_the_place(tmp_path: Path, old: str, new: str, told: str) -> None:
    (tmp_path / "x.ts").write_text(TS.replace(old, new))
    with pytest.raises(IllegalInput, match=told):
        read_ts(tmp_path / "x.ts")


def write_archive(folder: Path, end: str = ".tsv", between: str = "\t") -> None:
    for split, rows in (("TRAIN", 40), ("TEST", 10)):
        values = derive(0, split).normal(size=(rows, 12))
        lines = [between.join(map(str, ((-1, 1)[row % 2], *values[row]))) for row in range(rows)]
        content = "\n".join(lines).encode()
        (folder / f"Two_{split}{end}").write_bytes(gzip.compress(content) if end.lower().endswith(".gz") else content)


@pytest.mark.parametrize("end", [".tsv", ".tsv.gz", ".txt", ".TSV.GZ"])
def test_a_folder_of_the_archive_is_a_task(tmp_path: Path, end: str) -> None:
    write_archive(tmp_path, end)
    task = load_task(str(tmp_path))
    view = task.search_view()
    assert (task.kind, task.labels) == ("frame-classification", ("-1", "1"))
    assert (len(view.train), len(view.validation), len(_made(task).test)) == (36, 4, 10)
    assert view.train.series(0).shape == (12, 1)


@pytest.mark.parametrize("between", [",", ", ", " , ", " \t ", "  "])
def test_blanks_around_separators_are_no_cells(tmp_path: Path, between: str) -> None:
    write_archive(tmp_path, between=between)
    assert load_task(str(tmp_path)).search_view().train.series(0).shape == (12, 1)


@pytest.mark.parametrize("between", [",", ", ", "\t"])
def test_an_empty_cell_of_an_archive_is_named_with_its_line(tmp_path: Path, between: str) -> None:
    write_archive(tmp_path)
    rows = [f"{row % 2}{between}1.5{between}{row}" for row in range(9)]
    rows[4] = rows[4].replace("1.5", "")
    (tmp_path / "Two_TRAIN.tsv").write_text("\n".join(rows))
    with pytest.raises(IllegalInput, match=r"line 5: ''"):
        load_task(str(tmp_path))


@pytest.mark.parametrize("end", [".ts", ".TS", ".ts.GZ"])
def test_the_case_of_a_name_does_not_matter(tmp_path: Path, end: str) -> None:
    rows = [f"{row},{row + 1}:{row + 2},0:{('down', 'up')[row % 2]}" for row in range(40)]
    content = (TS.partition("1,2,3")[0] + "\n".join(rows)).encode()
    path = tmp_path / f"X_TRAIN{end}"
    path.write_bytes(gzip.compress(content) if end.lower().endswith(".gz") else content)
    assert load_task(str(path)).labels == load_task(str(tmp_path)).labels == ("up", "down")


def test_labels_have_the_order_of_the_file_that_lists_them_or_that_of_numbers(tmp_path: Path) -> None:
    rows = [f"{row},{row + 1}:{row + 2},0:{('down', 'up')[row % 2]}" for row in range(40)]
    (tmp_path / "x.ts").write_text(TS.partition("1,2,3")[0] + "\n".join(rows))
    assert load_task(str(tmp_path / "x.ts")).labels == ("up", "down")
    (tmp_path / "x.csv").write_text("a,label\n" + "\n".join(f"{row},{(10, 2, 1)[row % 3]}" for row in range(40)))
    assert load_task(str(tmp_path / "x.csv"), kind="series").labels == ("1", "2", "10")


def test_labels_are_those_of_the_rows_where_the_file_lists_others(tmp_path: Path) -> None:
    rows = [f"{row},{row + 1}:{row + 2},0:{row % 2}" for row in range(40)]
    header = TS.partition("1,2,3")[0].replace("up down", "0.0 1.0")
    (tmp_path / "x.ts").write_text(header + "\n".join(rows))
    assert load_task(str(tmp_path / "x.ts")).labels == ("0", "1")


def test_the_same_numbers_in_series_of_other_lengths_are_other_rows() -> None:
    first, second = (FrameRows.of([np.arange(cut)[:, None], np.arange(cut, 9)[:, None]], [0, 1]) for cut in (3, 4))
    assert (first.values == second.values).all()
    assert first.digest != second.digest


def test_of_several_forms_of_an_archive_the_one_with_a_header_is_read(tmp_path: Path) -> None:
    write_archive(tmp_path)
    rows = [f"{row},{row}:{row},{row}:{('down', 'up')[row % 2]}" for row in range(40)]
    (tmp_path / "Mine_TRAIN.ts").write_text(TS.partition("1,2,3")[0] + "\n".join(rows))
    (tmp_path / "Mine_TEST.ts").write_text(TS)
    assert load_task(str(tmp_path)).labels == ("up", "down")


def test_series_are_normalised_by_the_training_rows_alone(tmp_path: Path) -> None:
    write_archive(tmp_path)
    splits = _made(load_task(str(tmp_path)))
    reader = FrameReader.fit(splits.train, FrameEmbedding(8, 4))
    assert reader.scale.mean == (pytest.approx(float(splits.train.values.mean()), rel=1e-4),)
    assert reader.scale.deviation == (pytest.approx(float(splits.train.values.std()), rel=1e-4),)
    assert (reader.window, reader.hop) == (6, 3)
    whole, short = (reader.examples(splits.test, length) for length in (512, 2))
    assert whole.lengths[0] == 3
    assert (short.frames[:2] == whole.frames[:2]).all()  # the beginning is kept
    shifted = FrameRows(splits.test.values + 100, splits.test.offsets, splits.test.labels)
    assert reader.examples(shifted, 512).frames.mean() > 50


def test_a_table_has_a_series_a_row_of_any_length(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,kind,b,c\n1,up,2,3\n4,down,5,\n6,up,NaN,NaN\n")
    found = read_wide_table(tmp_path / "x.csv", "kind")
    assert [one[:, 0].tolist() for one in found.series] == [[1, 2, 3], [4, 5], [6]]
    assert found.names == ["up", "down", "up"]


def test_a_table_of_steps_is_gathered_by_series(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,x,y,kind\na,1,2,up\nb,3,4,down\na,5,6,up\n")
    found = read_long_table(tmp_path / "x.csv", "kind", "id")
    assert [one.tolist() for one in found.series] == [[[1, 2], [5, 6]], [[3, 4]]]
    assert found.names == ["up", "down"]
    (tmp_path / "x.csv").write_text("id,x,y,kind\na,1,2,up\na,5,6,down\n")
    with pytest.raises(IllegalInput, match=r"line 3.*'a'.*'down'.*'up'"):
        read_long_table(tmp_path / "x.csv", "kind", "id")


def test_a_table_of_the_users_is_a_task_by_its_kind(tmp_path: Path) -> None:
    values = derive(0, "values").normal(size=(40, 6)).round(3)
    rows = [",".join([*map(str, row), ("up", "down")[place % 2]]) for place, row in enumerate(values)]
    (tmp_path / "x.csv").write_text("\n".join(["a,b,c,d,e,f,kind", *rows]))
    task = load_task(str(tmp_path / "x.csv"), kind="series", label="kind")
    assert (task.kind, task.labels) == ("frame-classification", ("down", "up"))
    assert len(task.search_view().train) == 32
    assert task.load["kind"] == "series"
    with pytest.raises(IllegalInput, match="no column called 'label'"):
        load_task(str(tmp_path / "x.csv"), kind="series")


@pytest.mark.parametrize("option", ["label", "series"])
@pytest.mark.parametrize("file", [False, True])
def test_files_of_the_archive_have_no_columns_to_name(tmp_path: Path, option: str, file: bool) -> None:
    write_archive(tmp_path)
    (tmp_path / "x.ts").write_text(TS)
    with pytest.raises(IllegalInput, match=rf"archive.*--{option}"):
        load_task(str(tmp_path / "x.ts" if file else tmp_path), **{option: "x"})


def test_the_column_of_series_is_for_kinds_that_can_have_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"s{row},{row},{step},{'ab'[row % 2]}" for row in range(30) for step in range(3)]
    (tmp_path / "x.csv").write_text("\n".join(["id,x,y,label", *lines]))
    assert load_task(str(tmp_path / "x.csv"), series="id").kind == FRAME_CLASSIFICATION.name
    with pytest.raises(IllegalInput, match="--series"):
        load_task(str(tmp_path / "x.csv"), series="id", kind="classification")
    other = replace(FRAME_CLASSIFICATION, name="acme-frames", short="acme")  # of another package
    loaded = EntryPoint(other.name, f"{__name__}:OTHER", KINDS.group)
    monkeypatch.setattr(sys.modules[__name__], "OTHER", other, raising=False)
    monkeypatch.setitem(KINDS._entries(), other.name, loaded)
    assert load_task(str(tmp_path / "x.csv"), series="id", kind="acme").load["series"] == "id"
    with pytest.raises(IllegalInput, match=r"acme, series.*--task-kind"):
        load_task(str(tmp_path / "x.csv"), series="id")


def test_too_few_features_are_refused_with_the_number_that_is_needed() -> None:
    rows = FrameRows.of([np.zeros((5, 12))] * 3, [0, 1, 0])
    assert "12" in features_reason(rows, FrameEmbedding(8, 4))
    assert not features_reason(rows, FrameEmbedding(12, 4))


def test_digests_and_parts_of_rows() -> None:
    series = [derive(0, "series", row).normal(size=(row + 2, 3)).astype(np.float32) for row in range(6)]
    rows = FrameRows.of(series, range(6))
    part = rows.take([4, 1])
    assert [part.series(row).tolist() for row in range(2)] == [series[4].tolist(), series[1].tolist()]
    assert (part.labels.tolist(), part.numbers) == ([4, 1], (4, 1))
    assert rows.digest == FrameRows.of(series, range(6)).digest
    assert rows.digest != FrameRows.of(series[::-1], range(6)).digest
    assert first_rows(rows, 2).digest == rows.take([0, 1]).digest


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "train", "test", "labels", "dimensions"),
    [
        ("ItalyPowerDemand", 67, 1029, 2, 1),
        ("GunPoint", 50, 150, 2, 1),
        ("ArrowHead", 36, 175, 3, 1),
        ("OSULeaf", 200, 242, 6, 1),
        ("BasicMotions", 40, 40, 4, 6),
        ("JapaneseVowels", 270, 370, 9, 12),
        ("ECG200", 100, 100, 2, 1),
        ("Coffee", 28, 28, 2, 1),
        ("ECG5000", 500, 4500, 5, 1),
    ],
)
def test_the_archive_has_its_official_rows(
    data_dir: Path, name: str, train: int, test: int, labels: int, dimensions: int
) -> None:
    task = load_task(str(data_dir / "ucr" / name))
    view = task.search_view()
    assert (len(view.train) + len(view.validation), len(_made(task).test)) == (train, test)
    assert (len(task.labels), view.train.values.shape[1]) == (labels, dimensions)


def test_a_column_that_hardly_changes_is_only_shifted() -> None:
    rows = FrameRows.of([np.array([[0.0, 1.0], [1e-7, 5.0]])], [0])
    scale = FrameReader.fit(rows, FrameEmbedding(8, 16)).scale
    assert scale.mean == (pytest.approx(5e-8), 3.0)
    assert scale.deviation == (1.0, 2.0)


def test_recordings_of_another_rate_are_other_rows() -> None:
    slow, fast = (FrameRows.of([np.arange(9)[:, None]], [0], rate=rate) for rate in (4000, 8000))
    assert slow.digest != fast.digest


def test_steps_behind_the_last_whole_window_are_a_frame_too() -> None:
    found = series_frames(np.arange(8.0)[:, None], 5, 5, 2)
    assert found.tolist() == [[0, 1, 2, 3, 4], [2, 3, 4, 5, 6], [4, 5, 6, 7, 0]]


def test_splits_of_other_dimensions_are_refused(tmp_path: Path) -> None:
    rows = [f"{row},{row + 1}:{row + 2},0:{('down', 'up')[row % 2]}" for row in range(40)]
    (tmp_path / "Two_TRAIN.ts").write_text(TS.partition("1,2,3")[0] + "\n".join(rows))
    (tmp_path / "Two_TEST.ts").write_text(TS.partition("1,2,3")[0] + "1,2:up\n2,3:down\n")
    with pytest.raises(IllegalInput, match="numbers a step"):
        load_task(str(tmp_path))


def test_of_a_folder_of_the_archive_the_test_series_are_read_without_labels(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=r"\.wav.*TEST"):
        read_frames_files(tmp_path)
    (tmp_path / "X_TRAIN.ts").write_text(TS)
    with pytest.raises(IllegalInput, match=r"X_TRAIN\.ts"):
        read_frames_files(tmp_path)
    (tmp_path / "X_TEST.ts").write_text(TS.replace("1,2,3:4,5,6", "9,2,3:4,5,6"))
    found = read_frames_files(tmp_path)
    assert [row["series"] for row in found.rows] == [0, 1]
    assert [(series[0].tolist(), rate) for series, rate in found.texts] == [([9, 4], 0), ([1.5, 0], 0)]
