"""The page of a compressed model: the widths that its layers may have, and those that the delivered models have."""

from formwright.report.chosen import Chosen, chosen_of, teacher_of
from formwright.report.compression import Compression, Target
from formwright.report.facts import StudyFacts
from formwright.report.figures import figure, long_count
from formwright.report.markup import Markup, join, tag
from formwright.report.svg_space import draw_space
from formwright.report.svg_widths import draw_widths, listed

_MOST_NAMES = 12
_ABOUT_CHOSEN = (
    "What each layer of a delivered model keeps: a bar is what is left of the full width, and the number above it says "
    "how many heads or channels that are."
)


def search_space(facts: StudyFacts) -> Markup:
    """Draw the widths that each layer may have, above the targets they come from; nothing for other studies."""
    found = facts.compression
    if found is None:
        return join()
    drawing = tag("figure", Markup(draw_space(found)), tabindex=0)
    title, about = tag("h2", "Search space, layer by layer"), tag("p", _about_space(found), class_="note")
    return tag("section", title, about, drawing, _as_numbers(found), _targets(found), id="space")


def chosen_widths(facts: StudyFacts) -> Markup:
    """Draw the widths of the teacher and of the delivered models, one below the other; nothing for other studies."""
    found = facts.compression
    if found is None:
        return join()
    models, teacher = chosen_of(facts, found), teacher_of(facts, found)
    top = tag("tr", *(tag("th", head) for head in ("Model", "Attention heads", "Feed-forward channels")))
    rows = [_row(facts, found, one, teacher.cost) for one in (teacher, *models.drawn)]
    table = tag("table", tag("thead", top), tag("tbody", *rows), class_="chosen")
    lines = [
        "" if models.drawn or models.unknown else "No model has been delivered yet.",
        _named("Delivered too, and not drawn", models.further),
        _named("Not drawn, since no trial has its design", models.unknown),
    ]
    title = tag("h2", "Chosen widths, layer by layer", id="chosen-title")
    scroll = tag("div", table, class_="scroll", tabindex=0, role="region", aria_labelledby="chosen-title")
    notes = [tag("p", line, class_="note") for line in lines if line]
    return tag("section", title, tag("p", _ABOUT_CHOSEN, class_="note"), scroll, *notes, id="chosen-widths")


def _about_space(found: Compression) -> str:
    nets = "1 sub-network" if found.count == 1 else f"{long_count(found.count)} sub-networks"
    sizes = listed(found.hidden)
    hidden = f" The hidden size is {sizes}." if len(found.hidden) == 1 else ""
    hidden = f" All layers together have one of the hidden sizes {sizes}." if len(found.hidden) > 1 else hidden
    return (
        f"Every dot is a width that a layer of {found.model} may have, and a grey bar reaches to the full one: "
        f"{nets} in all.{hidden}"
    )


def _as_numbers(found: Compression) -> Markup:
    """List the widths, for those who cannot see the drawing, and where numbers have no room in it."""
    top = tag("tr", *(tag("th", head) for head in ("Layer", "Attention heads", "Feed-forward channels")))
    rows = [
        tag("tr", tag("th", str(index), scope="row"), tag("td", listed(heads)), tag("td", listed(channels)))
        for index, (heads, channels) in enumerate(zip(found.heads, found.channels, strict=True), 1)
    ]
    table = tag("div", tag("table", tag("thead", top), tag("tbody", *rows)), class_="scroll", tabindex=0)
    return tag("details", tag("summary", "All widths as numbers"), table)


def _targets(found: Compression) -> Markup:
    if not found.targets:
        return join()
    heads = (f"Aimed at, {found.cost.removesuffix('_ms')}", "Of the teacher", "Nearest sub-network", "Difference")
    top = tag("tr", *(tag("th", head, class_="number") for head in heads))
    rows = [_target(found, target) for target in found.targets]
    table = tag("table", tag("thead", top), tag("tbody", *rows), class_="targets")
    return join(tag("h3", "Costs at which the space was drawn up"), tag("div", table, class_="scroll", tabindex=0))


def _target(found: Compression, target: Target) -> Markup:
    share = _share(target.wanted, found.teacher.costs.get(found.cost)) or "\N{EN DASH}"
    cells = [figure(target.wanted, found.cost), share, figure(target.met, found.cost), f"{100 * target.off:+.1f} %"]
    return tag("tr", *(tag("td", cell, class_="number") for cell in cells))


def _row(facts: StudyFacts, found: Compression, one: Chosen, whole: float | None) -> Markup:
    goal, teacher = facts.goals[0].name, one.model.role == "teacher"
    share = "" if teacher else _share(one.cost, whole)
    words = [
        f"{goal} {figure(one.model.validation.get(goal), goal)} on validation",
        f"{found.cost.removesuffix('_ms')} {figure(one.cost, found.cost)}",
        f"{share} of the teacher" if share else "",
        f"hidden size {one.hidden}" if one.hidden and len(found.hidden) > 1 else "",
    ]
    badge = join(" ", tag("span", "teacher", class_="badge")) if teacher else ""
    name = tag("b", found.model if teacher else one.model.name)
    head = tag("th", name, badge, *(tag("small", line) for line in words if line), scope="row")
    heads = draw_widths("heads", one.heads, found.full_heads)
    channels = draw_widths("channels", one.channels, found.full_channels)
    return tag("tr", head, tag("td", Markup(heads)), tag("td", Markup(channels)))


def _share(part: float | None, whole: float | None) -> str:
    return f"{100 * part / whole:.0f} %" if part is not None and whole else ""


def _named(words: str, names: tuple[str, ...]) -> str:
    left = len(names) - _MOST_NAMES
    more = f" and {left:,} more" if left > 0 else ""
    return f"{words}: {', '.join(names[:_MOST_NAMES])}{more}." if names else ""
