"""The summary of all runs of a setting, part by part, and its drawings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from autobert_zero_kit import figures, plan, summary
from autobert_zero_kit.runs import Job, Results, Row
from autobert_zero_kit.searches import ARMS, OP_NAS
from autobert_zero_kit.variants import is_descending, kernels_of
from formwright.arch.card import Card
from formwright.cost import params

# for each design what should be better
AGAINST = {
    "found, attention only": "found",
    "found, convolution only": "found",
    "found, BERT as large": "found",
    "published, attention only": "published",
    "published, convolution only": "published",
    "found, kernels ascending": "found, kernels descending",
    "convolutions, kernels ascending": "convolutions, kernels descending",
    "convolutions, kernels shuffled": "convolutions, kernels descending",
}
UNIFORM = ("found", "published", "found, BERT as large")


@dataclass(frozen=True)
class Report:
    """Sum up what is in the results; a part needs all of its runs."""

    results: Results
    seeds: Sequence[int]

    def sharing(self) -> dict[str, Any]:
        """Give the steps that sharing saves, and how short scores rank designs."""
        rows = self._curves()
        return {
            "steps_saved": summary.mean_interval([summary.saved(row) for row in rows]),
            "never_reached": sum(min(row["inherited"]) > min(row["scratch"]) for row in rows),
            "first_loss": {way: float(np.mean([row[way][0] for row in rows])) for way in ("scratch", "inherited")},
            "last_loss": {way: float(np.mean([row[way][-1] for row in rows])) for way in ("scratch", "inherited")},
            "curves": len(rows),
            "tau": summary.ranking(self._ranked()),
        }

    def searches(self) -> dict[str, Any]:
        """Give, for each search, its curve and what its designs are worth after long training, seed by seed."""
        found, tests = dict[str, Any](), dict[str, list[float]]()
        for arm in ARMS:
            rows = [self._rows["search", arm, seed] for seed in self.seeds]
            again = [self._long(plan.best_card(self.results, arm, seed), self._retrained) for seed in self.seeds]
            tests[arm] = [_mean(own, "test") for own in again]
            found[arm] = {
                "curve": np.mean(self._best(arm), axis=0).tolist(),
                "in_search": summary.mean_interval([summary.best_trial(row)["score"] for row in rows]),
                "unlike_op_nas": [self._unlike_op_nas(arm, seed) for seed in self.seeds],
                "found_after": [summary.best_trial(row)["number"] + 1 for row in rows],
                "failed": sum("failure" in trial for row in rows for trial in row["trials"]),
                "validation": summary.mean_interval([_mean(own, "validation") for own in again]),
                "test": _told(tests[arm]),
            }
        better = summary.differences(tests, dict.fromkeys((arm for arm in ARMS if arm != OP_NAS), OP_NAS))
        return found | {"better_by": better}

    def designs(self) -> dict[str, Any]:
        """Give the scores of all designs compared, and how much better those are that should be."""
        cards = plan.compared(self._found)
        rows = {name: self._long(card, self.seeds) for name, card in cards.items()}
        test = {name: [row.get("test", 0.0) for row in own] for name, own in rows.items()}
        return {
            "scores": {name: {"params": params(cards[name]), **_told(each)} for name, each in test.items()},
            "found": cards["found"].to_json(),
            "found_is_descending": is_descending(kernels_of(cards["found"])),
            "better_by": summary.differences(test, AGAINST),
            "uniformity": {name: _alike(rows[name]) for name in UNIFORM},
        }

    def real(self) -> dict[str, Any]:
        """Give the scores on the official dev sets of real tasks."""
        cards, tasks = plan.for_real(self.results.setting, self._found), self.results.setting.real.tasks
        rows = {name: self._of("real", card, self.seeds) for name, card in cards.items()}
        found: dict[str, Any] = {
            name: {"params": params(cards[name]), "loss": [row.get("loss") for row in own]}
            for name, own in rows.items()
        }
        for task in tasks:
            scores = {name: [row.get(task, 0.0) for row in own] for name, own in rows.items()}
            for name, each in scores.items():
                found[name][task] = _told(each)
            found[f"{task}, better by"] = summary.differences(scores, {"found, BERT as large": "found"})
        return found

    def figures(self, parts: Iterable[str]) -> dict[str, str]:
        """Draw what can be drawn of the parts."""
        drawn: dict[str, str] = {}
        if "sharing" in parts:
            drawn["losses"] = figures.losses(self._curves())
            drawn["ranks"] = figures.ranks(np.concatenate(self._ranked()))
        if "searches" in parts:
            drawn["searches"] = figures.searches({arm: self._best(arm) for arm in ARMS})
        if "designs" in parts:
            measured = self.designs()["uniformity"]
            drawn["residual"] = figures.uniformity(measured, "residual", "Relative norm of the residual")
            drawn["cosine"] = figures.uniformity(measured, "cosine", "Cosine similarity of tokens")
        return drawn

    @cached_property
    def _rows(self) -> dict[tuple[str, str, int], Row]:
        return self.results.rows()

    @property
    def _retrained(self) -> range:
        return plan.seeds_again(self.results.setting)

    @cached_property
    def _found(self) -> Card:
        return plan.found_card(self.results.setting, self.results, self.seeds)

    def _of(self, kind: str, card: Card, seeds: Iterable[int]) -> list[Row]:
        rows = self._rows
        return [rows[Job.of(kind, card, seed).key] for seed in seeds]

    def _long(self, card: Card, seeds: Iterable[int]) -> list[Row]:
        return self._of("long", card, seeds)

    def _curves(self) -> list[Row]:
        rows = [self._rows[job.key] for job in plan.curves(self.results.setting, self.seeds)]
        return [row for row in rows if "failure" not in row]

    def _best(self, arm: str) -> list[list[float]]:
        rows = [self._rows["search", arm, seed] for seed in self.seeds]
        return [summary.best_so_far([trial.get("score") for trial in row["trials"]]) for row in rows]

    def _unlike_op_nas(self, arm: str, seed: int) -> int:
        """Count the trials of a search that had another design than the one of OP-NAS with the same number."""
        own, others = ([trial["card"] for trial in self._rows["search", one, seed]["trials"]] for one in (arm, OP_NAS))
        return sum(card != other for card, other in zip(own, others, strict=True))

    def _ranked(self) -> list[summary.Floats]:
        """Give, for each seed, a row of `RANKED` for each design; a long training that failed has 0."""
        return [
            np.array([self._known(*pair, plan.APART + seed) for pair in self._pairs(seed)], dtype=np.float64)
            for seed in self.seeds
        ]

    def _pairs(self, seed: int) -> list[tuple[Row, Row]]:
        return plan.ranked_trials(self.results.setting, self.results, seed)

    def _known(self, inherited: Row, scratch: Row, seed: int) -> tuple[float, float, float, float]:
        card = Card.from_json(inherited["card"])
        long = self._long(card, [seed])[0].get("validation", 0.0)
        return inherited["score"], scratch["score"], params(card), long


def _told(each: Sequence[float]) -> dict[str, Any]:
    return {"mean": summary.mean_interval(each), "of_each_seed": list(each)}


def _mean(rows: Sequence[Row], name: str) -> float:
    return float(np.mean([row.get(name, 0.0) for row in rows]))


def _alike(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Give both measures, averaged over the trainings that did not fail; nothing where all did."""
    whole = [row for row in rows if "failure" not in row]
    if not whole:
        return {}
    return {name: np.mean([row[name] for row in whole], axis=0).tolist() for name in ("residual", "cosine")}
