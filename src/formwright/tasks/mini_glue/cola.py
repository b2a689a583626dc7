"""Acceptability: agreement of verb and subject across distractors, of determiner and noun, and word order."""

from formwright.tasks.draw import Draw
from formwright.tasks.mini_glue.make import RowMaker, Texts
from formwright.tasks.task import Task

_NOUNS = (
    ("dog", "dogs"),
    ("child", "children"),
    ("mouse", "mice"),
    ("friend", "friends"),
    ("man", "men"),
    ("cat", "cats"),
)
_WRONG = ("childs", "mices", "mans", "mouses", "childrens", "mens")
_DETERMINERS = (("this", "these"), ("that", "those"))
_VERBS = (("is", "are"), ("was", "were"))
_ADJECTIVES = ("old", "small", "quiet", "happy")
_ENDS = ("here", "there", "at home", "in the garden")
_PREPOSITIONS = ("near", "behind", "with")
_FAULTS = ("form", "determiner", "determiner", "order", "verb", "verb")


def _noun_phrase(draw: Draw, number: int, determiner: int) -> list[str]:
    words = [draw.one(_DETERMINERS)[determiner]] if draw.chance(60) else ["the"]
    if draw.chance(30):
        words.append(draw.one(_ADJECTIVES))
    return [*words, draw.common(_NOUNS)[number]]


def _draw(draw: Draw, label: int) -> Texts:
    fault = "" if label else draw.one(_FAULTS)
    number = draw.below(2)
    subject = _noun_phrase(draw, number, number)
    if fault == "determiner":
        subject[0] = draw.one(_DETERMINERS)[1 - number]
    if fault == "form":
        subject[-1] = draw.common(_WRONG)
    for _ in range(draw.below(3)):
        other = draw.below(2)
        subject += [draw.one(_PREPOSITIONS), *_noun_phrase(draw, other, other)]
    verb = draw.one(_VERBS)[number if fault != "verb" else 1 - number]
    words = [*subject, verb, draw.one(_ADJECTIVES), draw.one(_ENDS)]
    if fault == "order":
        place = draw.below(len(words) - 2)
        words[place], words[place + 1] = words[place + 1], words[place]
    return (" ".join(words),)


TASK = Task(
    "mini-glue/cola",
    "sequence-classification",
    "matthews",
    RowMaker("cola", _draw),
    metrics=("accuracy",),
    labels=("unacceptable", "acceptable"),
    chance=0.0,
    about="acceptability of a sentence: agreement across distractors, determiners and word order",
)
