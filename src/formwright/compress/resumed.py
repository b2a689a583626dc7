"""A compression whose search is gone on with as a study: by one process at a time, once its super-network is there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from formwright.compress.folders import RECORD, Folders
from formwright.core.errors import IllegalInput
from formwright.study.alone import alone_in
from formwright.study.place import Place


@contextmanager
def alone_if_compressed(place: Place) -> Iterator[None]:
    """Hold the folder of a compression, as the command that made it does; other studies bear several at once.

    Refuse one in which another process works, and one that is not trained yet.
    """
    if not (place.folder / RECORD).is_file():
        yield
        return
    with alone_in(place.folder, wait=False):
        refuse_untrained(place.folder)
        yield


def refuse_untrained(folder: Path) -> None:
    """Refuse a compression whose sub-networks cannot be judged yet: it has no study."""
    if (folder / RECORD).is_file() and not Folders(folder).network.is_dir():
        raise IllegalInput(
            f"the super-network in {folder} is not trained yet: go on with the `formwright compress` line that began it"
        )
