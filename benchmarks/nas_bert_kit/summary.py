"""What the rows of all seeds come to: facts as JSON, and tables in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from formwright.core.rng import derive
from nas_bert_kit.bench import Row
from nas_bert_kit.students import ARMS

Facts = dict[str, Any]
_DRAWS = 1000  # of the bootstrap
_NAMES = {"found": "found", "found-fresh": "found, fresh layers", "bert": "BERT's shape"}


def correlation(rows: Sequence[Row], first: str, second: str) -> tuple[float, float, float]:
    """Give Kendall's tau of two columns, and the middle 95 % of its bootstrap."""
    pair = np.array([[row[first], row[second]] for row in rows])
    rng = derive(0, "bootstrap")
    drawn = (pair[rng.integers(len(pair), size=len(pair))] for _ in range(_DRAWS))
    low, high = np.nanquantile([kendalltau(*sample.T).statistic for sample in drawn], (0.025, 0.975))
    return float(kendalltau(*pair.T).statistic), float(low), float(high)


def ordered(rows: Sequence[Row]) -> Facts:
    """Say how well the sum of losses orders whole students, how well their size alone does, and where each lies."""
    smaller = [{**row, "size": -row["params"]} for row in rows]  # the larger, the nearer: by size alone
    return {
        "students": len(rows),
        "tau": correlation(rows, "loss", "distance"),
        "by_size": correlation(smaller, "size", "distance"),
        "points": [[row["loss"], row["distance"]] for row in rows],
    }


def added_up(rows: Sequence[Row]) -> Facts:
    """Say how far sums of milliseconds are from measured ones, and how well they order students."""
    off = float(np.mean([abs(row["added"] / row["measured"] - 1) for row in rows]))
    return {"students": len(rows), "error": off, "tau": correlation(rows, "added", "measured")}


def won(pairs: Sequence[tuple[Row, Row]]) -> Facts:
    """Say how often a chain that stayed is better than one of its bin that was dropped, and by how much."""
    losses = np.array([[row["loss"] for row in pair] for pair in pairs])
    stayed, dropped = losses.mean(axis=0).tolist()
    share = float(np.mean(losses[:, 0] < losses[:, 1]))
    return {"pairs": len(pairs), "better": share, "loss_stayed": stayed, "loss_dropped": dropped}


def markdown(found: Mapping[str, Any]) -> str:
    """Write the tables of the parts that are there."""
    tables = {"tau": _tau, "latency": _latency, "survivors": _survivors, "tasks": _tasks}
    return "\n\n".join(tables[part](found["seeds"], facts) for part, facts in found.items() if part in tables)


def _tau(seeds: Sequence[int], facts: Sequence[Facts]) -> str:
    head = ("seed", "students", "tau of the sum of losses and the distance from the teacher (95 %)", "tau of the size")
    both = zip(seeds, facts, strict=True)
    rows = [(seed, one["students"], _interval(*one["tau"]), _interval(*one["by_size"])) for seed, one in both]
    return _table(head, rows)


def _latency(seeds: Sequence[int], facts: Sequence[Facts]) -> str:
    head = ("seed", "students", "mean error of added milliseconds", "tau with measured ones (95 %)")
    rows = zip(seeds, facts, strict=True)
    return _table(head, [(seed, one["students"], f"{one['error']:.1%}", _interval(*one["tau"])) for seed, one in rows])


def _survivors(seeds: Sequence[int], facts: Sequence[Facts]) -> str:
    head = ("seed", "pairs", "the one that stayed is better", "its loss", "loss of the dropped one")
    rows = [
        (seed, one["pairs"], f"{one['better']:.0%}", f"{one['loss_stayed']:.4f}", f"{one['loss_dropped']:.4f}")
        for seed, one in zip(seeds, facts, strict=True)
    ]
    return _table(head, rows)


def _tasks(seeds: Sequence[int], facts: Mapping[str, Facts]) -> str:
    """Write a row for each task and size, and below how the gap depends on the size."""
    head = ("task", "teacher", "size", "parameters", *_NAMES.values(), "found - BERT's", "fresh - BERT's")
    rows, gaps = [], dict[str, list[list[float]]]()
    for task, one in facts.items():
        for size, arms in one["sizes"].items():
            scores = [arms[arm]["scores"] for arm in ARMS]
            both = [np.subtract(own, scores[-1]).tolist() for own in scores[:-1]]
            gaps.setdefault(size, []).append([float(np.mean(gap)) for gap in both])
            sizes = f"{arms['found']['params']:,} and {arms['bert']['params']:,}"
            rows.append((task, _mean(one["teacher"]), size, sizes, *map(_mean, scores), *map(_gain, both)))
    below = [(size, *(f"{gap:+.4f}" for gap in np.mean(own, axis=0))) for size, own in gaps.items()]
    by_size = _table(("size", "found - BERT's, mean of the tasks", "fresh - BERT's"), below)
    return f"Means over the seeds {', '.join(map(str, seeds))}, with their range.\n\n{_table(head, rows)}\n\n{by_size}"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _interval(value: float, low: float, high: float) -> str:
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


def _mean(scores: Sequence[float]) -> str:
    found = f"{np.mean(scores):.4f}"
    return found if len(scores) == 1 else f"{found} ({min(scores):.4f} to {max(scores):.4f})"


def _gain(gaps: Sequence[float]) -> str:
    found = f"{np.mean(gaps):+.4f}"
    return found if len(gaps) == 1 else f"{found} ({min(gaps):+.4f} to {max(gaps):+.4f})"
