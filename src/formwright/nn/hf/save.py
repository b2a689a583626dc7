"""Export a model as a Hugging Face folder that loads with our package, and without it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalInput
from formwright.cost import input_size, macs, params
from formwright.nn.hf.bundled_code import auto_map, foreign_operations, write_code
from formwright.nn.hf.checkpoint_files import CONFIG, WEIGHTS, write_json
from formwright.nn.hf.config_fields import AUTO_CLASSES, MODEL_TYPE, class_name, standard_fields
from formwright.nn.hf.imported import MULTI_LABEL, load_folder
from formwright.nn.hf.model_folder import CARD, whole_folder
from formwright.nn.hf.readme import Facts, Provenance, readme
from formwright.nn.hf.side_files import (
    PREPROCESSOR,
    describe,
    evaluation_summary,
    leave_open,
    length_fields,
    token_numbers,
    write_side_files,
    write_tokenizer,
)
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer

__all__ = ["load_folder", "save_pretrained_folder"]

GENERATION = "generation_config.json"
_WRITTEN = 64  # default maximum of tokens that a model generates
_LENGTH = 128  # tokens of a sentence, for counting operations where no other length is known


@dataclass(frozen=True)
class FolderForm:
    """How a model is written: the class that loads it, its configuration and its tensors; `stock` needs no code."""

    loads: str
    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    stock: bool = False


def save_pretrained_folder(  # noqa: PLR0913  all that is known of a model goes into its folder at once
    model: TaskModel | Transformer,
    folder: str | Path,
    *,
    tokenizer: Any = None,
    labels: Sequence[str] = (),
    scores: Facts | None = None,
    costs: Facts | None = None,
    lineage: Facts | None = None,
    evaluation: Mapping[str, Any] | None = None,
    force: bool = False,
    form: FolderForm | None = None,
) -> Path:
    """Write a model as a folder that transformers loads, with or without this package; return the folder.

    `tokenizer` is one of transformers, one of the tokenizers library, or the files of one. `labels` name a classifier's
    labels in order. `scores`, `costs` (by default parameters and operations) and `lineage` go into the model card.
    `evaluation` says on which rows and with which length the model was judged (`evaluate.evaluation_file`). The folder
    is written whole or not at all; `force` replaces one that was written before. `form` is by default our own.
    """
    card, spec = model.card, model.spec
    _check_labels(spec, labels)
    task = spec.task if spec else None
    form = form or FolderForm(
        AUTO_CLASSES[class_name(card, task)], config_of(model, labels), _tensors(model, card.share_embedding)
    )
    if costs is None:
        operations = (evaluation or {}).get("length") or _LENGTH
        costs = {"parameters": params(card)}
        costs |= {f"multiply-accumulates at {input_size(card, operations)}": macs(card, operations)}
    provenance = Provenance(scores or {}, costs, {**(lineage or {}), **evaluation_summary(card, evaluation)})
    table = card.stacks[0].embedding
    length, types = (table.length, table.types) if isinstance(table, TokenEmbedding) else (None, 0)
    with whole_folder(Path(folder), force=force) as part:
        padding = write_tokenizer(tokenizer, part, length, types) if tokenizer is not None else None
        writing = _writing(card, spec, part)
        lengths = length_fields(spec, evaluation, part)
        config = {**form.config, **_label_fields(spec, labels), "pad_token_id": padding, **writing, **lengths}
        write_json(part / CONFIG, config)
        write_side_files(part, card, evaluation)
        if writing:
            most = {"max_new_tokens": min(_WRITTEN, (length or 2 * _WRITTEN) // 2)}
            write_json(part / GENERATION, {"pad_token_id": padding, **writing, **most})
        _save_tensors(form.tensors, part / WEIGHTS)
        if not form.stock:
            write_code(part, foreign=foreign_operations(card))
        (part / CARD).write_bytes(card.canonical)
        text = readme(card, task, form.loads, provenance, _prepared_by(card, part), stock=form.stock)
        (part / "README.md").write_text(text, encoding="utf-8")
    return Path(folder)


def _prepared_by(card: Card, folder: Path) -> str:
    """Name the class that prepares inputs, where the folder has what it reads."""
    embedding = card.stacks[0].embedding
    settings = "tokenizer_config.json" if isinstance(embedding, TokenEmbedding) else PREPROCESSOR
    return embedding.PREPARED_BY if (folder / settings).is_file() else ""


def _writing(card: Card, spec: HeadSpec | None, folder: Path) -> dict[str, int]:
    """Return the begin and end tokens of a generating model; set its tokenizer's inputs accordingly."""
    if spec is None or not spec.writes:
        return {}
    describe(folder, model_input_names=["input_ids", "attention_mask"])
    if spec.continues:
        describe(folder, padding_side="left")  # what is written follows the last token
        leave_open(folder)
    numbers = token_numbers(folder, ["cls_token", "sep_token"])
    if len(numbers) < 2:
        return {}
    begin, end = numbers["cls_token"], numbers["sep_token"]
    start = {"decoder_start_token_id": begin} if card.decoder is not None and card.encoder is not None else {}
    return {"bos_token_id": begin, "eos_token_id": end, **start}


def _check_labels(spec: HeadSpec | None, labels: Sequence[str]) -> None:
    if not labels:
        return
    if spec is None or not spec.has_names:
        raise IllegalInput(f"labels are given, but {spec.task if spec else 'a model without a head'} has none to name")
    if len(labels) != spec.labels or len(set(labels)) != len(labels):
        raise IllegalInput(f"the head has {spec.labels} labels, which need as many different names, not {list(labels)}")


def _save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors as transformers does, each stored once and whole."""
    path.touch()
    mode = path.stat().st_mode  # what the user's umask allows; safetensors alone would let nobody else read the file
    whole = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    try:
        save_file(whole, path, {"format": "pt"})
    except SafetensorError as error:  # a full disk, among others
        raise IllegalInput(f"cannot write {path.name}: {error}") from None
    path.chmod(mode)


def _label_fields(spec: HeadSpec | None, labels: Sequence[str]) -> dict[str, Any]:
    if spec is None or not spec.has_names:
        return {}
    names = labels or [f"LABEL_{number}" for number in range(spec.labels)]
    return {
        **({"problem_type": MULTI_LABEL} if spec.multi_label else {}),
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }


def config_of(model: TaskModel | Transformer, labels: Sequence[str]) -> dict[str, Any]:
    """Describe a model as `config.json` does: its design, its settings and its labels."""
    card, spec, settings = model.card, model.spec, asdict(model.settings)
    settings.pop("eager")
    return {
        "model_type": MODEL_TYPE,
        "architectures": [class_name(card, spec.task if spec else None)],
        "auto_map": auto_map(),
        "card": card.to_json(),
        "dtype": str(next(model.parameters()).dtype).removeprefix("torch."),
        **settings,
        **standard_fields(card),
        **_label_fields(spec, labels),
    }


def _tensors(model: TaskModel | Transformer, share_embedding: bool) -> dict[str, Tensor]:
    """Return the weights under the names of a `TaskModel`; a table that two stacks share is the encoder's."""
    prefix = "" if isinstance(model, TaskModel) else "transformer."
    tensors = {f"{prefix}{name}": tensor for name, tensor in model.state_dict().items()}
    if share_embedding:
        del tensors["transformer.decoder.embedding.tokens.weight"]
    return tensors
