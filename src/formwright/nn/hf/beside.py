"""What stands next to the weights in every form of a folder: how rows are read, and on which rows it was judged."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.nn.heads import HeadSpec
from formwright.nn.hf.files import as_json, read_json, write_json
from formwright.nn.hf.preprocessor import write_preprocessor
from formwright.nn.hf.tokenizers import describe
from formwright.nn.seal import write_sealed

EVALUATION = "evaluation.json"
LENGTH = "input_length"  # in config.json: the maximum number of tokens in a row that the model was trained with
_MOST_BEAMS = 1024
_IN_PIECES = ("masked-lm", "causal-lm")  # their texts are divided, never cut, so that any length will do


def write_beside(folder: Path, card: Card, evaluation: Mapping[str, Any] | None) -> None:
    """Write how pictures are prepared, and what is known of the evaluation of a model."""
    write_preprocessor(card, folder)
    if evaluation is not None:
        write_json(folder / EVALUATION, evaluation)


def write_evaluation(folder: Path, evaluation: Mapping[str, Any]) -> None:
    """Replace what a sealed folder says of the evaluation of its model."""
    write_sealed(folder / EVALUATION, as_json(evaluation))


def read_evaluation(folder: Path) -> dict[str, Any] | None:
    """Read what a folder says of the evaluation of its model; None where it says nothing."""
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


def told_evaluation(evaluation: Mapping[str, Any] | None) -> dict[str, str]:
    """Say in a model card how to read rows as they were read, and where the rows of the scores are listed."""
    if evaluation is None:
        return {}
    length = evaluation.get("length")
    rows = f"at most {length} tokens a row: `tokenizer(..., truncation=True)`; " if length else ""
    return {"repeat the scores": f"{rows}rows and settings in {EVALUATION}, or `formwright evaluate FOLDER`"}


def length_fields(spec: HeadSpec | None, evaluation: Mapping[str, Any] | None, folder: Path) -> dict[str, int]:
    """Say in a configuration how long the rows of a model are, and let the folder's tokenizer cut them there."""
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
    """Tell whether this describes rows (how many, and their digest) or labels (their digest)."""
    if isinstance(value, Mapping):
        return isinstance(value.get("rows"), int) and isinstance(value.get("sha256"), str)
    return value is None or isinstance(value, str)


def _are_numbers(scores: Any) -> bool:
    return isinstance(scores, Mapping) and all(isinstance(value, int | float) for value in scores.values())


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_LOADING: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("name", "data", "label", "kind"), _is_text),
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
