"""What a compression notes in the log of its study, where the report finds it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal

from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.compress.begin import Begun
from formwright.cost import macs, params
from formwright.evaluate.context import Context
from formwright.evaluate.evaluation_file import evaluation_of
from formwright.evaluate.final import as_it_is
from formwright.nn.hf.beside import write_evaluation
from formwright.nn.task_model import TaskModel
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.study.delivered import MODELS, Delivered, delivered
from formwright.study.finish import FINAL
from formwright.study.identity import own_name
from formwright.study.place import Place
from formwright.supernet.automatic import Met

TEACHER: Literal["teacher"] = "teacher"
NOTE = "compress"


def note_teacher(place: Place, begun: Begun, known: TaskModel, length: int) -> None:
    """Test the teacher, and note it among the models; it is measured in the end, in turns with the others."""
    with place.open() as opened:
        if TEACHER in delivered(opened):
            return
        context = Context(folder=place.folder / FINAL / TEACHER)
        verdict = as_it_is(known, begun.prepared, context)
        card, folder = known.transformer.card, place.folder / MODELS / TEACHER
        # the folder was written before the test rows were opened
        write_evaluation(folder, evaluation_of(begun.prepared, verdict.validation, verdict.test, verdict.evidence))
        found = Delivered(
            TEACHER,
            TEACHER,
            card.digest,
            str(folder),
            params(card),
            0,
            dict(verdict.validation),
            None if verdict.test is None else dict(verdict.test),
            None,
            {"macs": float(macs(card, length))},
            evidence=verdict.evidence,
        )
        opened.log.append("note", own_name(), {"model": asdict(found)})


def note_space(place: Place, begun: Begun, choices: ElasticChoices, met: Sequence[Met], cost: str) -> None:
    """Note once what the sub-networks may be, how closely the targets were met, and the teacher that was noted.

    Targets in other costs than the one that is named stand by themselves, as `further`.
    """
    card = choices.card
    assert card.encoder is not None
    facts = {
        "model": begun.name,
        "task": begun.prepared.task.name,
        "cost": cost,
        "space": {
            "full": [_widths(layer) for layer in card.encoder.layers],
            "heads": [list(one) for one in choices.heads],
            "channels": [list(one) for one in choices.feed_forward],
            "hidden": list(choices.hidden) or [card.output_width],
        },
        "targets": [{"target": one.target, "cost": one.cost} for one in met if one.measure == cost],
        "further": [asdict(one) for one in met if one.measure != cost],
    }
    with place.open() as opened:
        if not any(NOTE in event.data for event in opened.log.read() if event.kind == "note"):
            opened.log.append("note", own_name(), {NOTE: facts | {TEACHER: _summary(delivered(opened)[TEACHER])}})


def _summary(teacher: Delivered) -> dict[str, object]:
    return {"validation": teacher.validation, "test": teacher.test, "params": teacher.params, **teacher.costs}


def _widths(layer: object) -> list[int]:
    assert isinstance(layer, Block)
    heads = layer.mixer.heads if isinstance(layer.mixer, Attention) else 0
    return [heads, layer.feed_forward[0] if layer.feed_forward else 0]
