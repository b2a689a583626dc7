"""Where the study of a run is, and the study opened: its log, its space, and the stages that search and deliver."""

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.core.checks import folder_name
from formwright.core.errors import IllegalInput
from formwright.core.options import Stage
from formwright.core.records import History
from formwright.pipeline.designs import readable_space
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun, StageRun
from formwright.pipeline.run_folder import DATABASE, RUN, RunRecord, resume_line
from formwright.space.space import Space
from formwright.space.zoo import CARDS, SPACES
from formwright.study.replay import Replay
from formwright.study.store import Log, Store, StoreError
from formwright.study.study import StudySetup

if TYPE_CHECKING:
    from formwright.pipeline.deliver import Deliver
    from formwright.pipeline.search import Search


@dataclass(frozen=True)
class Place:
    """Say where a study is: its folder, for weights and models, and the database and name of its log."""

    folder: Path
    storage: str
    name: str

    def __post_init__(self) -> None:
        folder_name("a study", self.name)

    @property
    def typed_folder(self) -> str:
        """Return the folder as it is typed: `./hat`, where `hat` alone would mean a published space or design."""
        name = str(self.folder)
        return f"./{name}" if name in SPACES.names() or name in CARDS.names() else name

    def open(self, *, wait: bool = False, update: bool = False, run: PipelineRun | None = None) -> "Opened":
        """Open the log and read the configuration that stands in it, unless the `run` is at hand.

        `wait` for a server that is away for a moment; `update` a database of an earlier version.
        """
        store = Store.open(self.storage, wait=wait, update=update)
        try:
            return Opened(self, store, store.study(self.name), run)
        except BaseException:
            store.close()
            raise

    def create(self, pipeline: Pipeline, stage: str) -> None:
        """Make the study of a stage in the database unless it is there already."""
        config = {**pipeline.to_json(whole=True), "stage": stage}
        try:
            with Store.open(self.storage, create=True) as store:
                if self.name not in store.studies():
                    store.create_study(self.name, config)
        except StoreError:
            raise
        except OSError as error:
            raise IllegalInput(f"cannot write {self.folder}: {error.strerror or error}") from None


@dataclass(frozen=True, eq=False)
class Opened:
    """A study's place, its open store and log, and the stages that search and deliver."""

    place: Place
    store: Store
    log: Log
    given: PipelineRun | None = None

    @cached_property
    def run(self) -> PipelineRun:
        """Give the run that the study is a stage of; its objects are at hand, or read from the log."""
        if self.given is not None:
            return self.given
        data = {key: value for key, value in self.log.config.items() if key != "stage"}
        return PipelineRun(Pipeline.from_json(data), self.place.folder, storage=self.place.storage)

    @property
    def pipeline(self) -> Pipeline:
        return self.run.pipeline

    @property
    def stage_name(self) -> str:
        return str(self.log.config.get("stage", "search"))

    @cached_property
    def here(self) -> StageRun:
        return StageRun(self.run, self.search, self.stage_name)

    def study(self) -> StudySetup:
        return self.search.study(self.here, self.log, self.place.folder)

    def history(self) -> History:
        return Replay.of(self.log.read(), self.space).history

    @cached_property
    def space(self) -> Space | None:
        """Find the space without running any code; None where that would take a file or a program of the user's own."""
        source = self.search.space
        if isinstance(source, Stage):
            return self.search.found_space(self.here)
        return source if isinstance(source, Space) else readable_space(source) if isinstance(source, str) else None

    @cached_property
    def search(self) -> "Search":
        """Give the stage of the study, with the end and the device that its last runs were given."""
        found: Any = self.pipeline.named[self.stage_name]
        noted: dict[str, Any] = {}
        for event in self.log.read():
            if event.kind == "started":
                noted |= {name: event.data[name] for name in ("stop", "device") if name in event.data}
        if "device" in noted:
            found = replace(found, training=replace(found.training, device=noted["device"]))
        return replace(found, stop=replace(found.stop, **noted["stop"])) if "stop" in noted else found  # type: ignore[no-any-return]

    @cached_property
    def deliver(self) -> "Deliver":
        """Give the stage that delivers the study's designs."""
        from formwright.pipeline.deliver import Deliver

        own = self.pipeline.named[self.stage_name]
        found = [stage for stage in self.pipeline.of_kind(Deliver) if stage.search is own]
        return (found[0] if found else Deliver(own)).within_targets(self.here)  # type: ignore[arg-type]

    def again(self) -> "Opened":
        """Give the study as its log is now: a run that begins may have noted another end or device."""
        return Opened(self.place, self.store, self.log, self.given)

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def make_folder(self) -> None:
        """Make the folder of a study that is named by a URL where there is none yet.

        Refuse that where the study cannot be resumed without the files in the folder that it was started with.
        """
        folder = self.place.folder
        if folder.is_dir():
            return
        if needed := self._needed():
            raise IllegalInput(
                f"there is no folder {folder}, and {self.place.name} needs {needed} of the folder that it was started "
                "with: name that folder, as seen from this machine"
            )
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise IllegalInput(f"cannot make {folder}: {error.strerror or error}; name another folder") from None

    def _needed(self) -> str:
        """Say what earlier work has left in the folder that later work needs; empty where that is nothing."""
        before = [name for name in self.pipeline.named if name != self.stage_name]
        stages = [name for name in before if not getattr(self.pipeline.named[name], "CONCURRENT", False)]
        if stages:
            return f"what its stages made ({', '.join(stages)})"
        kept = [event for event in self.log.read() if event.data.get("observation", {}).get("artifacts")]
        reads = getattr(self.search.evaluator, "READS_TRIALS", True)
        return f"the weights of its {len(kept)} trials" if kept and reads else ""


def study_place(run: StageRun) -> Place:
    from formwright.pipeline.search import Search

    out, pipeline = run.run.out, run.run.pipeline
    name = run.run.study_name or folder_name("a study", out.resolve().name)
    return _place(out, run.run.storage, name, run.name, len(pipeline.of_kind(Search)) == 1)


def _first_study(folder: Path, record: "RunRecord") -> Place:
    from formwright.pipeline.search import Search

    known = Stage.registry()
    kinds = {name: str(stage.get("stage")) for name, stage in record.pipeline["stages"].items()}
    searches = [name for name, kind in kinds.items() if kind in known.names() and issubclass(known.get(kind), Search)]
    if not searches:
        raise IllegalInput(f"{folder} holds a run that searches nothing, so that it has no study")
    return _place(folder, record.storage, record.name or folder.resolve().name, searches[0], len(searches) == 1)


def _place(out: Path, storage: str | None, name: str, stage: str, alone: bool) -> Place:
    """Say where the study of a stage is; the only search of a run keeps its files in the run's own folder."""
    where = (out, name) if alone else (out / stage, f"{name}.{stage}")
    return Place(where[0], storage or str(out / DATABASE), where[1])


def absolute_storage(storage: str | None) -> str | None:
    """Give the database of a run such that it is found from any folder; a file of SQLite becomes its path."""
    file = (storage or "").removeprefix("sqlite:///")
    return str(Path(file).absolute()) if file and "://" not in file else storage


def find(source: str, folder: Path | None = None, *, wait: bool = False, update: bool = False) -> Place:
    """Find a study by its folder, or by the URL of a database and, behind `#`, its name.

    A study that is named by a URL keeps its weights in `folder`, by default one of its name. `wait` and `update` are
    those of `Place.open`.
    """
    if "://" in source:
        url, _, name = source.partition("#")
        name = name or _only_name(url, wait, update)
        return Place(folder or Path(name), url, name)
    # others may read a study, but not its record, which may hold a password
    if not _is_readable(Path(source) / RUN) and (Path(source) / DATABASE).is_file():
        return Place(Path(source), database := str(Path(source) / DATABASE), _only_name(database, wait, update))
    record = RunRecord.read(Path(source))
    place = _first_study(Path(source), record)
    if not record.storage and not (Path(source) / DATABASE).is_file():
        raise IllegalInput(f"{source} holds a run without a study yet: {resume_line(Path(source))}")
    return place


def _is_readable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids)


def _only_name(url: str, wait: bool, update: bool) -> str:
    with Store.open(url, wait=wait, update=update) as store:
        names, shown = store.studies(), store.place  # without a password
    if not names:
        raise IllegalInput(f"{shown} holds no studies yet: start one with `formwright search`")
    if len(names) != 1:
        raise IllegalInput(f"{shown} holds {len(names)} studies ({', '.join(names)}); say which: {shown}#NAME")
    return names[0]
