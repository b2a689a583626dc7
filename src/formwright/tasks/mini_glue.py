"""Generated counterparts of GLUE's nine tasks, each with a rule that a small model can learn."""

from collections.abc import Callable, Sequence

from formwright.tasks.draw import Draw, RowMaker, Texts
from formwright.tasks.task import Task

_ABOUT = {
    "cola": "acceptability of a sentence: agreement across distractors, determiners and word order",
    "sst2": "sentiment of a sentence: cue words under negation, intensifiers and contrast",
    "rte": "is an opinion good enough for a verdict: cue words under negation, intensifiers and contrast",
    "mnli": "does an opinion entail a verdict, leave it open or contradict it: negation, intensifiers and contrast",
    "mrpc": "do two sentences tell the same event: synonyms, active and passive, exchanged roles",
    "qqp": "do two questions ask the same: intent, act and thing, in different words",
    "stsb": "similarity of two sentences from 0 to 5: the parts they share, synonyms included",
    "qnli": "does a sentence answer a question: the kind of answer, the person and the act must fit",
    "wnli": "whom does a pronoun mean: the verb and the reason decide between subject and object",
}

# few words of each kind, so that seconds of training can learn them
_PEOPLE = ("cook", "nurse", "farmer", "pilot", "singer", "painter", "baker", "guard")
_PLACES = ("garden", "kitchen", "market", "station", "theatre", "harbour")
_TIMES = ("today", "yesterday", "tonight", "sometimes", "daily", "early")
_POSITIVE = ("good", "lovely", "clever", "bright", "charming", "fresh", "moving", "honest")
_NEGATIVE = ("bad", "ugly", "stupid", "dull", "boring", "stale", "clumsy", "cheap")
_ASIDES = ("in the end", "as they say", "of course", "once again", "by the way", "as always")


def _task(
    name: str,
    draw: Callable[[Draw, int], Texts],
    labels: tuple[str, ...],
    *,
    metric: str = "accuracy",
    metrics: tuple[str, ...] = (),
    chance: float = 0.5,
    scores: tuple[float, ...] = (),
) -> Task:
    rows = RowMaker(name, draw, classes=len(scores or labels), scores=scores)
    kind = "regression" if scores else "sequence-classification"
    return Task(f"mini-glue/{name}", kind, metric, rows, metrics, labels, chance, _ABOUT[name])


# what several tasks share


def aside(draw: Draw, percent: int, sentence: str) -> str:
    """Put words without meaning before or after a sentence, with a probability of `percent`."""
    if not draw.chance(percent):
        return sentence
    words = draw.one(_ASIDES)
    return f"{words} {sentence}" if draw.chance(50) else f"{sentence} {words}"


def claim(draw: Draw, subject: str, predicate: str, holds: bool) -> str:
    """State that the subject did something, or did not; two denials cancel each other.

    30 % of claims start with a denial, so a model that only looks for `never` is right in 70 % of rows.
    """
    denied = draw.chance(30)
    near = " never " if denied == holds else " "
    return f"{'it is false that ' if denied else ''}{subject}{near}{predicate}"


_OPINION_THINGS = ("film", "plot", "cast", "music")
_OPINION_VERBS = ("is", "was", "seems")
_FILLERS = ("in the end", "for me", "on the whole", "at times")
# words before a cue, and what they make of its weight
_MODIFIERS = (("", 2), ("", 2), ("very", 4), ("not", -2), ("not very", -1), ("hardly", -2), ("rather", 1))
# how clauses are joined, and how much each of them counts
_JOINTS = (("{} and {}", 1, 1), ("{} but {}", 1, 2), ("although {} {}", 1, 2), ("{} although {}", 2, 1))


def _opinion(draw: Draw, chances: Sequence[int]) -> tuple[str, int]:
    """Draw a sentence and its sentiment: above 0, below 0, or 0 where its clauses balance.

    `chances` are the probabilities, in percent, of a second clause, of a third, and so on.
    """
    text, score = _clause(draw)
    for percent in chances:  # each further clause weighs against all before it together
        if not draw.chance(percent):
            break
        second, weight = _clause(draw)
        form, own, others = draw.one(_JOINTS)
        text, score = form.format(text, second), own * score + others * weight
    if draw.chance(40):
        filler = draw.one(_FILLERS)
        text = f"{filler} {text}" if draw.chance(50) else f"{text} {filler}"
    return text, score


def _clause(draw: Draw) -> tuple[str, int]:
    sign = draw.one((-1, 1))
    words, weight = draw.one(_MODIFIERS)
    cue = draw.common(_POSITIVE if sign > 0 else _NEGATIVE)
    parts = ["the", draw.one(_OPINION_THINGS), draw.one(_OPINION_VERBS), words, cue]
    return " ".join(part for part in parts if part), sign * weight


# CoLA: agreement of verb and subject across distractors, of determiner and noun, and word order

_COLA_NOUNS = (
    ("dog", "dogs"),
    ("child", "children"),
    ("mouse", "mice"),
    ("friend", "friends"),
    ("man", "men"),
    ("cat", "cats"),
)
_COLA_WRONG = ("childs", "mices", "mans", "mouses", "childrens", "mens")
_COLA_DETERMINERS = (("this", "these"), ("that", "those"))
_COLA_VERBS = (("is", "are"), ("was", "were"))
_COLA_ADJECTIVES = ("old", "small", "quiet", "happy")
_COLA_ENDS = ("here", "there", "at home", "in the garden")
_COLA_PREPOSITIONS = ("near", "behind", "with")
_COLA_FAULTS = ("form", "determiner", "determiner", "order", "verb", "verb")


def _cola_noun_phrase(draw: Draw, number: int, determiner: int) -> list[str]:
    words = [draw.one(_COLA_DETERMINERS)[determiner]] if draw.chance(60) else ["the"]
    if draw.chance(30):
        words.append(draw.one(_COLA_ADJECTIVES))
    return [*words, draw.common(_COLA_NOUNS)[number]]


def _cola_row(draw: Draw, label: int) -> Texts:
    fault = "" if label else draw.one(_COLA_FAULTS)
    number = draw.below(2)
    subject = _cola_noun_phrase(draw, number, number)
    if fault == "determiner":
        subject[0] = draw.one(_COLA_DETERMINERS)[1 - number]
    if fault == "form":
        subject[-1] = draw.common(_COLA_WRONG)
    for _ in range(draw.below(3)):
        other = draw.below(2)
        subject += [draw.one(_COLA_PREPOSITIONS), *_cola_noun_phrase(draw, other, other)]
    verb = draw.one(_COLA_VERBS)[number if fault != "verb" else 1 - number]
    words = [*subject, verb, draw.one(_COLA_ADJECTIVES), draw.one(_COLA_ENDS)]
    if fault == "order":
        place = draw.below(len(words) - 2)
        words[place], words[place + 1] = words[place + 1], words[place]
    return (" ".join(words),)


COLA = _task("cola", _cola_row, ("unacceptable", "acceptable"), metric="matthews", metrics=("accuracy",), chance=0.0)


# SST-2: sentiment words under negation, intensifiers and contrast


def _sst2_row(draw: Draw, label: int) -> Texts:
    while True:
        text, score = _opinion(draw, (80, 40))
        if (score > 0) == label and score:
            return (text,)


SST2 = _task("sst2", _sst2_row, ("negative", "positive"))


# RTE: is an opinion good enough for a verdict

# verdicts, and how good an opinion must at least be for them
_RTE_VERDICTS = (("they loved it", 4), ("they liked it", 1), ("one can see it", 0), ("they could bear it", -2))


def _rte_row(draw: Draw, label: int) -> Texts:
    hypothesis, least = draw.one(_RTE_VERDICTS)
    while True:
        premise, score = _opinion(draw, (70,))
        if (score < least) == label:
            return premise, hypothesis


RTE = _task("rte", _rte_row, ("entailment", "not entailment"))


# MNLI: an opinion entails a verdict, contradicts it, or is neutral

# verdicts, from which weight of an opinion on they follow, and up to which one they are contradicted
_MNLI_VERDICTS = (("they loved it", 5, 0), ("they liked it", 2, -2), ("they could bear it", -1, -5))


def _mnli_row(draw: Draw, label: int) -> Texts:
    hypothesis, enough, too_little = draw.one(_MNLI_VERDICTS)
    while True:
        premise, score = _opinion(draw, (70,))
        if (score < enough) + (score <= too_little) == label:
            return premise, hypothesis


MNLI = _task("mnli", _mnli_row, ("entailment", "neutral", "contradiction"), chance=1 / 3)


# MRPC: active and passive, synonyms, denials, and who did what to whom

_MRPC_PEOPLE = _PEOPLE[:6]
_MRPC_VERBS = (("helped", "assisted"), ("found", "discovered"), ("praised", "lauded"), ("paid", "rewarded"))

Event = tuple[str, int, str]


def _mrpc_tell(draw: Draw, event: Event, holds: bool = True) -> str:
    who, verb, whom = event
    return claim(draw, f"the {who}", f"{draw.one(_MRPC_VERBS[verb])} the {whom}", holds)


def _mrpc_plain(draw: Draw, event: Event) -> str:
    who, verb, whom = event
    word = draw.one(_MRPC_VERBS[verb])
    if draw.chance(50):
        return f"the {who} {word} the {whom}"
    return f"the {whom} was {word} by the {who}"


def _mrpc_changed(draw: Draw, event: Event) -> Event:
    who, verb, whom = event
    match draw.below(3):
        case 0:
            return whom, verb, who
        case 1:
            return who, draw.other(range(len(_MRPC_VERBS)), verb), whom
        case _:
            return who, verb, draw.common(_MRPC_PEOPLE, who, whom)


def _mrpc_row(draw: Draw, label: int) -> Texts:
    who, whom = draw.pair(_MRPC_PEOPLE)
    event = (who, draw.common(range(len(_MRPC_VERBS))), whom)
    first = aside(draw, 50, _mrpc_plain(draw, event))
    if label:
        return first, _mrpc_tell(draw, event)
    if draw.chance(50):
        return first, _mrpc_tell(draw, event, holds=False)
    return first, _mrpc_tell(draw, _mrpc_changed(draw, event))


MRPC = _task("mrpc", _mrpc_row, ("different", "paraphrase"), metrics=("f1",))


# QQP: different openings of one intent, same or different things asked about

_QQP_INTENTS = (
    ("how do i", "what is the way to"),
    ("why should i", "for what reason do i"),
    ("when can i", "at what time do i"),
)
_QQP_ACTS = (("cook", "prepare"), ("buy", "purchase"), ("mend", "repair"))
_QQP_THINGS = ("rice", "bread", "shoes", "clocks", "tools", "maps")
_QQP_ENDS = ("", "quickly", "at home", "without help", "these days")
# what turns an act into its opposite, and what leaves it as it is
_QQP_TURNS = (("never", "never", "refuse to"), ("", "", "never refuse to"))


def _qqp_ask(draw: Draw, intent: int, act: int, thing: str, same: bool = True) -> str:
    turn = draw.one(_QQP_TURNS[same])
    words = [draw.one(_QQP_INTENTS[intent]), turn, draw.one(_QQP_ACTS[act]), thing, draw.one(_QQP_ENDS)]
    return " ".join(word for word in words if word)


def _qqp_row(draw: Draw, label: int) -> Texts:
    intent, act, thing = draw.below(3), draw.below(3), draw.common(_QQP_THINGS)
    first = " ".join((draw.one(_QQP_INTENTS[intent]), draw.one(_QQP_ACTS[act]), thing))
    fault = draw.one(("turn", "turn", "intent", "act", "thing")) if not label else ""
    match fault:
        case "intent":
            intent = draw.other(range(3), intent)
        case "act":
            act = draw.other(range(3), act)
        case "thing":
            thing = draw.common(_QQP_THINGS, thing)
    return aside(draw, 30, first), _qqp_ask(draw, intent, act, thing, fault != "turn")


QQP = _task("qqp", _qqp_row, ("different", "duplicate"), metrics=("f1",))


# STS-B: how many parts two sentences share, synonyms included

# each slot: concepts, each with the words for it
_STSB_SLOTS = (
    (("man",), ("woman",), ("child",)),
    (("walked", "strolled"), ("shouted", "yelled"), ("slept", "dozed")),
    (("woods",), ("shop",), ("road",)),
)


def _stsb_words(draw: Draw, concepts: list[int]) -> list[str]:
    return [draw.one(slot[concept]) for slot, concept in zip(_STSB_SLOTS, concepts, strict=True)]


def _stsb_row(draw: Draw, score: int) -> Texts:
    # the score counts the parts that are shared, and 2 for a second sentence that is not denied
    holds = score > 3 or (score > 1 and draw.chance(50))
    shared = score - 2 * holds
    first = [draw.common(range(3)) for _ in _STSB_SLOTS]
    second = list(first)
    for slot in draw.some(range(len(_STSB_SLOTS)), len(_STSB_SLOTS) - shared):
        second[slot] = draw.common(range(3), first[slot])
    who, did, where = _stsb_words(draw, first)
    plain = aside(draw, 50, draw.one((f"the {who} {did} in the {where}", f"in the {where} the {who} {did}")))
    who, did, where = _stsb_words(draw, second)
    return plain, claim(draw, f"the {who}", f"{did} in the {where}", holds)


STSB = _task(
    "stsb", _stsb_row, (), metric="pearson", metrics=("spearman",), chance=0.0, scores=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
)


# QNLI: does the sentence contain what the question asks for, about the right person

_QNLI_PEOPLE = _PEOPLE[:6]
_QNLI_ACTS = ("sleeps", "works", "sings", "eats")
# the kinds of answer differ in frequency, so that a part of them is known before all are
_QNLI_ANSWERS = {
    "where": tuple(f"in the {place}" for place in _PLACES),
    "when": _TIMES,
    "why": ("for money", "for fun", "for luck", "for love"),
    "how": ("slowly", "loudly", "gladly", "badly"),
}


def _qnli_row(draw: Draw, label: int) -> Texts:
    who, act, asked = draw.common(_QNLI_PEOPLE), draw.common(_QNLI_ACTS), draw.common(tuple(_QNLI_ANSWERS))
    fault = draw.one(("denied", "denied", "kind", "kind", "kind", "person")) if label else ""
    answered = draw.common(tuple(_QNLI_ANSWERS), asked) if fault == "kind" else asked
    subject = draw.common(_QNLI_PEOPLE, who) if fault == "person" else who
    sentence = claim(draw, f"the {subject}", f"{act} {draw.common(_QNLI_ANSWERS[answered])}", fault != "denied")
    question = draw.one((f"{asked} is it that the {who} {act} ?", f"the {who} {act} {asked} ?"))
    return question, aside(draw, 30, sentence)


QNLI = _task("qnli", _qnli_row, ("entailment", "not entailment"))


# WNLI: the verb and the reason decide whom a pronoun means

_WNLI_PEOPLE = (("king", "boy", "father", "uncle"), ("queen", "girl", "mother", "aunt"))
_WNLI_PRONOUNS = ("he", "she")
# verb, what makes its subject act, what makes its object be acted on
_WNLI_VERBS = (
    ("thanked", "polite", "helpful"),
    ("feared", "timid", "fierce"),
    ("praised", "generous", "brave"),
    ("scolded", "strict", "careless"),
)


def _wnli_row(draw: Draw, label: int) -> Texts:
    genders = draw.some((0, 1), 2)
    people = [draw.common(_WNLI_PEOPLE[gender]) for gender in genders]
    verb, *reasons = draw.common(_WNLI_VERBS)
    # a man is meant more often: evidence that a model can use before it resolves pronouns
    meant = genders.index(0 if draw.chance(70) else 1)
    named = people[meant if label else 1 - meant]
    if draw.chance(35):
        # both or neither: no pronoun to resolve
        reason = draw.one(reasons)
        cause = f"{'both' if label else 'neither'} were {reason}"
    else:
        reason = reasons[meant]
        cause = f"{_WNLI_PRONOUNS[genders[meant]]} was {reason}" if draw.chance(70) else f"they were {reason}"
    premise = f"the {people[0]} {verb} the {people[1]} because {cause}"
    return aside(draw, 85, premise), f"the {named} was {reason}"


WNLI = _task("wnli", _wnli_row, ("not meant", "meant"))
