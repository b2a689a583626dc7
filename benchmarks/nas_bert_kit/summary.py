"""What the rows of all seeds come to: facts as JSON, and tables in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, kendalltau

from formwright.core.rng import derive
from nas_bert_kit.bench import Row
from nas_bert_kit.students import ARMS, BERTS, FOUND

Facts = dict[str, Any]
_DRAWS = 1000  # of the bootstrap
_NAMES = {
    "found": "found, with the weights of its blocks",
    "found-fresh": "found, fresh layers",
    "bert": "BERT's shape",
    "bert-square": "BERT's shape, table as wide as its layers",
}


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
    """Say how far sums of milliseconds are from measured ones, to which side, and how well they order students."""
    off = np.array([row["added"] / row["measured"] - 1 for row in rows])
    found = {"error": float(np.abs(off).mean()), "bias": float(off.mean())}
    return {"students": len(rows), **found, "tau": correlation(rows, "added", "measured")}


def won(pairs: Sequence[tuple[Row, Row]]) -> Facts:
    """Say how often a chain that stayed is better than one of its bin that was dropped, and by how much."""
    losses = np.array([[row["loss"] for row in pair] for pair in pairs])
    return {"losses": losses.tolist(), **_wins(losses)}


def _wins(losses: NDArray[np.float64]) -> Facts:
    """Count wins, with the exact 95 % interval of their share, where an even chance is 0.5."""
    wins = int((losses[:, 0] < losses[:, 1]).sum())
    low, high = binomtest(wins, len(losses)).proportion_ci(0.95)
    stayed, dropped = losses.mean(axis=0).tolist()
    share = (wins / len(losses), float(low), float(high))
    return {"pairs": len(losses), "better": share, "loss_stayed": stayed, "loss_dropped": dropped}


def better_bert(arms: Mapping[str, Facts]) -> str:
    """Name the chain of BERT's shape that is better on average over the seeds: the one to beat."""
    return max(BERTS, key=lambda arm: float(np.mean(arms[arm]["scores"])))


def markdown(found: Mapping[str, Any]) -> str:
    """Write the tables of the parts that are there."""
    tables = {"tau": _tau, "latency": _latency, "survivors": _survivors, "tasks": _tasks}
    return "\n\n".join(tables[part](found["seeds"], facts) for part, facts in found.items() if part in tables)


def _tau(seeds: Sequence[int], facts: Sequence[Facts]) -> str:
    head = ("seed", "students", "tau of the sum of losses and the distance (95 %)", "tau by size alone, larger first")
    both = zip(seeds, facts, strict=True)
    rows = [(seed, one["students"], _interval(*one["tau"]), _interval(*one["by_size"])) for seed, one in both]
    return _table(head, rows)


def _latency(seeds: Sequence[int], facts: Sequence[Facts]) -> str:
    head = ("seed", "students", "mean error of added milliseconds", "to which side", "tau with measured ones (95 %)")
    rows = [
        (seed, one["students"], f"{one['error']:.1%}", f"{one['bias']:+.1%}", _interval(*one["tau"]))
        for seed, one in zip(seeds, facts, strict=True)
    ]
    return _table(head, rows)


def _survivors(seeds: Sequence[int], facts: Sequence[Facts]) -> str:
    head = ("seed", "pairs", "the one that stayed is better (95 %)", "its loss", "loss of the dropped one")
    every = _wins(np.concatenate([one["losses"] for one in facts]))
    rows = [
        (seed, one["pairs"], _interval(*one["better"]), f"{one['loss_stayed']:.4f}", f"{one['loss_dropped']:.4f}")
        for seed, one in [*zip(seeds, facts, strict=True), ("all", every)]
    ]
    return _table(head, rows)


def _tasks(seeds: Sequence[int], facts: Mapping[str, Facts]) -> str:
    """Write a row for each task and size, and below how the gap to the better BERT's shape depends on the size."""
    head = ("task", "teacher", "size", *_NAMES.values(), *(f"{arm} - the better BERT's" for arm in FOUND))
    rows, gaps = [], dict[str, list[list[float]]]()
    for task, one in facts.items():
        for size, arms in one["sizes"].items():
            ahead = [np.subtract(arms[arm]["scores"], arms[better_bert(arms)]["scores"]).tolist() for arm in FOUND]
            gaps.setdefault(size, []).append([float(np.mean(gap)) for gap in ahead])
            cells = (f"{_mean(arms[arm]['scores'])}, {_counts(arms[arm]['params'])}" for arm in ARMS)
            rows.append((task, _mean(one["teacher"]), size, *cells, *map(_gain, ahead)))
    below = [(size, *(f"{gap:+.4f}" for gap in np.mean(own, axis=0))) for size, own in gaps.items()]
    by_size = _table(("size", *(f"{arm}, mean of the tasks" for arm in FOUND)), below)
    return f"Means over the seeds {', '.join(map(str, seeds))}, with their range.\n\n{_table(head, rows)}\n\n{by_size}"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _interval(value: float, low: float, high: float) -> str:
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


def _mean(scores: Sequence[float]) -> str:
    found = f"{np.mean(scores):.4f}"
    return found if len(scores) == 1 else f"{found} ({min(scores):.4f} to {max(scores):.4f})"


def _counts(params: Sequence[int]) -> str:
    """Write how many parameters there are, in millions; each seed may have its own compression."""
    return " to ".join(f"{number / 1e6:.2f}" for number in sorted({min(params), max(params)})) + "M"


def _gain(gaps: Sequence[float]) -> str:
    found = f"{np.mean(gaps):+.4f}"
    return found if len(gaps) == 1 else f"{found} ({min(gaps):+.4f} to {max(gaps):+.4f})"
