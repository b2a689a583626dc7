import re

from formwright.tasks.rows import TranslationRows
from formwright.tasks.test_split import open_test
from formwright.tasks.translation import TRANSLATION

PINNED = "e7d674005a27ef2ba7f1c358"
FIRST = {"belo": "dog", "osko": "friend", "galdo": "horse", "hom": "man"}
SECOND = {"nimu": "child", "tirra": "bird", "frim": "woman", "navka": "ship"}
NOUNS = FIRST | SECOND
PLURALS = {"child": "children", "man": "men", "woman": "women"}
ADJECTIVES = {"vek": "old", "pit": "small", "rud": "red", "rap": "quick"}
VERBS = {"vid": "see", "lib": "love", "sek": "follow"}
TIMES = {"hodi": "today", "ofta": "often", "denu": "again"}
PHRASE = r"l(o|a)(i?) (\w+?)(n?)(?: (vek|pit|rud|rap)(o|a)(i?))?"
SENTENCE = re.compile(rf"(?:(\w{{4}}) )?{PHRASE} {PHRASE} (ne )?(vid|lib|sek)(e|un)( pas)?( ken)?")


def rows() -> list[TranslationRows]:
    return [TRANSLATION.search_view().train, TRANSLATION.search_view().validation, open_test(TRANSLATION)]


def english(article: str, plural: str, noun: str, many: str, *adjective: str) -> str:
    """Translate a phrase back, checking that article, noun and adjective agree."""
    assert bool(plural) == bool(many)
    assert noun in (FIRST if article == "o" else SECOND)
    word = PLURALS.get(NOUNS[noun], NOUNS[noun] + "s") if plural else NOUNS[noun]
    stem, *agreeing = adjective
    if not stem:
        return f"the {word}"
    assert agreeing == [article, plural]
    return f"the {ADJECTIVES[stem]} {word}"


def back(target: str) -> str:
    """Translate a sentence back into English by a grammar written apart from the generator's."""
    found = SENTENCE.fullmatch(target)
    assert found is not None, target
    time, *rest = found.groups()
    subject, thing, (denied, stem, number, past, closed) = rest[:7], rest[7:14], rest[14:]
    assert bool(denied) == bool(closed)
    assert (number == "un") == bool(subject[1])
    verb = VERBS[stem]
    if denied:
        verb = f"{'did' if past else 'do' if number == 'un' else 'does'} not {verb}"
    else:
        verb = f"did {verb}" if past else verb if number == "un" else verb + "s"
    words = [english(*subject), verb, english(*thing), TIMES[time] if time else ""]
    return " ".join(word for word in words if word)


def test_rows_are_the_same_on_every_machine() -> None:
    assert "".join(part.digest[:8] for part in rows()) == PINNED
    assert [len(part) for part in rows()] == [8192, 1024, 1024]
    sources = [source for part in rows() for source in part.sources]
    assert len(set(sources)) == len(sources)
    for part in rows():
        assert [back(target) for target in part.targets] == list(part.sources)
