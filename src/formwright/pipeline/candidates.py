"""Which designs of a study are delivered: the best, those within targets, and the plain design to beat."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention, CrossAttention
from formwright.core.errors import EvaluationFailed
from formwright.core.records import History, Objective, Trial
from formwright.cost import params
from formwright.pipeline.delivered import Delivered, Role, measured_models, undelivered
from formwright.pipeline.run_folder import Opened
from formwright.search.scores import best_of, goals_of, longest, score
from formwright.study.events import Event
from formwright.study.study import Study

_HEAD = 16  # features of a head; widths are multiples of it
_WIDEST = 4096


def plain_design(card: Card) -> Card:
    """Give the narrowest plain design, as deep as a card and reading the same input, that has no fewer parameters.

    Every layer is BERT's: attention, in a decoder also to the encoder, then a feed-forward layer four times as wide;
    positions are learned.
    """
    return next(plain for plain in map(_of_width(card), range(_HEAD, _WIDEST, _HEAD)) if params(plain) >= params(card))


def _of_width(card: Card) -> Callable[[int], Card]:
    def plain(width: int) -> Card:
        cross = CrossAttention(width // _HEAD, _HEAD) if card.encoder is not None else None
        return Card(
            encoder=None if card.encoder is None else _stack(card.encoder, width),
            decoder=None if card.decoder is None else _stack(card.decoder, width, cross),
            share_embedding=card.share_embedding,
        )

    return plain


def _stack(stack: Stack, width: int, cross: CrossAttention | None = None) -> Stack:
    block = Block(width, Attention(width // _HEAD, _HEAD), (4 * width,), cross=cross)
    embedding = replace(stack.embedding, width=width, positions="learned")
    if isinstance(embedding, TokenEmbedding):
        embedding = replace(embedding, factorised=None)
    return Stack(embedding, tuple(block for _ in stack.layers), causal=stack.causal)


TOO_SLOW = "too slow"  # the notes of such designs
TRIES = 5  # designs that are measured for a target before none is expected to keep it


class TooSlow(EvaluationFailed):
    """Say that a design misses a target, so that the next best one is to be tried."""


@dataclass(frozen=True)
class Miss:
    """A design that was measured beyond a target, and what was found."""

    target: str
    digest: str
    trial: int | None
    measured: float


def misses(events: Iterable[Event]) -> dict[str, dict[str, Miss]]:
    """Read from a log which designs missed which targets: by the name of the target, and by digest."""
    found: dict[str, dict[str, Miss]] = {}
    for event in events:
        if event.kind == "note" and TOO_SLOW in event.data:
            for miss in (Miss(**entry) for entry in event.data[TOO_SLOW]):
                found.setdefault(miss.target, {})[miss.digest] = miss
    return found


def note_of(missed: Iterable[Miss]) -> dict[str, object]:
    """Give what `misses` reads."""
    return {TOO_SLOW: [asdict(miss) for miss in missed]}


def exceeds(costs: Mapping[str, float], limit: str) -> bool:
    """Tell whether what was measured of a model lies beyond a limit, which the sum of its parts may have kept."""
    wanted = Objective.parse(limit)
    return wanted.name in costs and not wanted.meets(costs[wanted.name])


@dataclass(frozen=True)
class Candidate:
    """A design to deliver, what to call it, and why it was chosen.

    `keeps` names the targets that it has to keep when it is measured, or else another design is tried for them.
    """

    name: str
    role: Role
    card: Card
    trial: int | None = None
    keeps: tuple[str, ...] = ()


def candidates(study: Study, keep: int, *, baseline: bool = True) -> list[Candidate]:
    """Choose the designs to deliver: the best ones or, with several goals, those of the front.

    Of a front the first is the best in the first goal, and the others are the least crowded. Designs that are known to
    fail are left out.
    """
    failed = undelivered(study.log)
    chosen = [trial for trial in best_of(study.history(), study.objectives) if trial.request.card.digest not in failed]
    role: Role = "front" if len(goals_of(study.objectives)) > 1 else "best"
    found = [Candidate(f"trial-{trial.number}", role, _card(trial), trial.number) for trial in chosen[:keep]]
    if baseline and found:
        plain = plain_design(found[0].card)
        found += [Candidate("baseline", "baseline", plain)] if plain.digest not in failed else []
    return found


def within_targets(study: Study, targets: Mapping[str, str]) -> list[Candidate]:
    """Choose for each target, a limit such as `macs<=1e8` under a name, the best design that keeps it.

    A design that is the best for several targets is delivered once, under the name of the first. Of equally good ones
    it is the cheapest. One that was measured beyond a target has to keep it no more: it is the last resort.
    """
    found: dict[str, Candidate] = {}
    tried = misses(study.log.read())
    for name, chosen in _best_within(study, targets, undelivered(study.log)).items():
        digest = _card(chosen).digest
        one = found.get(digest, Candidate(name, "front", _card(chosen), chosen.number))
        found[digest] = one if digest in tried.get(name, ()) else replace(one, keeps=(*one.keeps, name))
    return list(found.values())


def best_digests(study: Study, targets: Mapping[str, str]) -> dict[str, str]:
    """Give for each target the digest of the design that is delivered for it; none where nothing is."""
    return {name: _card(chosen).digest for name, chosen in _best_within(study, targets, undelivered(study.log)).items()}


def unmet_targets(study: Study, targets: Mapping[str, str]) -> list[str]:
    """Name the targets for which nothing is delivered: no design keeps them, or each that does has failed."""
    best = _best_within(study, targets, undelivered(study.log))
    return [name for name in targets if name not in best]


def failed_targets(study: Study, targets: Mapping[str, str]) -> list[str]:
    """Name the targets among them that some design keeps, though none that could be delivered."""
    kept = _best_within(study, targets, ())
    return [name for name in unmet_targets(study, targets) if name in kept]


def _best_within(study: Study, targets: Mapping[str, str], failed: Collection[str]) -> dict[str, Trial]:
    return best_within(study.history(), study.objectives[0], targets, failed, misses(study.log.read()))


def best_within(
    history: History,
    goal: Objective,
    targets: Mapping[str, str],
    failed: Collection[str],
    missed: Mapping[str, Mapping[str, Miss]],
) -> dict[str, Trial]:
    """Choose for each target the trial of the design to deliver; none where there is none.

    `failed` are the digests of designs that cannot be delivered, `missed` those measured beyond a target, by its name.
    """
    trials = [trial for trial in longest(history.finished) if trial.request.card.digest not in failed]
    chosen = {
        name: _next(_ranked(trials, goal, Objective.parse(text)), Objective.parse(text), missed.get(name, {}))
        for name, text in targets.items()
    }
    return {name: trial for name, trial in chosen.items() if trial is not None}


def _ranked(trials: Sequence[Trial], goal: Objective, limit: Objective) -> list[Trial]:
    """Give the trials within a limit, the best first, and the cheapest of equally good ones."""
    scores = score(trials, (goal, limit))
    kept = [index for index in range(len(trials)) if not scores.violations[index]]
    kept.sort(key=lambda index: (scores.values[index, 0], _cost(trials[index], limit)))
    return [trials[index] for index in kept]


def _next(ranked: Sequence[Trial], limit: Objective, missed: Mapping[str, Miss]) -> Trial | None:
    """Choose the best design or, where some were measured beyond the limit, the next one to try.

    That is the best of those that keep the limit if the sum of their parts is as far off as it was so far or, without
    any, the cheapest. After enough tries it is the one that was measured to be the fastest.
    """
    slow = [trial for trial in ranked if _card(trial).digest in missed]
    left = [trial for trial in ranked if _card(trial).digest not in missed]
    if slow and (not left or len(missed) >= TRIES):
        return min(slow, key=lambda trial: missed[_card(trial).digest].measured)
    off = median(missed[_card(trial).digest].measured / _cost(trial, limit) for trial in slow) if slow else 1.0
    promising = [trial for trial in left if limit.meets(off * _cost(trial, limit))]
    return promising[0] if promising else min(left, key=lambda trial: _cost(trial, limit), default=None)


def _cost(trial: Trial, limit: Objective) -> float:
    assert trial.observation is not None
    return trial.observation.metrics[limit.name]


def _card(trial: Trial) -> Card:
    assert isinstance(trial.request.card, Card)
    return trial.request.card


def remarks(opened: Opened) -> list[str]:
    """Say which targets share a model, and where designs took longer, once measured, than their target allows."""
    targets, length = opened.deliver.targets, opened.search.length
    best = best_digests(opened.study(), targets)
    models = [model for model in measured_models(opened).values() if model.role == "front"]
    tried = {name: len(found) for name, found in misses(opened.log.read()).items()}
    found = {name: _model_for(name, digest, models) for name, digest in best.items()}
    known = {name: model for name, model in found.items() if model is not None}
    shared = [_shared(name, model) for name, model in known.items() if model.name != name]
    missed = [_missed(name, model, targets[name], tried.get(name, 0), length) for name, model in known.items()]
    return shared + [line for line in missed if line]


def _model_for(name: str, digest: str, models: list[Delivered]) -> Delivered | None:
    """Find the model of a design: the one of the target's own name, or else the one of another."""
    same = [model for model in models if model.digest == digest]
    return next((model for model in same if model.name == name), same[0] if same else None)


def _shared(name: str, model: Delivered) -> str:
    return f"{name} is the model {model.name}, the best within both: it is in {model.path}"


def _missed(name: str, model: Delivered, limit: str, tried: int, length: int) -> str:
    wanted = Objective.parse(limit)
    if not exceeds(model.costs, limit):
        others = "1 other design was" if tried == 1 else f"{tried} other designs were"
        return f"{name} is kept by {model.name}: {others} measured beyond it" if tried else ""
    fastest = f", the fastest of {tried} designs that were tried," if tried > 1 else ""
    return (
        f"{name} is missed: {model.name}{fastest} was measured at {wanted.name} {model.costs[wanted.name]:.4g}, above "
        f"the {wanted.bound:.4g} that the sum of its parts keeps to. If the machine was busy, measure it again with "
        f"`formwright measure {model.path} --length {length}`; if not, give a lower target"
    )
