"""Write a tokenizer into a model folder, whatever its form."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.nn.hf.checkpoint_files import read_json, write_json

_ROLES = {
    "pad_token": ("[PAD]", "<pad>"),
    "unk_token": ("[UNK]", "<unk>"),
    "cls_token": ("[CLS]", "<s>"),
    "sep_token": ("[SEP]", "</s>"),
    "mask_token": ("[MASK]", "<mask>"),
}


def write_tokenizer(tokenizer: Any, folder: Path, length: int | None, types: int = 0) -> int | None:
    """Write a tokenizer's files and return the number of its padding token, if it has one.

    `tokenizer` is one of transformers, one of the tokenizers library, or the files of one. `length` is the number of
    tokens that the model reads, `types` how many kinds of sentences it tells apart.
    """
    if hasattr(tokenizer, "save_pretrained"):
        tokenizer.save_pretrained(folder)
    elif hasattr(tokenizer, "save") and hasattr(tokenizer, "token_to_id"):
        tokenizer.save(str(folder / "tokenizer.json"))
        write_json(folder / "tokenizer_config.json", _description(tokenizer, length, types))
    elif isinstance(tokenizer, Iterable) and not isinstance(tokenizer, str):
        _copy(tokenizer, folder)
    else:
        raise IllegalInput(f"a {type(tokenizer).__name__} is no tokenizer that can be saved")
    return token_numbers(folder, ["pad_token"]).get("pad_token")


def _description(tokenizer: Any, length: int | None, types: int) -> dict[str, Any]:
    """Return transformers which tokens have which role, and what the model reads; the library does not record it."""
    found = {
        role: [name for name in names if tokenizer.token_to_id(name) is not None] for role, names in _ROLES.items()
    }
    roles = {role: names[0] for role, names in found.items() if names}
    # left to itself, transformers gives no types, and a model that learnt pairs by them reads two sentences as one
    read = ["input_ids", *(["token_type_ids"] if types > 1 else []), "attention_mask"]
    most = {"model_max_length": length} if length else {}
    return {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": read, **most, **roles}


def _copy(files: Iterable[str | Path], folder: Path) -> None:
    for file in map(Path, files):
        try:
            shutil.copyfile(file, folder / file.name)
        except OSError as error:
            raise IllegalInput(f"cannot copy the tokenizer's {file}: {error.strerror or error}") from None


def token_numbers(folder: Path, roles: Iterable[str] = tuple(_ROLES)) -> dict[str, int]:
    """Return the numbers of the tokens of a folder's tokenizer that have a role, such as `pad_token`."""
    config, tokenizer = folder / "tokenizer_config.json", folder / "tokenizer.json"
    if not (config.is_file() and tokenizer.is_file()):
        return {}
    said = read_json(config)
    names = {role: said.get(role) for role in roles}
    # older files describe a token instead of naming it
    named = {role: name.get("content") if isinstance(name, dict) else name for role, name in names.items()}
    added = {token.get("content"): token["id"] for token in read_json(tokenizer).get("added_tokens", [])}
    return {role: added[name] for role, name in named.items() if name in added}


def describe(folder: Path, **fields: Any) -> None:
    """Return transformers more of how a folder's tokenizer is used, where it has one that is described."""
    path = folder / "tokenizer_config.json"
    if path.is_file():
        write_json(path, read_json(path) | fields)


def leave_open(folder: Path) -> None:
    """Make a BERT-style tokenizer add no end token, so that a model can continue the text."""
    path = folder / "tokenizer.json"
    content = read_json(path) if path.is_file() else {}
    frame = content.get("post_processor")
    if not isinstance(frame, dict) or frame.get("type") != "BertProcessing":
        return
    tokens = {name: {"id": name, "ids": [number], "tokens": [name]} for name, number in (frame["cls"], frame["sep"])}
    begin, between = ({"SpecialToken": {"id": name, "type_id": 0}} for name in tokens)
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    template = {"single": [begin, first], "pair": [begin, first, between, second], "special_tokens": tokens}
    write_json(path, content | {"post_processor": {"type": "TemplateProcessing", **template}})
