"""Which designs of a study are delivered: the best, those within targets, and the plain design to beat."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, CrossAttention
from formwright.core.records import History, Objective, Trial
from formwright.cost import params
from formwright.pipeline.delivered import Delivered, Miss, Role, exceeds, measured_models, misses, undelivered
from formwright.pipeline.study_place import Opened
from formwright.search.scores import best_of, goals_of, longest, score
from formwright.study.study import StudySetup

_HEAD = 16  # features of a head; widths are multiples of it
_WIDEST = 4096
TRIES = 5  # designs that are measured for a target before none is expected to keep it


def plain_design(card: Card) -> Card:
    """Give the narrowest plain design, as deep as a card and reading the same input, that has no fewer parameters.

    Every layer is BERT's: attention, in a decoder also to the encoder, then a feed-forward layer four times as wide;
    positions are learned.
    """
    plain = (_plain(card, width) for width in range(_HEAD, _WIDEST, _HEAD))
    return next(one for one in plain if params(one) >= params(card))


def _plain(card: Card, width: int) -> Card:
    cross = CrossAttention(width // _HEAD, _HEAD) if card.encoder is not None else None
    return Card(
        encoder=None if card.encoder is None else _stack(card.encoder, width),
        decoder=None if card.decoder is None else _stack(card.decoder, width, cross),
        share_embedding=card.share_embedding,
    )


def _stack(stack: Stack, width: int, cross: CrossAttention | None = None) -> Stack:
    block = Block(width, Attention(width // _HEAD, _HEAD), (4 * width,), cross=cross)
    embedding = replace(stack.embedding, width=width, positions="learned")
    if isinstance(embedding, TokenEmbedding):
        embedding = replace(embedding, factorised=None)
    return Stack(embedding, tuple(block for _ in stack.layers), causal=stack.causal)


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


def candidates(study: StudySetup, keep: int, *, baseline: bool = True) -> list[Candidate]:
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


def within_targets(study: StudySetup, targets: Mapping[str, str]) -> list[Candidate]:
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


def unmet_targets(study: StudySetup, targets: Mapping[str, str]) -> dict[str, str]:
    """Say of each target for which nothing is delivered why: no design keeps it, or each that does has failed."""
    best, kept = (_best_within(study, targets, failed) for failed in (undelivered(study.log), ()))
    return {
        name: f"all designs within {limit} failed" if name in kept else f"no design that was judged has {limit}"
        for name, limit in targets.items()
        if name not in best
    }


def _best_within(study: StudySetup, targets: Mapping[str, str], failed: Collection[str]) -> dict[str, Trial]:
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
    """Say which targets share a model, and where designs cost more, once measured, than their target allows."""
    targets, missed = opened.deliver.targets, misses(opened.log.read())
    goal, failed = opened.search.all_objectives[0], undelivered(opened.log)
    models = [model for model in measured_models(opened).values() if model.role == "front"]
    shared, beyond = [], []
    for name, trial in best_within(opened.history(), goal, targets, failed, missed).items():
        same = [model for model in models if model.digest == _card(trial).digest]
        if same:
            model = next((model for model in same if model.name == name), same[0])
            if model.name != name:
                shared.append(f"{name} is the model {model.name}, the best within both: it is in {model.path}")
            beyond.append(_missed(name, model, targets[name], len(missed.get(name, ())), opened.search.length))
    return shared + [line for line in beyond if line]


def _missed(name: str, model: Delivered, limit: str, tried: int, length: int) -> str:
    wanted = Objective.parse(limit)
    if not exceeds(model.costs, limit):
        others = "1 other design was" if tried == 1 else f"{tried} other designs were"
        return f"{name} is kept by {model.name}: {others} measured beyond it" if tried else ""
    least = f", the best of {tried} designs that were tried," if tried > 1 else ""
    return (
        f"{name} is missed: {model.name}{least} was measured at {wanted.name} {model.costs[wanted.name]:.4g}, above "
        f"the {wanted.bound:.4g} that the sum of its parts keeps to. If the machine was busy, measure it again with "
        f"`formwright measure {model.path} --length {length}`; if not, give a lower target"
    )
