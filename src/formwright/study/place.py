"""Where studies live: a folder with a database in it, or a folder and a server."""

import json
import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from formwright.core.checks import folder_name
from formwright.core.codec import loads
from formwright.core.errors import IllegalInput
from formwright.core.files import read_regular
from formwright.study.config import GO_ON_FROM_OTHERS, Config
from formwright.study.log import Log
from formwright.study.spaces import own_file, trust
from formwright.study.store import Store, StoreError

CONFIG = "config.json"
DATABASE = "study.db"


@dataclass(frozen=True)
class Place:
    """Say where a study is: its folder, for weights and models, and the database and name of its log."""

    folder: Path
    storage: str
    name: str

    def __post_init__(self) -> None:
        """Refuse a name that could lead out of a folder."""
        folder_name("a study", self.name)

    def open(self, *, wait: bool = False, update: bool = False) -> "Opened":
        """Open the log and read the configuration that stands in it.

        `wait` for a server that is away for a moment; `update` a database of an earlier version.
        """
        store = Store.open(self.storage, wait=wait, update=update)
        try:
            log = store.study(self.name)
            config = Config.from_json(log.config).seen_from(self.folder)
            return Opened(self, store, log, _as_extended(config, log))
        except BaseException:
            store.close()
            raise


@dataclass(frozen=True)
class Opened:
    """A study's place, its open store and log, and its configuration."""

    place: Place
    store: Store
    log: Log
    config: Config

    def __enter__(self) -> "Opened":
        return self

    def make_folder(self) -> None:
        """Make the folder of a study that is named by a URL where there is none yet.

        Refuse that where the study cannot go on without what is in the folder that it was begun with.
        """
        folder = self.place.folder
        if folder.is_dir():
            return
        if needed := self._needed():
            raise IllegalInput(
                f"there is no folder {folder}, and {self.place.name} needs {needed} of the folder that it was begun "
                "with: name that with --folder, as seen from this machine"
            )
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise IllegalInput(f"cannot make {folder}: {error.strerror or error}; name another --folder") from None

    def _needed(self) -> str:
        """Say what earlier work has left in the folder that later work needs; empty where that is nothing."""
        if self.config.weights is not None:
            return "the super-network"
        kept = [event for event in self.log.read() if event.data.get("observation", {}).get("artifacts")]
        return f"the weights of its {len(kept)} trials" if kept and self.config.evaluator in GO_ON_FROM_OTHERS else ""

    def __exit__(self, *_: object) -> None:
        self.store.close()


def create(
    folder: Path, config: Config, storage: str | None = None, name: str | None = None, beside: Collection[str] = ()
) -> Place:
    """Make a new study; a folder that holds one already, or other files than those named `beside`, is refused.

    The path of a database file elsewhere is kept whole, so that the study is found from any folder.
    """
    if not _is_free(folder, beside):
        if (folder / CONFIG).is_file() or (folder / DATABASE).is_file():
            go_on = f"go on with it by `formwright resume {folder}`, or name another folder with --out"
            raise IllegalInput(f"{folder} holds a study already: {go_on}")
        raise IllegalInput(f"{folder} is not an empty folder: name another one with --out")
    name = name or folder.resolve().name
    try:
        with Store.open(storage or folder / DATABASE, create=True) as store:
            store.create_study(name, config.to_json())  # first: a name that is taken leaves no folder behind
            if storage and "://" not in store.place:
                storage = str(Path(store.place).absolute())
        folder.mkdir(parents=True, exist_ok=True)
        if (file := own_file(config.space)) is not None:
            trust(file)  # who makes a study has named its file
        facts = {"storage": storage or None, "name": name, "config": config.to_json()}
        _write(folder / CONFIG, json.dumps(facts, indent=1))
    except StoreError:
        raise
    except OSError as error:
        raise IllegalInput(f"cannot write {folder}: {error.strerror or error}") from None
    return Place(folder, storage or str(folder / DATABASE), name)


def find(source: str, folder: Path | None = None, *, wait: bool = False, update: bool = False) -> Place:
    """Find a study by its folder, or by the URL of a database and, behind `#`, its name.

    A study that is named by a URL keeps its weights in `folder`, by default one of its name. `wait` and `update` are
    those of `Place.open`.
    """
    if "://" in source:
        url, _, name = source.partition("#")
        name = name or _only_name(url, wait, update)
        return Place(folder or Path(name), url, name)
    # others may read a study, but not its configuration, which may hold a password
    if not _is_readable(Path(source) / CONFIG) and (Path(source) / DATABASE).is_file():
        return Place(Path(source), database := str(Path(source) / DATABASE), _only_name(database, wait, update))
    facts = _read(Path(source))
    return Place(Path(source), facts["storage"] or str(Path(source) / DATABASE), facts["name"])


def holds_study(folder: Path) -> bool:
    """Tell whether a folder holds a study, even one that a kill left without its file."""
    if (folder / CONFIG).is_file() or not (folder / DATABASE).is_file():
        return (folder / CONFIG).is_file()
    with Store.open(folder / DATABASE, create=True) as store:
        return bool(store.studies())


def _is_free(folder: Path, beside: Collection[str]) -> bool:
    """Tell whether a study may be made in a folder: it is empty, or a kill left a database without a study in it."""
    if not folder.exists():
        return True
    if not folder.is_dir():
        return False
    names = [path.name for path in folder.iterdir() if path.name not in beside]
    if DATABASE not in names or any(not name.startswith(DATABASE) for name in names):
        return not names
    return not holds_study(folder)


def _as_extended(config: Config, log: Log) -> Config:
    """Give the configuration with the end and the device that the last runs of the study were told."""
    noted: dict[str, Any] = {}
    for event in log.read():
        if event.kind == "started":
            noted |= {name: event.data[name] for name in ("stop", "device") if name in event.data}
    if "device" in noted:
        config = replace(config, training=replace(config.training, device=noted["device"]))
    return replace(config, stop=replace(config.stop, **noted["stop"])) if "stop" in noted else config


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


def _read(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    if not folder.is_dir() or not path.is_file():
        raise IllegalInput(f"{folder} is not the folder of a study: it has no {CONFIG}")
    try:
        facts = loads(read_regular(path))
    except (OSError, ValueError) as error:
        raise IllegalInput(f"cannot read {path}: {error}{_way_out(folder)}") from None
    match facts:
        case {"storage": str() | None as storage, "name": str(name)}:
            return {"storage": storage, "name": name}
        case {"architectures": _}:  # of Hugging Face, which uses the same name
            told = f"`formwright measure {folder}` tells of it, and the folder of its study shows the design"
            raise IllegalInput(f"{folder} holds a model, not a study: {told}")
    needed = "that of a study has a 'storage', text or null, and a 'name'"
    raise IllegalInput(f"cannot read {path}: {needed}{_way_out(folder)}")


def _way_out(folder: Path) -> str:
    return f". Mend it, or remove it: {DATABASE} holds the study" if (folder / DATABASE).is_file() else ""


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)  # a URL may hold a password
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
