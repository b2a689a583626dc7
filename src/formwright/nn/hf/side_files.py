"""The files next to the weights of a model folder: tokenizer, image preprocessing, and how the model was evaluated."""

import shutil
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding
from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalInput
from formwright.nn.hf.bundled_code import write_frame_extractor, write_image_processor
from formwright.nn.hf.checkpoint_files import as_json, read_json, write_json
from formwright.nn.hf.model_folder import replace_file

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
        write_json(folder / "tokenizer_config.json", _tokenizer_description(tokenizer, length, types))
    elif isinstance(tokenizer, Iterable) and not isinstance(tokenizer, str):
        for file in map(Path, tokenizer):
            try:
                shutil.copyfile(file, folder / file.name)
            except OSError as error:
                raise IllegalInput(f"cannot copy the tokenizer's {file}: {error.strerror or error}") from None
    else:
        raise IllegalInput(f"a {type(tokenizer).__name__} is no tokenizer that can be saved")
    return token_numbers(folder, ["pad_token"]).get("pad_token")


def _tokenizer_description(tokenizer: Any, length: int | None, types: int) -> dict[str, Any]:
    """Say which tokens have which role, and what the model reads; the tokenizers library does not record it."""
    found = {
        role: [name for name in names if tokenizer.token_to_id(name) is not None] for role, names in _ROLES.items()
    }
    roles = {role: names[0] for role, names in found.items() if names}
    # left to itself, transformers gives no types, and a model that learnt pairs by them reads two sentences as one
    read = ["input_ids", *(["token_type_ids"] if types > 1 else []), "attention_mask"]
    most = {"model_max_length": length} if length else {}
    return {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": read, **most, **roles}


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
    """Set fields of the configuration of a folder's tokenizer, where it has one."""
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


PREPROCESSOR = "preprocessor_config.json"
_COLOURS = 3  # channels that the stock processor gives


def _image_description(embedding: PatchEmbedding) -> dict[str, Any]:
    size = {"height": embedding.image, "width": embedding.image}
    if embedding.channels != _COLOURS:
        return {
            "image_processor_type": "FormwrightImageProcessor",
            "auto_map": {"AutoImageProcessor": "formwright_nn_hf_image_processor.FormwrightImageProcessor"},
            "size": size,
            "num_channels": embedding.channels,
        }
    return {
        "image_processor_type": "ViTImageProcessor",
        "size": size,
        "do_convert_rgb": True,
        "do_resize": True,
        "resample": 2,  # PIL's bilinear
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": False,
    }


EVALUATION = "evaluation.json"
LENGTH = "input_length"  # in config.json: the maximum number of tokens of a training row
_MOST_BEAMS = 1024


def write_side_files(folder: Path, card: Card, evaluation: Mapping[str, Any] | None) -> None:
    """Write the evaluation of a model, and what prepares the images or frames that it reads.

    A preprocessing that came with the model is kept; without one, pixels are values from 0 to 1.
    """
    embedding = card.stacks[0].embedding
    if embedding.TYPE in _PREPROCESSORS:
        _PREPROCESSORS[embedding.TYPE](folder, embedding, evaluation or {})
    if evaluation is not None:
        write_json(folder / EVALUATION, evaluation)


def _write_for_images(folder: Path, embedding: PatchEmbedding, evaluation: Mapping[str, Any]) -> None:
    if embedding.channels != _COLOURS:
        write_image_processor(folder)
    if not (folder / PREPROCESSOR).exists():
        write_json(folder / PREPROCESSOR, _image_description(embedding))


def _write_for_frames(folder: Path, embedding: FrameEmbedding, evaluation: Mapping[str, Any]) -> None:
    write_frame_extractor(folder)
    length, path = evaluation.get("length"), folder / PREPROCESSOR
    if length and path.is_file():
        write_json(path, read_json(path) | {"max_length": length})


# tokens are prepared by the tokeniser
_PREPROCESSORS: dict[str, Callable[..., None]] = {"patches": _write_for_images, "frames": _write_for_frames}


def write_evaluation(folder: Path, evaluation: Mapping[str, Any]) -> None:
    """Replace the evaluation in a finished folder."""
    replace_file(folder / EVALUATION, as_json(evaluation))


def read_evaluation(folder: Path) -> dict[str, Any] | None:
    path = folder / EVALUATION
    if not path.is_file():
        return None
    found = read_json(path)
    wrong = [name for name, is_right in _FIELDS.items() if not is_right(found.get(name))]
    if wrong:
        raise IllegalInput(
            f"{path} is damaged ({', '.join(wrong)}): expected the task, the data and the scores of an evaluation"
        )
    return found


def evaluation_summary(card: Card, evaluation: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the line of a model card that says how to repeat the scores."""
    if evaluation is None:
        return {}
    length, unit = evaluation.get("length"), card.stacks[0].embedding.TYPE
    rows = f"at most {length} {unit} a row: `prepare(..., truncation=True)`; " if length else ""
    return {"repeat the scores": f"{rows}rows and settings in {EVALUATION}, or `formwright evaluate FOLDER`"}


def length_fields(spec: HeadSpec | None, evaluation: Mapping[str, Any] | None, folder: Path) -> dict[str, int]:
    """Return the row length for a configuration, and set it as the truncation length of the folder's tokenizer."""
    length = None if evaluation is None else evaluation.get("length")
    if not isinstance(length, int) or spec is None or spec.plain_text:
        return {}
    describe(folder, model_max_length=length)
    return {LENGTH: length}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_part(value: Any) -> bool:
    """Return whether this describes rows (how many, and their digest) or labels (their digest)."""
    if isinstance(value, Mapping):
        return isinstance(value.get("rows"), int) and isinstance(value.get("sha256"), str)
    return value is None or isinstance(value, str)


def _are_all(is_right: Callable[[Any], bool], value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(is_right, value.values()))


_LOADING: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("name", "data", "label", "kind", "series"), lambda value: isinstance(value, str)),
    "text": _are_names,
    "official_dev": lambda value: isinstance(value, bool),
    "frames": lambda value: isinstance(value, Mapping),
    "rows": _is_count,
}  # the arguments that load a task, and what each may be
_FIELDS: dict[str, Callable[[Any], bool]] = {
    "task": lambda value: (
        isinstance(value, Mapping)
        and all(name in _LOADING and (given is None or _LOADING[name](given)) for name, given in value.items())
    ),
    "data": partial(_are_all, _is_part),
    "scores": partial(
        _are_all, lambda found: found is None or _are_all(lambda one: isinstance(one, int | float), found)
    ),
    "beams": lambda value: value is None or (_is_count(value) and value <= _MOST_BEAMS),
    "columns": lambda value: value is None or _are_names(value),
}  # what of an evaluation is read again, and what each may be
