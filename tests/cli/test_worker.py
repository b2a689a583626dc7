import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.studies import started, wait_for
from tests.pipeline.cases import create, own_rows
from tests.study.cases import kinds

from formwright.study.stop import Stop


def test_a_worker_joins_a_study(run: Run, tmp_path: Path) -> None:
    place = create(tmp_path / "films", own_rows(tmp_path, stop=Stop(3)))
    done = run("worker", place.folder)
    assert (done.code, done.out, done.err) == (0, "films is over\n", "working on films\n")
    with place.open() as opened:
        assert [event.number for event in kinds(opened.log, "told")] == [0, 1, 2]


def test_a_worker_finds_a_study_by_its_url(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'all.db'}"
    create(tmp_path / "films", own_rows(tmp_path, stop=Stop(1)), url)
    done = run("worker", f"{url}#films", "--folder", tmp_path / "weights")
    assert (done.code, done.out) == (0, "films is over\n")


def test_a_study_that_nobody_can_work_on(run: Run, tmp_path: Path) -> None:
    place = create(tmp_path / "films", own_rows(tmp_path, searcher="random"))
    with closing(sqlite3.connect(place.storage)) as database:  # as written where another package brings a searcher
        database.execute("""UPDATE studies SET config = replace(config, '"random"', '"absent"')""")
        database.commit()
    done = run("worker", place.folder)
    assert (done.code, done.out) == (2, "")
    assert "no searcher called 'absent'" in done.err


def test_what_is_no_study_is_refused(run: Run, tmp_path: Path) -> None:
    done = run("worker", tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "run.json" in done.err


@pytest.mark.long
@pytest.mark.slow
def test_a_worker_that_leaves_gives_its_trial_back(tmp_path: Path) -> None:
    place = create(tmp_path / "films", own_rows(tmp_path, stop=Stop(5000)))
    with started(["worker", str(place.folder)]) as process:
        wait_for(process, place.folder, lambda event: event.kind == "told")
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "working on films\n")
    with place.open() as opened:
        assert all(lease.expires <= opened.log.now() for lease in opened.log.leases().values())
