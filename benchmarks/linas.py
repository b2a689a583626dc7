"""How many validations LINAS needs: against NSGA-II and random search on tables of all designs of a space.

Settings, fixed before the first result:

- Two tables. `flexibench`: accuracy after a full training and parameters of 2,000 designs of `flexibert-nano`, as they
  come with the package; the others are beyond a limit. `sub-networks`: accuracy on 300 validation rows of `digits`
  with shared weights, and MACs, of all 22,140 designs of `autoformer-nano`; the super-network is that of the recipe
  `spos` (2,000 steps, seed 0).
- Searchers have 150 validations and their default options; LINAS predicts by ridge (the default of the searcher),
  support vectors, a stack of both, boosted trees, or the best of the first three by cross-validation (`auto`), and
  learns after every validation, or after a round of 10. All begin with random designs of their own seed.
- The figure is the number of validations after which the hypervolume is 95 % of the final one: that of the true front
  of the table. Searches that do not get there count with 150. The reference point is the worst value of each goal in
  the table; costs are logarithms. Means over 20 seeds with 95 % bootstrap intervals over the seeds; the difference from
  NSGA-II is paired by seed.

Run `python benchmarks/linas.py [--out DIR] [--json FILE] [--seeds N] [--tables NAME ...]`. Finished searches, and
designs of the second table, are kept in the folder, so that a benchmark that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.core.records import History, Objective, Observation, Spent, Trial
from formwright.core.rng import derive
from formwright.cost import macs
from formwright.evaluate.benchmark import load_flexibench
from formwright.search import make_searcher
from formwright.search.scores import hypervolume
from formwright.space import Space
from formwright.space.zoo import load_space

Row = dict[str, Any]
Floats = NDArray[np.float64]
VALIDATIONS, SHARE, STEPS = 150, 0.95, 2_000
RESAMPLES, LEVEL = 10_000, 0.95
ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    "random": ("random", {}),
    "nsga2": ("nsga2", {}),
    "linas, ridge": ("linas", {}),
    **{
        f"linas, {name}, rounds of 10": ("linas", {"predictor": name, "batch": 10})
        for name in ("ridge", "svr", "stacked", "boosted-trees", "auto")
    },
}


@dataclass(frozen=True, eq=False)
class Table:
    """All designs of a space: a score to raise and a cost to lower of each, by digest."""

    space: Space
    score: str
    cost: str
    rows: Mapping[str, tuple[float, float]]

    @property
    def goals(self) -> tuple[Objective, ...]:
        return Objective.parse(f"{self.score}:max"), Objective.parse(f"{self.cost}:min")

    def observation(self, card: Any) -> Observation:
        score, cost = self.rows[card.digest]
        return Observation({self.score: score, self.cost: cost}, Spent(0.0, 0))

    def points(self, digests: Sequence[str]) -> Floats:
        """Return what is lost of the best score, and the logarithm of the cost."""
        found = np.array([self.rows[digest] for digest in digests])
        return np.column_stack([-found[:, 0], np.log(found[:, 1])])

    def volume(self, digests: Sequence[str]) -> float:
        """Return the hypervolume of some designs, as a share of that of the whole table."""
        whole = self.points(list(self.rows))
        low, high = whole.min(axis=0), whole.max(axis=0)
        scaled = [(points - low) / (high - low) for points in (self.points(digests), whole)]
        one, best = (hypervolume(points, [1.0, 1.0], ["min", "min"]) for points in scaled)
        return one / best


def flexibench(out: Path) -> Table:
    bench = load_flexibench()
    cards = [card for card in map(bench.space.card, bench.space.enumerate()) if bench.legal(card)]
    scores = bench.scores()
    rows = {card.digest: (float(scores[bench.row(card)]), bench.costs(bench.row(card))["params"]) for card in cards}
    return Table(bench.space, "accuracy", "params", {key: row for key, row in rows.items() if np.isfinite(row[0])})


def sub_networks(out: Path) -> Table:
    """Judge every design of `autoformer-nano` with shared weights, and keep what is judged."""
    from formwright.api import run
    from formwright.core.records import Request
    from formwright.evaluate.context import Context
    from formwright.evaluate.shared import Shared
    from formwright.pipeline.pipeline import Pipeline
    from formwright.pipeline.task_choice import TaskChoice
    from formwright.recipes import RECIPES

    space, kept = load_space("autoformer-nano"), out / "sub-networks.jsonl"
    cards: dict[str, Card] = {card.digest: card for card in map(space.card, space.enumerate())}
    known = {row["digest"]: row["accuracy"] for row in read(kept)}
    if len(known) < len(cards):
        shared = RECIPES.get("spos")(TaskChoice("digits"), steps=STEPS).stages[0]
        done = run(Pipeline(shared, recipe="spos"), out / "super-network").run
        network = done.artifact(done.pipeline.stages[0])  # which has the options that the run resolved
        judge = Shared(network, lambda card: float(macs(card)), rules=None)
        with kept.open("a", encoding="utf-8") as file:
            for digest, card in cards.items():
                if digest not in known:
                    known[digest] = judge.evaluate(Request(card), Context()).metrics["accuracy"]
                    file.write(json.dumps({"digest": digest, "accuracy": known[digest]}) + "\n")
                    file.flush()
    return Table(space, "accuracy", "macs", {key: (known[key], float(macs(card))) for key, card in cards.items()})


TABLES = {"flexibench": flexibench, "sub-networks": sub_networks}


def search(table: Table, arm: str, seed: int) -> Row:
    """Search a table, and give the share of the whole hypervolume after each validation."""
    name, options = ARMS[arm]
    began = time.process_time()
    searcher = make_searcher(
        name, table.space, table.goals, lambda card: card.digest in table.rows, trials=VALIDATIONS, **options
    )
    trials: list[Trial] = []
    for number in range(VALIDATIONS):
        request = searcher.ask(History(tuple(trials)), derive(seed, "ask", number))
        trials.append(Trial(number, request, "finished", table.observation(request.card)))
    spent = time.process_time() - began
    digests = [trial.request.card.digest for trial in trials]
    curve = [round(table.volume(digests[: number + 1]), 5) for number in range(VALIDATIONS)]
    return {"arm": arm, "seed": seed, "curve": curve, "cpu_s": round(spent, 2)}


def needed(curve: Sequence[float]) -> int:
    """Return the number of validations after which the share is reached, or all of them."""
    return next((number for number, share in enumerate(curve, 1) if share >= SHARE), len(curve))


def summary(rows: Sequence[Row]) -> Row:
    """Give for each arm the validations needed, how many searches got there, the final share, and the difference."""
    by_arm = {arm: {row["seed"]: row for row in rows if row["arm"] == arm} for arm in ARMS}
    found: Row = {}
    for arm, own in by_arm.items():
        if not own:
            continue
        numbers = {seed: needed(row["curve"]) for seed, row in own.items()}
        pairs = [numbers[seed] - needed(by_arm["nsga2"][seed]["curve"]) for seed in numbers if seed in by_arm["nsga2"]]
        found[arm] = {
            "seeds": len(own),
            "validations": interval(list(numbers.values())),
            "reached": sum(row["curve"][-1] >= SHARE for row in own.values()),
            "after 50": interval([row["curve"][49] for row in own.values()]),
            "final": interval([row["curve"][-1] for row in own.values()]),
            "less than nsga2": interval(pairs) if pairs else None,
            "seconds of a proposal": float(np.mean([row["cpu_s"] for row in own.values()])) / VALIDATIONS,
        }
    return found


def interval(sample: Sequence[float]) -> list[float]:
    """Return the mean and its bootstrap interval."""
    drawn = derive(0, "bootstrap").choice(np.array(sample), (RESAMPLES, len(sample))).mean(axis=1)
    low, high = np.quantile(drawn, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return [float(np.mean(sample)), float(low), float(high)]


def read(path: Path) -> list[Row]:
    """Read the rows of a file; a last line that was cut off does not count."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def markdown(found: Row) -> str:
    def cell(sample: Sequence[float] | None, form: str) -> str:
        return "" if sample is None else "{} ({} to {})".format(*(format(value, form) for value in sample))

    lines = [
        "| searcher | validations to 95 % | got there | compared with NSGA-II | after 50 | after 150 | s a proposal |",
        "|---|---|---|---|---|---|---|",
    ]
    for arm, row in found.items():
        cells = (
            arm, cell(row["validations"], ".1f"), f"{row['reached']} of {row['seeds']}",
            "" if arm == "nsga2" else cell(row["less than nsga2"], "+.1f"), cell(row["after 50"], ".3f"),
            cell(row["final"], ".3f"), f"{row['seconds of a proposal']:.3f}",
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/linas"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    found: Row = {}
    for name in chosen.tables:
        kept = chosen.out / f"searches-{name}.jsonl"
        known, table = {(row["arm"], row["seed"]) for row in read(kept)}, None
        for seed in range(chosen.seeds):
            for arm in ARMS:
                if (arm, seed) in known:
                    continue
                table = table or TABLES[name](chosen.out)
                row = search(table, arm, seed)
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(f"{name}, {arm}, seed {seed}: {needed(row['curve'])} validations", flush=True)
        found[name] = summary([row for row in read(kept) if row["seed"] < chosen.seeds])
        print(f"\n{name}\n\n{markdown(found[name])}\n")
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
