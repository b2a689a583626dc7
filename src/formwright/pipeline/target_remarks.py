"""Remarks on models that were delivered for targets: which share a folder, and which miss their target."""

from formwright.core.records import Objective
from formwright.pipeline.candidates import best_digests, exceeds, misses
from formwright.pipeline.delivered import Delivered, measured_models
from formwright.pipeline.run_folder import Opened


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
