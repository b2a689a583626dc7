"""Coreference: the verb and the reason decide whom a pronoun means."""

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.make import RowMaker, Texts
from formwright.tasks.mini_glue.phrases import aside
from formwright.tasks.task import Task

_PEOPLE = (("king", "boy", "father", "uncle"), ("queen", "girl", "mother", "aunt"))
_PRONOUNS = ("he", "she")
# verb, what makes its subject act, what makes its object be acted on
_VERBS = (
    ("thanked", "polite", "helpful"),
    ("feared", "timid", "fierce"),
    ("praised", "generous", "brave"),
    ("scolded", "strict", "careless"),
)


def _draw(draw: Draw, label: int) -> Texts:
    genders = draw.some((0, 1), 2)
    people = [draw.common(_PEOPLE[gender]) for gender in genders]
    verb, *reasons = draw.common(_VERBS)
    # a man is meant more often: evidence that a model can use before it resolves pronouns
    meant = genders.index(0 if draw.chance(70) else 1)
    named = people[meant if label else 1 - meant]
    if draw.chance(35):
        # both or neither: no pronoun to resolve
        reason = draw.one(reasons)
        cause = f"{'both' if label else 'neither'} were {reason}"
    else:
        reason = reasons[meant]
        cause = f"{_PRONOUNS[genders[meant]]} was {reason}" if draw.chance(70) else f"they were {reason}"
    premise = f"the {people[0]} {verb} the {people[1]} because {cause}"
    return aside(draw, 85, premise), f"the {named} was {reason}"


TASK = Task(
    "mini-glue/wnli",
    "sequence-classification",
    "accuracy",
    RowMaker("wnli", _draw),
    labels=("not meant", "meant"),
    chance=0.5,
    about="whom does a pronoun mean: the verb and the reason decide between subject and object",
)
