"""Coreference: the verb and the reason decide whom a pronoun means."""

from formwright.tasks.mini_glue.draw import Draw
from formwright.tasks.mini_glue.make import Recipe, Texts
from formwright.tasks.mini_glue.words import PEOPLE
from formwright.tasks.task import Task

_PEOPLE = PEOPLE[:4]
# verb, what makes its subject act, what makes its object be acted on
_VERBS = (
    ("thanked", "polite", "helpful"),
    ("feared", "timid", "fierce"),
    ("praised", "generous", "brave"),
    ("scolded", "strict", "careless"),
)


def _draw(draw: Draw, label: int) -> Texts:
    who, whom = draw.some(_PEOPLE, 2)
    verb, of_subject, of_object = draw.one(_VERBS)
    about_subject = draw.chance(50)
    reason = of_subject if about_subject else of_object
    denied = draw.chance(25)
    meant, wrong = (who, whom) if about_subject else (whom, who)
    if denied:
        premise = f"the {who} never {verb} the {whom} although they were {reason}"
    else:
        premise = f"the {who} {verb} the {whom} because they were {reason}"
    return draw.aside(60, draw.aside(60, premise)), f"the {meant if label else wrong} was {reason}"


TASK = Task(
    "mini-glue/wnli",
    "sequence-classification",
    "accuracy",
    Recipe("wnli", _draw),
    labels=("not meant", "meant"),
    chance=0.5,
    about="whom does a pronoun mean: the verb and the reason decide between subject and object",
)
