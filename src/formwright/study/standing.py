"""What the searches of a contest come to: for each method the mean, how sure it is, and how soon the best are found."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.core.rng import derive
from formwright.evaluate.benchmark import Benchmark
from formwright.study.contest import NOTHING, Replay

Floats = NDArray[np.float64]

RESAMPLES = 2_000
TOP, GOOD = 0.001, 0.01  # the shares of designs that count as the best, and as nearly as good


def standings(benchmark: Benchmark, replays: Iterable[Replay]) -> dict[str, dict[str, Any]]:
    """Sum up the searches of each method, best method first, as plain JSON data.

    `curve` is the mean, over the searches, of the validation score of the best design so far after each evaluation;
    `final` is its end, and `interval` holds that with 90 % (bootstrap over the searches). `test` is the test score of
    the same designs, with a curve of its own. `top` says how often, and after how many evaluations (median; None where
    fewer than half did), a search had found one of the best 0.1 % of all designs, and `good` the same of the best 1 %.
    A search that has found nothing yet has the worst score.
    """
    by_method: dict[str, list[Replay]] = {}
    for found in replays:
        by_method.setdefault(found.method, []).append(found)
    rows = {name: np.array([one.best for one in sorted(group, key=_seed)]) for name, group in by_method.items()}
    standing = {name: _standing(benchmark, best) for name, best in rows.items()}
    for name, group in by_method.items():
        standing[name]["seconds"] = float(np.mean([one.seconds for one in group]))
    sign = -1 if benchmark.objective.direction == "max" else 1
    return dict(sorted(standing.items(), key=lambda item: (sign * item[1]["final"], item[0])))


def _seed(found: Replay) -> int:
    return found.seed


def _standing(benchmark: Benchmark, best: NDArray[np.int64]) -> dict[str, Any]:
    validation, test = (_scores(benchmark, split)[best] for split in ("validation", "test"))  # (searches, evaluations)
    low, high = _interval(validation)
    test_low, test_high = _interval(test)
    return {
        "runs": len(best),
        "final": float(validation[:, -1].mean()),
        "interval": [low[-1], high[-1]],
        "curve": validation.mean(axis=0).tolist(),
        "curve_low": low,
        "curve_high": high,
        "test": float(test[:, -1].mean()),
        "test_interval": [test_low[-1], test_high[-1]],
        "test_curve": test.mean(axis=0).tolist(),
        "test_curve_low": test_low,
        "test_curve_high": test_high,
        "rank": float(np.median(_ranks(benchmark)[best[:, -1]])),
        "top": _found(benchmark, best, TOP),
        "good": _found(benchmark, best, GOOD),
    }


def _scores(benchmark: Benchmark, split: Any) -> Floats:
    scores = benchmark.scores(split)
    worst = np.nanmin(scores) if benchmark.objective.direction == "max" else np.nanmax(scores)
    return np.append(np.where(np.isnan(scores), worst, scores), worst)


def _ranks(benchmark: Benchmark) -> NDArray[np.int64]:
    assert NOTHING == -1, "nothing is looked up at the end"
    return np.append(benchmark.ranks, len(benchmark.table))


def _interval(curves: Floats) -> tuple[list[float], list[float]]:
    drawn = derive(0, "bootstrap").integers(len(curves), size=(RESAMPLES, len(curves)))
    shares = np.stack([np.bincount(draw, minlength=len(curves)) for draw in drawn]) / len(curves)
    low, high = np.quantile(shares @ curves, (0.05, 0.95), axis=0)
    return low.tolist(), high.tolist()


def _found(benchmark: Benchmark, best: NDArray[np.int64], share: float) -> dict[str, Any]:
    """Say how often and how soon searches had found one of the best designs, of which there are so large a share."""
    most = max(1, round(share * len(benchmark.table)))
    there = _ranks(benchmark)[best] <= most
    reached = there.any(axis=1)
    needed = np.where(reached, there.argmax(axis=1) + 1, np.inf)
    median = float(np.median(needed))
    return {
        "designs": most,
        "share": float(reached.mean()),
        "evaluations": median if np.isfinite(median) else None,
        "interval": _median_interval(needed),
    }


def _median_interval(needed: Floats) -> Sequence[float | None]:
    drawn = derive(0, "bootstrap").choice(needed, (RESAMPLES, len(needed)))
    ends = np.quantile(np.median(drawn, axis=1), (0.05, 0.95), method="nearest")
    return [float(end) if np.isfinite(end) else None for end in ends]
