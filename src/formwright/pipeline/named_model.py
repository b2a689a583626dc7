"""Models by name, the folder of one or a design with fresh weights: read, exported and measured."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalInput
from formwright.cost import macs, params
from formwright.nn import deploy
from formwright.nn.build import build
from formwright.nn.deploy.runtimes import Runtime
from formwright.nn.hf.checkpoint_files import CONFIG, write_json
from formwright.nn.hf.load import from_hf
from formwright.nn.hf.model_folder import CARD, whole_folder
from formwright.nn.hf.save import config_of, save_pretrained_folder
from formwright.nn.hf.side_files import length_fields, read_evaluation, write_side_files, write_tokenizer
from formwright.nn.hf.stock import export_stock
from formwright.nn.measurement import Latency, TimingSettings, measure, measure_file
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer
from formwright.pipeline.designs import NamedCard, find, read_card
from formwright.pipeline.run_folder import refuse_run_folder
from formwright.train.loop import enough_memory


@dataclass(frozen=True, eq=False)
class ModelByName:
    """A model, the names of its labels, the files of its tokenizer, and which of its weights are `fresh`.

    `evaluation` is what its folder says of how it was evaluated.
    """

    model: TaskModel | Transformer
    name: str
    labels: tuple[str, ...] = ()
    tokenizer_files: tuple[Path, ...] = ()
    fresh: str | None = None
    evaluation: dict[str, Any] | None = None


def read_model(source: str, head: HeadSpec | None = None, labels: tuple[str, ...] = (), seed: int = 0) -> ModelByName:
    """Read a model from its folder, or build a card with fresh weights; one without a head gets the `head`."""
    if os.path.isdir(source):  # says no to a name that is too long
        return _from_folder(Path(source), head, labels, seed)
    found = find(source)
    if not isinstance(found, NamedCard):
        raise IllegalInput(f"{source} is a search space; name one of its designs, or a published card")
    return ModelByName(build(found.card, head=head, seed=seed), found.name, labels, fresh="all weights")


def _from_folder(folder: Path, head: HeadSpec | None, labels: tuple[str, ...], seed: int) -> ModelByName:
    refuse_run_folder(folder)
    imported = from_hf(folder)
    if head is None or head == imported.head:
        known, evaluation = labels or imported.labels, read_evaluation(folder)
        return ModelByName(imported.model(), folder.name, known, imported.tokenizer_files, evaluation=evaluation)
    if imported.head is not None:
        raise IllegalInput(f"{folder} has a head for {imported.head.task} with {imported.head.labels} labels already")
    model = build(imported.card, imported.settings, head, seed)
    names = {f"transformer.{name}": tensor for name, tensor in imported.weights.items()}
    model.load_state_dict(names, strict=False)  # all but the head
    return ModelByName(model.eval(), folder.name, labels, imported.tokenizer_files, "the head's weights")


ModelForm = Literal["hf", "stock", "onnx", "openvino"]


def export_model(
    found: ModelByName, form: ModelForm, out: Path, *, int8: bool = False, force: bool = False
) -> float | None:
    """Write a model; for a runtime, return the largest difference between its outputs and torch's."""
    if form in ("onnx", "openvino"):
        return _for_runtime(found, form, out, int8, force)
    if int8:
        raise IllegalInput(f"8 bits are for onnx and openvino, not for {form}")
    write = save_pretrained_folder if form == "hf" else export_stock
    write(
        found.model.eval(),
        out,
        tokenizer=found.tokenizer_files or None,
        labels=found.labels,
        lineage={"exported from": found.name} | ({"fresh": found.fresh} if found.fresh else {}),
        evaluation=found.evaluation,
        force=force,
    )
    return None


def _for_runtime(found: ModelByName, form: str, out: Path, int8: bool, force: bool) -> float:
    card, spec = found.model.card, found.model.spec
    with whole_folder(out, force=force) as part:
        exported = deploy.export(found.model.eval(), "onnx" if form == "onnx" else "openvino", part, int8)
        if found.tokenizer_files:
            write_tokenizer(found.tokenizer_files, part, None)
        config = config_of(found.model, found.labels) | length_fields(spec, found.evaluation, part)
        # no code stands here, and without a type of model transformers reads the tokenizer all the same
        write_json(part / CONFIG, {key: config[key] for key in config if key not in ("auto_map", "model_type")})
        write_side_files(part, card, found.evaluation)
        (part / CARD).write_bytes(card.canonical)
    return exported.largest_difference


USUAL_LENGTH = 128  # tokens in a row of a model that was trained with no length
_FILES = {"model.onnx": "onnxruntime", "model.xml": "openvino"}


def trained_length(source: str) -> int | None:
    """Give the length that a delivered folder was trained and evaluated with; None where it says none."""
    evaluation = read_evaluation(Path(source)) if os.path.isdir(source) else None
    found = None if evaluation is None else evaluation.get("length")
    return found if isinstance(found, int) and found > 0 else None


def measure_model(source: str, trial: TimingSettings, runtime: str | None = None) -> tuple[Card, dict[str, Any]]:
    """Measure a model; give its card, and its latency, memory and costs as JSON data.

    A folder that was exported for a runtime is measured in that, everything else in torch unless `runtime` is given.
    """
    file = next((Path(source) / name for name in _FILES if os.path.isfile(Path(source) / name)), None)
    if trial.device != "cpu" and (file is not None or runtime not in (None, "torch")):
        raise IllegalInput(
            f"the device {trial.device} is for models that run in torch; other runtimes use the processor"
        )
    with enough_memory(f"by a row of {trial.length:,} tokens; measure a shorter one with --length"):
        if file is None:
            found = read_model(source)
            name, card = found.name, found.model.card
            latency = measure(found.model, trial, cast(Runtime, runtime or "torch"))
        else:
            name, card, latency = _of_file(file, trial, runtime)
    return card, {
        "name": name,
        "family": card.family,
        "digest": card.digest,
        "batch": trial.batch,
        "length": trial.length,
        "tokens": trial.tokens,
        "beams": trial.beams,
        "params": params(card),
        "macs": macs(card, trial.length),
        **asdict(latency),
    }


def _of_file(file: Path, trial: TimingSettings, runtime: str | None) -> tuple[str, Card, Latency]:
    own = _FILES[file.name]
    if runtime not in (None, own):
        raise IllegalInput(f"{file} runs in {own}, not in {runtime}; measure the folder it was exported from")
    card = read_card(file.parent / CARD).card
    return file.parent.name, card, measure_file(file, card, trial)
