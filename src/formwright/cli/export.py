"""`formwright export`: a model as a folder that others load, or a study as one of Optuna's."""

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from formwright.cli.options import DELIVERY, LARGEST_SEED, OUTPUT, AsJson, TrustSpaceFile, argument, flag
from formwright.cli.output import echo, note, print_json
from formwright.cli.run_view import confirm_space
from formwright.core.errors import IllegalInput
from formwright.core.text import without_password

if TYPE_CHECKING:
    from formwright.arch.heads import HeadSpec
    from formwright.pipeline.named_model import ModelByName
    from formwright.pipeline.study_place import Opened
    from formwright.space.space import Space


_DIGITS = 6  # of the largest number of labels
_NUMBER = r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*"


class Form(StrEnum):
    """The forms in which a model can be exported."""

    HF = "hf"
    STOCK = "stock"
    ONNX = "onnx"
    OPENVINO = "openvino"
    OPTUNA = "optuna"


_SOURCE = "A model's folder, a published card, a card's JSON file, or, for Optuna, a study's folder or URL."
_TO = "Form: a Hugging Face folder, a plain BERT folder, a file for a runtime, or an Optuna storage."
_OUT = "Folder to write; for Optuna, a file or URL such as sqlite:///optuna.db."
_LABELS = "Number of labels of the --task head (default 2), or their names separated by commas."
_FORCE = "Overwrite a model that was exported to the same folder."


def export(
    source: Annotated[str, argument(_SOURCE, "FOLDER_OR_CARD")],
    to: Annotated[Form, flag(_TO, DELIVERY)],
    target: Annotated[str | None, argument("The same as --out.", "[OUT]", show_default=False)] = None,
    out: Annotated[str | None, flag(_OUT, OUTPUT)] = None,
    int8: Annotated[bool, flag("Quantise to 8 bits (onnx and openvino).", DELIVERY, "--int8")] = False,
    task: Annotated[str | None, flag("Give the model a head for this task.", DELIVERY)] = None,
    labels: Annotated[str | None, flag(_LABELS, DELIVERY)] = None,
    seed: Annotated[int, flag("Random seed of fresh weights.", DELIVERY, min=0, max=LARGEST_SEED)] = 0,
    force: Annotated[bool, flag(_FORCE, OUTPUT, "--force")] = False,
    trust_space_file: TrustSpaceFile = False,
    as_json: AsJson = False,
) -> None:
    """Export a model as a Hugging Face folder, a plain BERT, or for ONNX Runtime or OpenVINO; or a study to Optuna."""
    if (out is None) == (target is None):
        raise IllegalInput("give the output once: as the second argument, or with --out")
    place = out or target or ""
    if to is Form.OPTUNA:
        given = {"--int8": int8, "--task": task, "--labels": labels, "--seed": seed, "--force": force}
        return _export_study(source, place, [name for name, value in given.items() if value], trust_space_file, as_json)
    _export_model(source, to, Path(place), (task, labels), seed, int8=int8, force=force, as_json=as_json)


def _export_study(source: str, target: str, unfit: list[str], trusted: bool, as_json: bool) -> None:
    from formwright.pipeline.study_place import find as find_study
    from formwright.pipeline.to_optuna import to_optuna

    if unfit:
        raise IllegalInput(f"{', '.join(unfit)}: for models only, and --to optuna exports a study")
    with find_study(source).open() as opened:
        added, name = to_optuna(opened, target, _own_space(opened, trusted)), opened.place.name
    if as_json:
        print_json({"to": Form.OPTUNA.value, "storage": without_password(target), "study": name, "added": added})
    else:
        echo(f"added {added} trials to {name!r} in {target}")


def _own_space(opened: "Opened", trusted: bool) -> "Space | None":
    """Run the Python file of a study's space if the user trusts it; only the parameters of trials need it."""
    from formwright.pipeline.designs import find_space, own_file

    if own_file(opened.search.space) is None:
        return None
    if not trusted:
        note("trials have no parameters: the space is a Python file, which runs only with --trust-space-file")
        return None
    confirm_space(opened, trusted)
    return find_space(opened.search.space)


def _export_model(
    source: str,
    to: Form,
    out: Path,
    head: tuple[str | None, str | None],
    seed: int,
    *,
    int8: bool,
    force: bool,
    as_json: bool,
) -> None:
    from formwright.nn.hf.model_folder import refuse_to_overwrite
    from formwright.pipeline.named_model import export_model, read_model

    if int8 and to in (Form.HF, Form.STOCK):
        raise IllegalInput(f"--int8 goes with --to onnx and --to openvino, not with --to {to.value}")
    refuse_to_overwrite(out, force=force)
    found = read_model(source, *_wanted(*head), seed)
    difference = export_model(found, to.value, out, int8=int8, force=force)  # type: ignore[arg-type]
    _report(found, to, out, difference, as_json)


def _wanted(task: str | None, labels: str | None) -> tuple["HeadSpec | None", tuple[str, ...]]:
    from formwright.arch.heads import OWN_HEADS, HeadSpec

    if task is None:
        if labels is not None:
            raise IllegalInput("--labels names the labels of a new head; say for which task with --task")
        return None, ()
    if task not in OWN_HEADS:
        raise IllegalInput(f"no task is called {task!r}; tasks are {', '.join(OWN_HEADS)}")
    if labels is None:
        return HeadSpec(task), ()
    if labels.isdecimal() and len(labels) <= _DIGITS:
        return HeadSpec(task, int(labels)), ()
    names = tuple(name.strip() for name in labels.split(","))
    if not all(names) or re.fullmatch(_NUMBER, labels):
        raise IllegalInput(f"--labels {labels!r} is neither a number below 1,000,000 nor names separated by commas")
    return HeadSpec(task, len(names)), names


def _report(found: "ModelByName", to: Form, out: Path, difference: float | None, as_json: bool) -> None:
    parameters = sum(parameter.numel() for parameter in found.model.parameters())
    facts = {"folder": str(out), "to": to.value, "parameters": parameters, "fresh": found.fresh}
    if as_json:
        print_json(facts | ({"largest_difference": difference} if difference is not None else {}))
        return
    echo(f"wrote {out} ({to.value}), {parameters:,} parameters")
    if found.fresh is not None:
        echo(f"{found.fresh} are freshly initialised, not trained")
    if difference is not None:
        echo(f"largest difference to torch: {difference:.2g}")
