"""How the rim of the house writes files. The pure packages, this one's other modules among them, write none."""

import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file, all of it or nothing; raise OSError where that fails. Text is written as UTF-8."""
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():  # a device or a pipe is written to, and never replaced
        path.write_bytes(data)
        return
    target = Path(os.path.realpath(path))  # what a link points to is replaced, and the link stays
    draft = target.with_name(f".{target.name[:200]}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
