"""The files next to the weights of a model folder: image preprocessing, and how the model was evaluated."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from formwright.arch.card import Card
from formwright.arch.layers import PatchEmbedding
from formwright.core.errors import IllegalInput
from formwright.nn.hf.bundled_code import write_image_processor
from formwright.nn.hf.checkpoint_files import as_json, read_json, write_json
from formwright.nn.hf.model_folder import replace_file
from formwright.nn.hf.tokenizer_files import describe
from formwright.nn.task_model import HeadSpec

PREPROCESSOR = "preprocessor_config.json"
_COLOURS = 3  # channels that the stock processor gives


def write_preprocessor(card: Card, folder: Path) -> None:
    """Write the preprocessing of the images that a design reads: values from 0 to 1, as in our tasks.

    A file that came with the model is kept.
    """
    embedding = card.stacks[0].embedding
    if not isinstance(embedding, PatchEmbedding):
        return
    if embedding.channels != _COLOURS:
        write_image_processor(folder)
    if not (folder / PREPROCESSOR).exists():
        write_json(folder / PREPROCESSOR, _description(embedding))


def _description(embedding: PatchEmbedding) -> dict[str, Any]:
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
_IN_PIECES = ("masked-lm", "causal-lm")  # their texts are divided, never cut, so that any length will do


def write_side_files(folder: Path, card: Card, evaluation: Mapping[str, Any] | None) -> None:
    """Write the image preprocessing and the evaluation of a model."""
    write_preprocessor(card, folder)
    if evaluation is not None:
        write_json(folder / EVALUATION, evaluation)


def write_evaluation(folder: Path, evaluation: Mapping[str, Any]) -> None:
    """Replace the evaluation in a finished folder."""
    replace_file(folder / EVALUATION, as_json(evaluation))


def read_evaluation(folder: Path) -> dict[str, Any] | None:
    """Read the evaluation in a folder; None if there is none."""
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


def evaluation_summary(evaluation: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the line of a model card that says how to repeat the scores."""
    if evaluation is None:
        return {}
    length = evaluation.get("length")
    rows = f"at most {length} tokens a row: `tokenizer(..., truncation=True)`; " if length else ""
    return {"repeat the scores": f"{rows}rows and settings in {EVALUATION}, or `formwright evaluate FOLDER`"}


def length_fields(spec: HeadSpec | None, evaluation: Mapping[str, Any] | None, folder: Path) -> dict[str, int]:
    """Return the row length for a configuration, and set it as the truncation length of the folder's tokenizer."""
    length = None if evaluation is None else evaluation.get("length")
    if not isinstance(length, int) or spec is None or spec.task in _IN_PIECES:
        return {}
    describe(folder, model_max_length=length)
    return {LENGTH: length}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_task(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        name in _LOADING and (given is None or _LOADING[name](given)) for name, given in value.items()
    )


def _is_part(value: Any) -> bool:
    """Return whether this describes rows (how many, and their digest) or labels (their digest)."""
    if isinstance(value, Mapping):
        return isinstance(value.get("rows"), int) and isinstance(value.get("sha256"), str)
    return value is None or isinstance(value, str)


def _are_numbers(scores: Any) -> bool:
    return isinstance(scores, Mapping) and all(isinstance(value, int | float) for value in scores.values())


_LOADING: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("name", "data", "label", "kind"), lambda value: isinstance(value, str)),
    "text": _are_names,
    "official_dev": lambda value: isinstance(value, bool),
    "rows": _is_count,
}  # the arguments that load a task, and what each may be
_FIELDS: dict[str, Callable[[Any], bool]] = {
    "task": _is_task,
    "data": lambda value: isinstance(value, Mapping) and all(map(_is_part, value.values())),
    "scores": lambda value: isinstance(value, Mapping) and all(v is None or _are_numbers(v) for v in value.values()),
    "beams": lambda value: value is None or (_is_count(value) and value <= _MOST_BEAMS),
    "columns": lambda value: value is None or _are_names(value),
}  # what of an evaluation is read again, and what each may be
