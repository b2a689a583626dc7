"""Export a model: as a Hugging Face folder, as a plain BERT, or for a runtime."""

from pathlib import Path
from typing import Literal

from formwright.core.errors import IllegalInput
from formwright.nn import deploy
from formwright.nn.hf.checkpoint_files import CONFIG, write_json
from formwright.nn.hf.model_folder import CARD, whole_folder
from formwright.nn.hf.save import config_of, parts_of, save_pretrained_folder
from formwright.nn.hf.side_files import length_fields, write_side_files
from formwright.nn.hf.stock import export_stock
from formwright.nn.hf.tokenizer_files import write_tokenizer
from formwright.pipeline.named_model import NamedModel

ModelForm = Literal["hf", "stock", "onnx", "openvino"]


def export_model(
    found: NamedModel, form: ModelForm, out: Path, *, int8: bool = False, force: bool = False
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


def _for_runtime(found: NamedModel, form: str, out: Path, int8: bool, force: bool) -> float:
    card, spec = parts_of(found.model)
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
