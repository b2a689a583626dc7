"""The folder of a run: what it says of the run, and where its studies, models and page are."""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.core.codec import loads
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.files import read_regular, write_json
from formwright.core.options import Stage
from formwright.pipeline.designs import own_file, trust
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun, RunOptions, StageRun
from formwright.study.folder_lock import LOCK
from formwright.study.store import Store

if TYPE_CHECKING:
    pass

RUN = "run.json"
DATABASE = "study.db"
REPORT = "report.html"
DONE = "done.json"  # in the folder of a stage that is done
CHANGED = "changed input: "
_ELSEWHERE = "Choose another output folder, or force to overwrite this one"
FINAL = "final"  # the folder of the last trainings, and of the record that test rows were opened


class FolderTaken(IllegalInput):
    """Say that a run cannot be made in a folder because of what is in it."""


def resume_line(folder: Path) -> str:
    return f"resume it with `formwright resume {folder}`"


def holds_run(folder: Path) -> bool:
    """Tell whether a folder holds a run, even one that a kill left without its record."""
    return (folder / RUN).is_file() or (folder / DATABASE).is_file()


def holds_study(folder: Path) -> bool:
    """Tell whether there is a study in the database of a run; a kill may have left one without."""
    if not (folder / DATABASE).is_file():
        return False
    with Store.open(folder / DATABASE, create=True) as store:
        return bool(store.studies())


@dataclass(frozen=True)
class RunRecord:
    """What the folder of a run says of it, so that another run never uses its files.

    `storage` is the database of its searches where that is not a file in the folder, `name` their name there.
    `contents` are digests of what the stages read from outside, by stage and name, `fixed` the options of the stages
    without those that only say how far the run goes.
    """

    pipeline: Mapping[str, Any]
    fixed: Mapping[str, Any]
    contents: Mapping[str, Mapping[str, Any]]
    options: RunOptions
    storage: str | None = None
    name: str | None = None
    command: str = ""

    @classmethod
    def of(cls, run: PipelineRun, contents: Mapping[str, Mapping[str, Any]]) -> "RunRecord":
        """Describe a run whose options are settled."""
        stages = run.pipeline.to_json(extents=False)["stages"]
        return cls(run.pipeline.to_json(), stages, contents, run.options, run.storage, run.study_name, run.command)

    @classmethod
    def read(cls, folder: Path) -> "RunRecord":
        path = folder / RUN
        if not path.is_file():
            if _is_model(folder):
                detail = f"`formwright measure {folder}` describes it"
                raise IllegalInput(f"{folder} holds a model, not a run: {detail}")
            raise IllegalInput(f"{folder} is not the folder of a run: it has no {RUN}")
        try:
            facts = loads(read_regular(path))
            options = RunOptions(**facts["options"])
            found = cls(**{**facts, "options": options})
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise IllegalInput(f"cannot read {path}: {error}{_way_out(folder)}") from None
        if not found._is_whole():
            raise IllegalInput(f"cannot read {path}: it does not describe a run{_way_out(folder)}")
        return found

    def _is_whole(self) -> bool:
        tables = (self.pipeline, self.fixed, self.contents)
        if not all(isinstance(table, Mapping) for table in tables) or not isinstance(self.command, str):
            return False
        by_stage = [self.pipeline.get("stages"), self.fixed, self.contents]
        return all(text is None or isinstance(text, str) for text in (self.storage, self.name)) and all(
            isinstance(table, Mapping) and all(isinstance(one, Mapping) for one in table.values()) for table in by_stage
        )

    def write(self, folder: Path) -> None:
        """Write the record whole; others may not read it, because a URL may hold a password."""
        path = folder / RUN
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        draft.replace(path)

    def changes(self, other: "RunRecord") -> list[str]:
        """List what another record has otherwise: options by stage, and inputs whose content changed."""
        from formwright.tasks.task import changes

        found: list[str] = []
        for name in dict.fromkeys((*self.fixed, *other.fixed)):
            if name not in self.fixed or name not in other.fixed:
                found.append(f"the stage {name}")
                continue
            found += _differences(name, self.fixed[name], other.fixed[name])
        for name, known in self.contents.items():
            task = self.fixed.get(name, {}).get("task")
            source = f" of {task['name']}" if isinstance(task, Mapping) and "name" in task else ""
            found += [f"{CHANGED}{line}{source}" for line in changes(known, other.contents.get(name, {}))]
        return list(dict.fromkeys(found))


_USUAL = object()  # of an option that is not recorded because nobody set it


def _differences(where: str, one: Any, other: Any) -> list[str]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        names = dict.fromkeys((*one, *other))
        return [
            line
            for name in names
            for line in _differences(f"{where}.{name}", one.get(name, _USUAL), other.get(name, _USUAL))
        ]
    return [] if one == other else [f"{where} ({_shown(one)} there, {_shown(other)} now)"]


def _shown(value: Any) -> str:
    return "the default" if value is _USUAL else json.dumps(value)


def refuse_run_folder(folder: Path) -> None:
    """Refuse the folder of a run where that of a model is needed, and name its model."""
    if (folder / RUN).is_file():
        found = [str(path.parent) for path in sorted(folder.glob("model*/**/config.json"))]
        shown = f"its model is {found[0]}" if len(found) == 1 else f"its models are {', '.join(found)}"
        detail = shown if found else "it has no model yet"
        raise IllegalInput(f"{folder} is the folder of a run; {detail}")


def _is_model(folder: Path) -> bool:
    try:
        return "architectures" in loads(read_regular(folder / "config.json"))
    except (OSError, ValueError, TypeError):
        return False


def _way_out(folder: Path) -> str:
    return f". Repair it, or remove it: {DATABASE} holds the study" if (folder / DATABASE).is_file() else ""


def kept_stage(run: StageRun) -> Stage | None:
    """Give the stage of this name in the run that the folder holds; None where the run is a new one.

    What a stage settles by the machine stays as it was when a run is resumed on another one.
    """
    try:
        return None if run.run.force else Pipeline.from_json(RunRecord.read(run.run.out).pipeline).named[run.name]
    except (FormwrightError, KeyError):  # nothing began here, or what did is refused later
        return None


def check_folder(folder: Path, record: RunRecord, *, force: bool, resumes: bool = False) -> None:
    """Refuse a folder of another run, unless with `force`, and in any case files that are no run of ours.

    Who `resumes` has found the study in it, though its record is gone.
    """
    if (folder / RUN).is_file():
        if force:
            return
        try:
            changed = RunRecord.read(folder).changes(record)
        except IllegalInput as error:
            raise FolderTaken(f"{error}. {_ELSEWHERE}") from None
        if changed and all(line.startswith(CHANGED) for line in changed):
            detail = ", ".join(line.removeprefix(CHANGED) for line in changed)
            raise FolderTaken(
                f"what the run in {folder} reads has changed since it began: {detail}. Results of both cannot be "
                f"compared: restore the data to resume it. {_ELSEWHERE}"
            )
        if changed:
            shown = "; ".join(changed[:6]) + (f"; and {len(changed) - 6} more" if len(changed) > 6 else "")
            raise FolderTaken(f"{folder} holds another run: {shown}. {_ELSEWHERE}, or {resume_line(folder)}")
    elif resumes and record.storage is None and holds_study(folder):
        return
    elif os.path.lexists(folder) and not _is_free(folder):
        raise FolderTaken(f"{folder} holds files that are no run: choose another output folder")
    else:
        _check_writable(folder)


def _check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be made, or that cannot be written to."""
    nearest = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    if not nearest.is_dir():
        raise IllegalInput(f"cannot write {folder}: {nearest} is not a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise IllegalInput(f"cannot write {folder}: {nearest} does not allow it")


def claim_folder(folder: Path, record: RunRecord, *, force: bool, resumes: bool = False) -> None:
    """Take a folder for a run; with `force` what stands there is removed, but not the record of opened test rows."""
    check_folder(folder, record, force=force, resumes=resumes)
    if (folder / RUN).is_file() and not force:
        known = RunRecord.read(folder)
        if known.pipeline != record.pipeline:  # what only says how far may have changed
            replace(known, pipeline=record.pipeline).write(folder)
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if force:
            _clear(folder, {RUN, FINAL, LOCK})  # the record is replaced last: a run half removed is still known for one
        for stage in record.pipeline["stages"].values():
            space = stage.get("space")
            if isinstance(space, str) and (file := own_file(space)) is not None:
                trust(file)  # who makes a run has named its file
        record.write(folder)
    except OSError as error:
        raise IllegalInput(f"cannot write {folder}: {error.strerror or error}") from None


def _is_free(folder: Path) -> bool:
    """Tell whether a run may be made in a folder: it is empty, or a kill left a database without a study in it."""
    if not folder.is_dir():
        return False
    names = {path.name for path in folder.iterdir() if not path.name.startswith(f".{RUN}")} - {LOCK}
    if not names:
        return True
    if any(not name.startswith(DATABASE) for name in names) or DATABASE not in names:
        return False
    return not holds_study(folder)


def _clear(folder: Path, kept: set[str]) -> None:
    for entry in folder.iterdir():
        if entry.name in kept:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def clear_drafts(run: StageRun) -> None:
    """Remove what a kill left half written in the folder of a stage: names that begin with a dot."""
    for entry in list(run.folder.rglob(".*")):
        if entry.name != LOCK and entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name != LOCK:
            entry.unlink(missing_ok=True)


def mark_done(run: StageRun, key: str) -> None:
    """Record that a stage is done: its key, and the checksums of what it wrote."""
    write_json(run.folder / DONE, {"key": key, "files": _checksums(run.folder)})
    shutil.rmtree(run.checkpoints, ignore_errors=True)


def is_done(run: StageRun, key: str) -> bool:
    """Tell whether a stage is done with this key, and its files are as they were written.

    One that is damaged, or was made with other options, is made again.
    """
    try:
        facts = loads(read_regular(run.folder / DONE))
        if facts["key"] == key and facts["files"] == _checksums(run.folder):
            shutil.rmtree(run.checkpoints, ignore_errors=True)  # also what a kill after marking left
            return True
        detail = "was made with other options or inputs" if facts["key"] != key else "is damaged"
        run.tell(f"the artifact of the stage {run.name} {detail}: it is made again")
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError, TypeError):
        run.tell(f"the record of the stage {run.name} cannot be read: the stage runs again")
    shutil.rmtree(run.folder, ignore_errors=True)
    return False


def _checksums(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != DONE and not path.name.startswith("."):
            with path.open("rb") as file:
                found[str(path.relative_to(folder))] = hashlib.file_digest(file, "sha256").hexdigest()
    return found
