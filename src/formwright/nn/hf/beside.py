"""What stands beside the weights in every form of a folder: how rows are read, and on which rows it was judged."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.nn.heads import HeadSpec
from formwright.nn.hf.files import read_json, write_json
from formwright.nn.hf.preprocessor import write_preprocessor
from formwright.nn.hf.tokenizers import describe

EVALUATION = "evaluation.json"
LENGTH = "input_length"  # in config.json: the maximum number of tokens in a row that the model was trained with
_IN_PIECES = ("masked-lm", "causal-lm")  # their texts are divided, never cut, so that any length will do


def write_beside(folder: Path, card: Card, evaluation: Mapping[str, Any] | None) -> None:
    """Write how pictures are prepared, and what is known of the evaluation of a model."""
    write_preprocessor(card, folder)
    if evaluation is not None:
        write_json(folder / EVALUATION, evaluation)


def read_evaluation(folder: Path) -> dict[str, Any] | None:
    """Read what a folder says of the evaluation of its model; None where it says nothing."""
    path = folder / EVALUATION
    if not path.is_file():
        return None
    found = read_json(path)
    scores = found.get("scores")
    whole = isinstance(scores, Mapping) and all(isinstance(found.get(name), Mapping) for name in ("task", "data"))
    if not whole or not all(one is None or _are_numbers(one) for one in scores.values()):
        raise IllegalInput(f"{path} is damaged: expected the task, the data and the scores of an evaluation")
    return found


def told_evaluation(evaluation: Mapping[str, Any] | None) -> dict[str, str]:
    """Say in a model card how to read rows as they were read, and where the rows of the scores are listed."""
    if evaluation is None:
        return {}
    length = evaluation.get("length")
    rows = f"at most {length} tokens a row: `tokenizer(..., truncation=True)`; " if length else ""
    return {"repeat the scores": f"{rows}rows and settings in {EVALUATION}, or `formwright evaluate FOLDER`"}


def _are_numbers(scores: Any) -> bool:
    return isinstance(scores, Mapping) and all(isinstance(value, int | float) for value in scores.values())


def length_fields(spec: HeadSpec | None, evaluation: Mapping[str, Any] | None, folder: Path) -> dict[str, int]:
    """Say in a configuration how long the rows of a model are, and let the folder's tokenizer cut them there."""
    length = None if evaluation is None else evaluation.get("length")
    if not isinstance(length, int) or spec is None or spec.task in _IN_PIECES:
        return {}
    describe(folder, model_max_length=length)
    return {LENGTH: length}
