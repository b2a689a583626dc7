"""The page of a compressed model: what was asked for, what was delivered for it, and what is to be known of that."""

from formwright.report.facts import StudyFacts
from formwright.report.figures import figure
from formwright.report.markup import Markup, join, tag
from formwright.report.models import FinalModel
from formwright.report.targets import AskedTarget
from formwright.study.conclusion import between, comparison_line

_ABOUT = (
    "For each target the best design that keeps it is delivered. Milliseconds are those of the delivered model itself, "
    "measured on the machine that made it; the search added them up from the model's parts."
)


def asked_and_met(facts: StudyFacts) -> Markup:
    """List the targets with the models that were chosen for them; nothing for studies without targets."""
    if not facts.targets:
        return join()
    goal = facts.goals[0].name
    heads = [("Target", ""), ("Asked for", "number"), ("Model", ""), ("Its cost", "number")]
    heads += [(f"validation {goal}", "number"), ("", "")]
    top = tag("tr", *(tag("th", head, class_=kind) for head, kind in heads))
    table = tag("table", tag("thead", top), tag("tbody", *(_row(facts, one) for one in facts.targets)), class_="asked")
    title = tag("h2", "Targets, asked and met", id="targets-title")
    scroll = tag("div", table, class_="scroll", tabindex=0, role="region", aria_labelledby="targets-title")
    return tag("section", title, tag("p", _ABOUT, class_="note"), scroll, id="targets")


def _row(facts: StudyFacts, one: AskedTarget) -> Markup:
    goal, cost, model = facts.goals[0].name, one.limit.name, one.model
    asked = f"{cost.removesuffix('_ms')} \N{LESS-THAN OR EQUAL TO} {figure(one.limit.bound, cost)}"
    cells = [
        tag("th", one.name, scope="row"),
        tag("td", asked, _small(_share(facts, cost, one.limit.bound)), class_="number"),
        tag("td", tag("b", model.name) if model else "\N{EN DASH}"),
        tag("td", figure(one.met, cost), _small(_share(facts, cost, one.met)), class_="number"),
        tag("td", *_score(model, goal), class_="number"),
        tag("td", *_verdict(one), *(_small(line) for line in _told_apart(facts, one))),
    ]
    return tag("tr", *cells)


def _score(model: FinalModel | None, goal: str) -> list[Markup | str]:
    if model is None:
        return [figure(None, goal)]
    evidence = model.evidence.get("validation")
    interval = None if evidence is None else evidence.intervals.get(goal)
    return [figure(model.validation.get(goal), goal), _small("" if interval is None else between(interval))]


def _told_apart(facts: StudyFacts, one: AskedTarget) -> list[str]:
    """Say how a model compares with the teacher."""
    found = None if one.model is None else facts.comparisons.get(one.model.name)
    other = facts.teacher
    if found is None or other is None or one.model is None:
        return []
    scores = [each.scores(found.split).get(found.metric) for each in (one.model, other)]
    evidence = one.model.evidence.get(found.split)
    beats = None if evidence is None else evidence.beats_majority(found.metric)
    if scores[0] is None or scores[1] is None:
        return []
    return [comparison_line(found, scores[0], scores[1], beats=beats, other="the teacher")]


def _share(facts: StudyFacts, name: str, cost: float | None) -> str:
    teacher = facts.teacher
    whole = None if teacher is None else {"params": teacher.params, **teacher.costs}.get(name)
    return f"{100 * cost / whole:.0f} % of the teacher" if cost is not None and whole else ""


def _small(words: str) -> Markup:
    return tag("small", words) if words else join()


def _verdict(one: AskedTarget) -> list[Markup]:
    """Say whether a target is met, and how that came about."""
    if one.model is None:
        return [_badge("not delivered") if one.digest else _badge("no design keeps it", "failed")]
    badge = _badge("exceeded", "failed") if one.exceeded else _badge("kept", "running")
    return [badge, *(tag("small", line) for line in _remarks(one))]


def _badge(word: str, kind: str = "") -> Markup:
    return tag("span", word, class_=f"badge {kind}".strip())


def _remarks(one: AskedTarget) -> list[str]:
    assert one.model is not None
    designs = "1 other design was" if one.tried == 1 else f"{one.tried} other designs were"
    lines = [f"the best within this target and {one.model.name}" if one.shared else ""]
    if one.exceeded:
        lines.append(f"the sum of its parts is {figure(one.counted, one.limit.name)}")
        lines.append(f"the fastest of {one.tried} designs that were measured" if one.tried > 1 else "")
    elif one.tried:
        lines.append(f"{designs} measured beyond it")
    return [line for line in lines if line]
