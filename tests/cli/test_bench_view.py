from formwright.cli.bench_view import _drawn, _found, _headline


def test_a_curve_is_drawn_from_the_least_to_the_most() -> None:
    assert _drawn([0.0, 1.0], 0.0, 1.0) == "▁▁▁▁▁█████"
    assert _drawn([number / 9 for number in range(10)], 0.0, 1.0) == "▁▂▃▃▄▅▆▆▇█"
    assert _drawn([0.5] * 100, 0.5, 0.5) == "▁" * 10
    assert _drawn([0.25], 0.0, 0.5) == "▅" * 10


def test_how_soon_the_best_was_found() -> None:
    assert _found({"evaluations": 41.0, "share": 0.9}) == "41, 90%"
    assert _found({"evaluations": None, "share": 0.25}) == "25%"


def test_the_headline_says_what_was_searched() -> None:
    facts = {
        "task": "t",
        "objective": "accuracy:max",
        "steps": 300,
        "space": "s",
        "tabulated": 9312,
        "designs": 9312,
        "best": 0.9,
        "runs": 50,
        "evaluations": 100,
    }
    whole = "t, accuracy:max after 300 steps: all 9,312 designs of s, the best 0.9000; for each method 50 x 100"
    assert _headline(facts).startswith(whole)
    assert "2,000 of the 9,312 designs of s" in _headline({**facts, "tabulated": 2000})
