"""Entities as the CoNLL evaluation finds them, and the official score of SemEval-2010 task 8, on hand-made tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput
from formwright.tasks.metrics import metric
from formwright.tasks.name_metrics import entities, relation_table

TAGS = st.lists(st.sampled_from(("O", "B-a", "I-a", "B-b", "I-b", "E-a", "S-b")), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("O O O", []),
        ("B-per I-per O B-loc", [("per", 0, 2), ("loc", 3, 4)]),
        ("B-per B-per", [("per", 0, 1), ("per", 1, 2)]),  # two entities side by side
        ("I-per I-per O", [("per", 0, 2)]),  # the older scheme, without B
        ("O I-loc I-per", [("loc", 1, 2), ("per", 2, 3)]),  # another type ends an entity
        ("B-per I-loc", [("per", 0, 1), ("loc", 1, 2)]),
        ("S-per B-loc I-loc E-loc O E-per", [("per", 0, 1), ("loc", 1, 4), ("per", 5, 6)]),
        ("U-per B-loc L-loc I-loc", [("per", 0, 1), ("loc", 1, 3), ("loc", 3, 4)]),
        ("B-creative-work I-creative-work", [("creative-work", 0, 2)]),
        ("NOUN VERB", []),
    ],
)
def test_entities_are_found_as_the_conll_evaluation_does(tags: str, found: list[tuple[str, int, int]]) -> None:
    assert list(entities(tags.split())) == found


def test_an_entity_counts_only_with_its_type_and_all_its_words() -> None:
    truth = [["B-per", "I-per", "O", "B-loc", "O"], ["B-org", "O"]]
    said = [["B-per", "I-per", "O", "B-org", "O"], ["B-org", "I-org"]]
    # three entities each, of which one is right: the type of the second and the end of the third are wrong
    assert metric("entity-f1").compute(said, truth) == pytest.approx(2 * 1 / (3 + 3))
    assert metric("tag-accuracy").compute(said, truth) == pytest.approx(5 / 7)
    assert metric("entity-f1").compute([["O"]], [["O"]]) == 0.0
    with pytest.raises(IllegalInput, match="each word"):
        metric("entity-f1").compute([["O"]], [["O", "O"]])


@given(st.lists(TAGS, min_size=1, max_size=5))
def test_perfect_tags_have_the_best_score_and_entities_do_not_overlap(rows: list[list[str]]) -> None:
    assert metric("tag-accuracy").compute(rows, rows) == 1.0
    some = any(list(entities(row)) for row in rows)
    assert metric("entity-f1").compute(rows, rows) == float(some)
    for row in rows:
        covered = [place for _, first, behind in entities(row) for place in range(first, behind)]
        assert covered == [place for place, tag in enumerate(row) if tag != "O"]


def test_relations_are_scored_as_the_official_scorer_does() -> None:
    truth = ["A(e1,e2)"] * 4 + ["A(e2,e1)"] * 2 + ["B(e1,e2)"] * 3 + ["Other"] * 3
    said = ["A(e1,e2)", "A(e1,e2)", "A(e2,e1)", "Other", "A(e2,e1)", "B(e1,e2)", "B(e1,e2)", "B(e2,e1)", "Other"]
    said += ["A(e1,e2)", "Other", "Other"]
    # A: 3 right of 5 said and 6 true (one has the wrong direction); B: 1 right of 3 said and 3 true
    precision, recall = 3 / 5, 3 / 6
    a, b = 2 * precision * recall / (precision + recall), 1 / 3
    assert metric("relation-f1").compute(said, truth) == pytest.approx((a + b) / 2)


def test_other_alone_scores_nothing_and_never_helps() -> None:
    truth = ["A(e1,e2)", "Other", "Other"]
    assert metric("relation-f1").compute(["A(e1,e2)", "Other", "Other"], truth) == 1.0
    assert metric("relation-f1").compute(["A(e1,e2)", "A(e1,e2)", "Other"], truth) == pytest.approx(2 / 3)
    assert metric("relation-f1").compute(["Other"] * 3, truth) == 0.0
    assert metric("relation-f1").compute(["A(e2,e1)", "Other", "Other"], truth) == 0.0  # the wrong direction


@given(st.lists(st.tuples(*[st.sampled_from(("A(e1,e2)", "A(e2,e1)", "B(e1,e2)", "Other"))] * 2), min_size=1))
def test_relations_agree_with_precision_and_recall_by_hand(pairs: list[tuple[str, str]]) -> None:
    said, truth = zip(*pairs, strict=True)
    names = sorted({name[0] for name in (*said, *truth)} - {"O"})
    scores = []
    for name in names:
        hits = sum(one == other and one[0] == name for one, other in pairs)
        guessed, true = (sum(one[0] == name for one in side) for side in (said, truth))
        scores.append(2 * hits / (guessed + true))
    if names:
        assert metric("relation-f1").compute(said, truth) == pytest.approx(np.mean(scores))
        assert len(relation_table(said, truth)) == len(pairs)
