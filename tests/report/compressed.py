"""A study that searched the sub-networks of an encoder, as the tests of its page need it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.report.studies import WORKER, new_log

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.core.records import Budget, Observation, Request, Spent
from formwright.core.rng import derive
from formwright.cost import macs, params
from formwright.report.facts import StudyFacts, study_facts
from formwright.space.space import Space
from formwright.space.zoo.elastic import elastic
from formwright.study.replay import asked_data
from formwright.study.store import Log

LENGTH = 32
WHOLE = Card(
    encoder=Stack(TokenEmbedding(1000, 96), (Block(96, Attention(12, 8), (384,)),) * 4), pooler=True, classes=2
)
HEADS = ((2, 4, 12), (3, 6, 12), (0, 1, 12), (0, 6, 12))
CHANNELS = ((80, 96, 384), (0, 144, 384), (32, 48, 64), (160, 176, 384))
SPACE: Space = elastic(WHOLE, HEADS, CHANNELS)
COSTS = {"latency_ms": 3.25, "onnx_ms": 2.125, "int8_ms": 1.5}
TEACHER_COSTS = {"latency_ms": 8.125, "onnx_ms": 5.5, "int8_ms": 4.0, "macs": macs(WHOLE, LENGTH)}


def note_of(**changes: Any) -> dict[str, Any]:
    """Make the note of a compression."""
    cost = macs(WHOLE, LENGTH)
    space = {"full": [[12, 384]] * 4, "heads": [*map(list, HEADS)], "channels": [*map(list, CHANNELS)], "hidden": [96]}
    teacher = {"validation": {"accuracy": 0.83}, "test": None, "params": params(WHOLE), "macs": cost, "latency_ms": 7.9}
    targets = [{"target": 0.5 * cost, "cost": 0.51 * cost}, {"target": 0.25 * cost, "cost": 0.24 * cost}]
    whole = {"model": "MiniLM", "task": "glue/sst2", "teacher": teacher, "space": space, "cost": "macs"}
    return {**whole, "targets": targets, **changes}


def card_of(number: int) -> Card:
    return SPACE.card(SPACE.sample(derive(0, "design", number)))


def compressed_log(
    folder: Path, count: int = 6, delivered: int = 3, asked: Mapping[str, str] | None = None, **note: Any
) -> Log:
    """Write a study of trials that are all on the front, too few for a map, with delivered models and the teacher."""
    stages, goals = {"space": {"stage": "space"}}, ["accuracy:max", "macs:min"]
    log = new_log(folder, stages=stages, space="space", objectives=goals, targets=asked or {})
    log.append("note", WORKER, {"compress": note_of(**note)})
    for number in range(count):
        design = SPACE.sample(derive(0, "design", number))
        card = SPACE.card(design)
        assert log.ask(number, WORKER, 60.0, asked_data(Request(card, Budget(), None, design), SPACE, 0))
        cost = macs(card, LENGTH)
        found = Observation({"accuracy": 0.6 + cost / 4e7, "macs": cost}, Spent(2.5, 0, 10**9))
        assert log.finish(number, WORKER, "told", {"observation": found.to_json()})
    for number in range(delivered):
        deliver(log, f"trial-{number}", "front", card_of(number), 0.7 + number / 100)
    deliver(log, "teacher", "teacher", WHOLE, 0.83, costs=TEACHER_COSTS)
    return log


def deliver(log: Log, name: str, role: str, card: Card, accuracy: float, **more: Any) -> None:
    """Note a delivered model with what was measured of it."""
    facts = {"name": name, "role": role, "digest": card.digest, "params": params(card), "steps": 500}
    scores = {"validation": {"accuracy": accuracy}, "test": {"accuracy": accuracy - 0.01}}
    log.append("note", WORKER, {"model": {**facts, **scores, "costs": {**COSTS, "macs": macs(card, LENGTH)}, **more}})


def compressed_facts(folder: Path, count: int = 6, delivered: int = 3, **note: Any) -> StudyFacts:
    return study_facts(compressed_log(folder, count, delivered, **note), SPACE)
