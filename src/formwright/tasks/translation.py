"""Translation into an invented language: other words, other order, and agreement.

The source is simple English. In the target the verb stands last and its tense behind it, adjectives follow their noun,
articles and adjectives agree with it in class and number, and a denial embraces the verb.
"""

from dataclasses import dataclass

from formwright.core.rng import derive
from formwright.tasks.draw import Draw, shuffled
from formwright.tasks.rows import Splits, TranslationRows
from formwright.tasks.task import Task

SIZES = (8192, 1024, 1024)
# English singular and plural, and the noun in the target, by its class there
_NOUNS = (
    (("dog", "dogs", "belo"), ("friend", "friends", "osko"), ("horse", "horses", "galdo"), ("man", "men", "hom")),
    (("child", "children", "nimu"), ("bird", "birds", "tirra"), ("woman", "women", "frim"), ("ship", "ships", "navka")),
)
_ADJECTIVES = (("old", "vek"), ("small", "pit"), ("red", "rud"), ("quick", "rap"))
# present singular, present plural, base form; stem in the target
_VERBS = (("sees", "see", "see", "vid"), ("loves", "love", "love", "lib"), ("follows", "follow", "follow", "sek"))
_TIMES = (("", ""), ("today", "hodi"), ("often", "ofta"), ("again", "denu"))
_ENDINGS = (("o", "oi"), ("a", "ai"))  # by class and number


@dataclass(frozen=True)
class _Phrase:
    source: str
    target: str
    plural: int


def _noun_phrase(draw: Draw) -> _Phrase:
    group, plural = draw.below(2), draw.below(2)
    noun, ending = draw.one(_NOUNS[group]), _ENDINGS[group][plural]
    source, target = ["the", noun[plural]], ["l" + ending, noun[2] + ("n" if plural else "")]
    if draw.chance(50):
        adjective, stem = draw.one(_ADJECTIVES)
        source.insert(1, adjective)
        target.append(stem + ending)
    return _Phrase(" ".join(source), " ".join(target), plural)


def _sentence(draw: Draw) -> tuple[str, str]:
    subject, thing = _noun_phrase(draw), _noun_phrase(draw)
    verb, (time, when) = draw.one(_VERBS), draw.one(_TIMES)
    denied, past = draw.chance(30), draw.chance(40)
    if denied:
        auxiliary = "did" if past else ("does", "do")[subject.plural]
        english = f"{auxiliary} not {verb[2]}"
    else:
        english = f"did {verb[2]}" if past else verb[subject.plural]
    stem = verb[3] + ("un" if subject.plural else "e")
    embraced = ["ne", stem, "pas", "ken"] if past else ["ne", stem, "ken"]
    verb_phrase = embraced if denied else [stem, "pas"] if past else [stem]
    parts = [when, subject.target, thing.target, *verb_phrase]
    source = " ".join(part for part in (subject.source, english, thing.source, time) if part)
    return source, " ".join(part for part in parts if part)


def translation_splits() -> Splits[TranslationRows]:
    """Draw sentences until enough are different, and deal them to the splits."""
    rng = derive(0, "translation")
    draw, found = Draw(rng), dict[str, str]()
    while len(found) < sum(SIZES):
        source, target = _sentence(draw)
        found[source] = target
    rows = list(found.items())
    order = iter(shuffled(rng, len(rows)))
    dealt = [[rows[next(order)] for _ in range(size)] for size in SIZES]
    return Splits(*(TranslationRows(tuple(s for s, _ in part), tuple(t for _, t in part)) for part in dealt))


TRANSLATION = Task(
    "translation",
    "seq2seq-lm",
    "perplexity",
    translation_splits,
    ("perplexity", "same-text"),
    about="simple English into an invented language: other words, other order, agreement",
)
