"""`formwright export`: a model as a folder that others load, or a study as one of Optuna's."""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from formwright.cli import panels
from formwright.cli.named import NamedCard, find
from formwright.cli.options import AsJson
from formwright.cli.output import echo, note, print_json
from formwright.cli.trust import TrustSpaceFile, confirm_space
from formwright.core.errors import IllegalInput
from formwright.core.text import without_password

if TYPE_CHECKING:
    from formwright.nn.heads import HeadSpec
    from formwright.nn.hf.imported import Imported
    from formwright.nn.task_model import TaskModel
    from formwright.nn.transformer import Transformer
    from formwright.space.space import Space
    from formwright.study.place import Opened


_DIGITS = 6  # of the largest number of labels


class Form(StrEnum):
    """The forms in which a model can be exported."""

    HF = "hf"
    STOCK = "stock"
    ONNX = "onnx"
    OPENVINO = "openvino"
    OPTUNA = "optuna"


@dataclass(frozen=True)
class _Source:
    """A model, the names of its labels, the files of its tokenizer, and which of its weights are fresh."""

    model: "TaskModel | Transformer"
    name: str
    labels: tuple[str, ...] = ()
    tokenizer_files: tuple[Path, ...] = ()
    fresh: str | None = None
    evaluation: "dict[str, Any] | None" = None


def export(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER_OR_CARD",
            help="A model's folder, a published card, a card's JSON file, or, for Optuna, a study's folder or URL.",
        ),
    ],
    to: Annotated[
        Form,
        typer.Option(
            help="Form: a Hugging Face folder, a plain BERT folder, a file for a runtime, or an Optuna storage.",
            rich_help_panel=panels.DELIVERY,
        ),
    ],
    target: Annotated[
        str | None, typer.Argument(metavar="[OUT]", help="The same as --out.", show_default=False)
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            help="Folder to write; for Optuna, a file or URL such as sqlite:///optuna.db.",
            rich_help_panel=panels.OUTPUT,
        ),
    ] = None,
    int8: Annotated[
        bool, typer.Option("--int8", help="Quantise to 8 bits (onnx and openvino).", rich_help_panel=panels.DELIVERY)
    ] = False,
    task: Annotated[
        str | None, typer.Option(help="Give the model a head for this task.", rich_help_panel=panels.DELIVERY)
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="Number of labels of the --task head (default 2), or their names separated by commas.",
            rich_help_panel=panels.DELIVERY,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Random seed of fresh weights.", rich_help_panel=panels.DELIVERY)
    ] = 0,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Overwrite a model that was exported to the same folder.", rich_help_panel=panels.OUTPUT
        ),
    ] = False,
    trust_space_file: TrustSpaceFile = False,
    as_json: AsJson = False,
) -> None:
    """Export a model as a Hugging Face folder, a plain BERT, or for ONNX Runtime or OpenVINO; or a study to Optuna."""
    if (out is None) == (target is None):
        raise IllegalInput("say once where to write: behind the model, or with --out")
    place = out or target or ""
    if to is Form.OPTUNA:
        given = {"--int8": int8, "--task": task, "--labels": labels, "--seed": seed, "--force": force}
        return _export_study(source, place, [name for name, value in given.items() if value], trust_space_file, as_json)
    _export_model(source, to, Path(place), (task, labels), seed, int8=int8, force=force, as_json=as_json)


def _export_study(source: str, target: str, unfit: list[str], trusted: bool, as_json: bool) -> None:
    from formwright.study.place import find as find_study
    from formwright.study.to_optuna import to_optuna

    if unfit:
        raise IllegalInput(f"{', '.join(unfit)}: for models only, and --to optuna exports a study")
    with find_study(source).open() as opened:
        added, name = to_optuna(opened, target, _own_space(opened, trusted)), opened.place.name
    if as_json:
        print_json({"to": Form.OPTUNA.value, "storage": without_password(target), "study": name, "added": added})
    else:
        echo(f"added {added} trials to {name!r} in {target}")


def _own_space(opened: "Opened", trusted: bool) -> "Space | None":
    """Run the file of a study's space where the user says so; it is not needed for anything but parameters."""
    from formwright.study.spaces import find_space, own_file

    if own_file(opened.config.space) is None:
        return None
    if not trusted:
        note("trials have no parameters: the space is a Python file, which runs only with --trust-space-file")
        return None
    confirm_space(opened, trusted)
    return find_space(opened.config.space)


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
    from formwright.nn.hf.folders import refuse_to_overwrite

    if int8 and to in (Form.HF, Form.STOCK):
        raise IllegalInput(f"--int8 goes with --to onnx and --to openvino, not with --to {to.value}")
    refuse_to_overwrite(out, force=force)
    found = _read(source, _wanted(*head), seed)
    difference = _write(found, to, out, int8, force)
    _report(found, to, out, difference, as_json)


def _wanted(task: str | None, labels: str | None) -> tuple["HeadSpec | None", tuple[str, ...]]:
    from formwright.nn.heads import HeadSpec, Task

    if task is None:
        if labels is not None:
            raise IllegalInput("--labels are those of a task's head; say which with --task")
        return None, ()
    if task not in get_args(Task):
        raise IllegalInput(f"no task is called {task!r}; tasks are {', '.join(get_args(Task))}")
    if labels is None:
        return HeadSpec(cast(Task, task)), ()
    if labels.isdecimal() and len(labels) <= _DIGITS:
        return HeadSpec(cast(Task, task), int(labels)), ()
    names = tuple(name.strip() for name in labels.split(","))
    if not all(names) or _is_a_number(labels):
        raise IllegalInput(f"--labels {labels!r} is neither a number of labels below 1,000,000 nor names with commas")
    return HeadSpec(cast(Task, task), len(names)), names


def _is_a_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read(source: str, wanted: tuple["HeadSpec | None", tuple[str, ...]], seed: int) -> _Source:
    from formwright.nn.build import build

    spec, labels = wanted
    if os.path.isdir(source):  # says no to a name that is too long
        return _read_folder(Path(source), spec, labels, seed)
    card = find(source)
    if not isinstance(card, NamedCard):
        raise IllegalInput(f"{source} is a space of designs; export one of them, or a published card")
    return _Source(build(card.card, head=spec, seed=seed), card.name, labels, fresh="all weights")


def _read_folder(folder: Path, spec: "HeadSpec | None", labels: tuple[str, ...], seed: int) -> _Source:
    from formwright.nn.hf.beside import read_evaluation
    from formwright.nn.hf.load import from_hf

    imported = from_hf(folder)
    if spec is None or spec == imported.head:
        model = imported.model()
        judged = read_evaluation(folder)
        return _Source(model, folder.name, labels or imported.labels, imported.tokenizer_files, evaluation=judged)
    if imported.head is not None:
        raise IllegalInput(f"{folder} has a head for {imported.head.task} with {imported.head.labels} labels already")
    return _Source(
        _with_head(imported, spec, seed), folder.name, labels, imported.tokenizer_files, "the head's weights"
    )


def _with_head(imported: "Imported", spec: "HeadSpec", seed: int) -> "TaskModel | Transformer":
    from formwright.nn.build import build

    model = build(imported.card, imported.settings, spec, seed)
    names = {f"transformer.{name}": tensor for name, tensor in imported.weights.items()}
    model.load_state_dict(names, strict=False)  # all but the head
    return model.eval()


def _write(found: _Source, to: Form, out: Path, int8: bool, force: bool) -> float | None:
    """Write the folder; for a runtime, return the largest difference between its outputs and torch's."""
    if to in (Form.ONNX, Form.OPENVINO):
        return _write_for_runtime(found, to, out, int8, force)
    from formwright.nn.hf.save import save_pretrained_folder
    from formwright.nn.hf.stock import export_stock

    write = save_pretrained_folder if to is Form.HF else export_stock
    lineage = {"exported from": found.name} | ({"fresh": found.fresh} if found.fresh else {})
    write(
        found.model.eval(),
        out,
        tokenizer=found.tokenizer_files or None,
        labels=found.labels,
        lineage=lineage,
        evaluation=found.evaluation,
        force=force,
    )
    return None


def _write_for_runtime(found: _Source, to: Form, out: Path, int8: bool, force: bool) -> float:
    from formwright.nn import deploy
    from formwright.nn.hf.beside import length_fields, write_beside
    from formwright.nn.hf.files import CONFIG, write_json
    from formwright.nn.hf.folders import CARD, whole_folder
    from formwright.nn.hf.save import config_of, parts_of
    from formwright.nn.hf.tokenizers import write_tokenizer

    card, spec = parts_of(found.model)

    with whole_folder(out, force=force) as part:
        exported = deploy.export(found.model.eval(), "onnx" if to is Form.ONNX else "openvino", part, int8)
        if found.tokenizer_files:
            write_tokenizer(found.tokenizer_files, part, None)
        config = config_of(found.model, found.labels) | length_fields(spec, found.evaluation, part)
        # no code stands here, and without a type of model transformers reads the tokenizer all the same
        write_json(part / CONFIG, {key: config[key] for key in config if key not in ("auto_map", "model_type")})
        write_beside(part, card, found.evaluation)
        (part / CARD).write_bytes(card.canonical)
    return exported.largest_difference


def _report(found: _Source, to: Form, out: Path, difference: float | None, as_json: bool) -> None:
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
