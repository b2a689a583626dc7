"""Keep vocabularies in files, so that a tokeniser is trained once for each text."""

import hashlib
import json
import os
import tempfile
from pathlib import Path

from formwright.core.codec import loads
from formwright.core.errors import IllegalInput


def store_words(file: Path, words: tuple[str, ...]) -> None:
    """Write a vocabulary at once or not at all; folders that are missing are made."""
    content = json.dumps({"digest": _digest(words), "words": words}).encode()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # a name of its own, because two processes may write the same vocabulary at the same time
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    except OSError as error:
        raise IllegalInput(f"cannot keep a vocabulary in {file.parent}: {error.strerror or error}") from None
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(name, file)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise IllegalInput(f"cannot keep a vocabulary in {file}: {error.strerror or error}") from None


def load_words(file: Path) -> tuple[str, ...] | None:
    """Read a vocabulary; give None where there is none, or where its content is not what was written."""
    try:
        data = loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    words = data.get("words") if isinstance(data, dict) else None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return None
    return tuple(words) if data.get("digest") == _digest(tuple(words)) else None


def _digest(words: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()
