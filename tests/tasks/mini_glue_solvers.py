"""Readers of the generated sentences, written apart from the generators: they find each label from the words alone."""

import re

ASIDE = re.compile(r"\b(in the end|as they say|of course|once again|by the way|as always)\b")
SYNONYMS = {
    "assisted": "helped", "discovered": "found", "lauded": "praised", "rewarded": "paid",
    "strolled": "walked", "yelled": "shouted", "dozed": "slept",
    "prepare": "cook", "purchase": "buy", "repair": "mend",
}  # fmt: skip
GOOD = {"good", "lovely", "clever", "bright", "charming", "fresh", "moving", "honest"}
BAD = {"bad", "ugly", "stupid", "dull", "boring", "stale", "clumsy", "cheap"}


def plain(text: str) -> str:
    """Drop asides, and give every word its commonest synonym."""
    words = ASIDE.sub(" ", text).split()
    return " ".join(SYNONYMS.get(word, word) for word in words)


def affirmed(text: str) -> tuple[str, bool]:
    """Split a claim into what is claimed and whether it is affirmed."""
    bare = plain(text)
    denials = ("it is false that" in bare) + (" never " in bare)
    return bare.replace("it is false that ", "").replace(" never ", " "), denials % 2 == 0


def feeling(clause: str) -> int:
    (cue,) = [word for word in clause.split() if word in GOOD | BAD]
    before = clause[: clause.index(cue)].split()
    weight = 1 if "rather" in before else 4 if "very" in before and "not" not in before else 2
    if "not" in before or "hardly" in before:
        weight = -1 if "very" in before else -weight
    return weight * (1 if cue in GOOD else -1)


JOINTS = {"and": (1, 1), "but": (1, 2), "although": (2, 1), "": (1, 2)}  # the last stands after a first `although`


def weighed(text: str) -> int:
    """Read an opinion: above 0 where it is good, below 0 where it is bad."""
    bare = re.sub("in the end|for me|on the whole|at times", "", text)
    clause = r"the \w+ (?:is|was|seems) (?:\w+ )*?(?:" + "|".join(GOOD | BAD) + ")"
    score, *others = map(feeling, re.findall(clause, bare))
    for joint, other in zip([gap.strip() for gap in re.split(clause, bare)[1:-1]], others, strict=True):
        before, after = JOINTS[joint]
        score = before * score + after * other
    return score


def sst2(text: str) -> int:
    return int(weighed(text) > 0)


LEAST = {"they loved it": 4, "they liked it": 1, "one can see it": 0, "they could bear it": -2}


def rte(opinion: str, verdict: str) -> int:
    return int(weighed(opinion) < LEAST[verdict])


BOUNDS = {"they loved it": (5, 0), "they liked it": (2, -2), "they could bear it": (-1, -5)}


def mnli(opinion: str, verdict: str) -> int:
    enough, too_little = BOUNDS[verdict]
    return 0 if weighed(opinion) >= enough else 2 if weighed(opinion) <= too_little else 1


SINGULAR = r"(?:this|that|the) (?:(?:old|small|quiet|happy) )?(?:dog|child|mouse|friend|man|cat)\b"
PLURAL = r"(?:these|those|the) (?:(?:old|small|quiet|happy) )?(?:dogs|children|mice|friends|men|cats)\b"
REST = rf"(?: (?:near|behind|with) (?:{SINGULAR}|{PLURAL}))*"
END = r"(?:old|small|quiet|happy) (?:here|there|at home|in the garden)"
ACCEPTABLE = re.compile(f"(?:{SINGULAR}{REST} (?:is|was)|{PLURAL}{REST} (?:are|were)) {END}")


def cola(text: str) -> int:
    return int(ACCEPTABLE.fullmatch(text) is not None)


def mrpc(first: str, second: str) -> int:
    event = re.sub(r"^the (\w+) was (\w+) by the (\w+)$", r"the \3 \2 the \1", plain(first))
    return int(affirmed(second) == (event, True))


def stsb(first: str, second: str) -> float:
    claimed, holds = affirmed(second)
    shared = set(plain(first).split()) & set(claimed.split()) - {"the", "in"}
    return float(len(shared) + 2 * holds)


def answered_kind(claim: str) -> str:
    if claim.endswith(("slowly", "loudly", "gladly", "badly")):
        return "how"
    return "where" if " in the " in claim else "why" if " for " in claim else "when"


def qnli(first: str, second: str) -> int:
    asked = re.search("where|when|why|how", first)[0]
    who, act = re.search(r"the (\w+) (\w+)", first).groups()
    claimed, holds = affirmed(second)
    return int(not (holds and answered_kind(claimed) == asked and claimed.startswith(f"the {who} {act} ")))


_OPENINGS = (
    ("how do i", "what is the way to"),
    ("why should i", "for what reason do i"),
    ("when can i", "at what time do i"),
)
INTENTS = {opening: intent for intent, openings in enumerate(_OPENINGS) for opening in openings}


def asked(text: str) -> tuple[int, list[str], bool]:
    """Read a question: its intent, its act and thing, and whether it is meant straight."""
    bare = plain(text)
    (opening,) = [words for words in INTENTS if bare.startswith(words)]
    rest = bare[len(opening) :]
    turns = ("never" in rest) + ("refuse to" in rest)
    return INTENTS[opening], rest.replace("never", "").replace("refuse to", "").split()[:2], turns % 2 == 0


def qqp(first: str, second: str) -> int:
    return int(asked(first) == asked(second))


MEN = {"king", "boy", "father", "uncle"}
OF_SUBJECT = {"polite", "timid", "generous", "strict"}


def wnli(first: str, second: str) -> int:
    who, _, whom, cause = re.search(r"the (\w+) (\w+) the (\w+) because (\w+)", plain(first)).groups()
    _, named, _, reason = second.split()
    if cause in ("both", "neither"):
        return int(cause == "both")
    if cause != "they":
        assert ((named in MEN) == (cause == "he")) == (named == (who if reason in OF_SUBJECT else whom))
    return int(named == (who if reason in OF_SUBJECT else whom))
