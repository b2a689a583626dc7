"""What shared weights are worth: experiments on super-networks, one command each.

    python benchmarks/super_networks.py sharing --data DIR     entangled, disjoint and path weights, Fashion-MNIST
    python benchmarks/super_networks.py rules --data DIR       rules of sampling, Fashion-MNIST
    python benchmarks/super_networks.py rules-chains           the same in MAGIC's own space, mini-glue/sst2
    python benchmarks/super_networks.py interference --data DIR   gradients of a shared layer, Fashion-MNIST
    python benchmarks/super_networks.py two-stage --data DIR   LightHuBERT's two stages, spoken digits
    python benchmarks/super_networks.py width-first --data DIR   DynaBERT's widths before depths, Fashion-MNIST
    python benchmarks/super_networks.py found --data DIR       what recipes find, against random and hand-made designs

The settings stand at the beginning of the files of `super_networks_kit`; they were fixed before the first result. DIR
is the folder with the files of the data; for `found` it is the folder above, in which `fsdd` is unpacked. What is
finished is kept in the folder of `--out`, one line of JSON each, so that a benchmark that was stopped goes on; `--show`
shows what there is. Each experiment prints a Markdown table with intervals; `--json FILE` writes its figures.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from super_networks_kit import found, interference, ranking, two_stage, width_first
from super_networks_kit.units import Row, Units


def ranked(given: Any, units: Units) -> tuple[Row, str]:
    arms = ranking.ARMS[given.experiment]
    sizes = ranking.Sizes(given.designs, given.alone, given.passes, given.seeds)
    if not given.show:
        ranking.work(units, given.data, sizes, arms)
    figures = ranking.figures(units, sizes, arms)
    return figures, ranking.page(figures)


def staged(given: Any, units: Units) -> tuple[Row, str]:
    if not given.show:
        two_stage.work(units, given.data, given.seeds, given.steps or 1_500)
    figures = two_stage.figures(units, given.seeds)
    return figures, two_stage.page(figures)


def widened(given: Any, units: Units) -> tuple[Row, str]:
    if not given.show:
        width_first.work(units, given.data, given.seeds)
    figures = width_first.figures(units, given.seeds)
    return figures, width_first.page(figures)


def searched(given: Any, units: Units) -> tuple[Row, str]:
    if not given.show:
        found.work(units, given.data, given.seeds, given.steps or 1_000, given.trials, given.only)
    figures = found.figures(units, given.seeds)
    return figures, found.page(figures)


def disturbed(given: Any, units: Units) -> tuple[Row, str]:
    if not given.show:
        interference.work(units, given.data, given.seeds)
    figures = interference.figures(units, given.seeds)
    return figures, interference.page(figures)


EXPERIMENTS = {
    "sharing": ranked,
    "rules": ranked,
    "rules-chains": ranked,
    "interference": disturbed,
    "two-stage": staged,
    "width-first": widened,
    "found": searched,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--data", type=Path, default=Path(), help="folder with the files of the data")
    parser.add_argument("--out", type=Path, default=Path("super_networks"), help="where finished units are kept")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--show", action="store_true", help="show what is finished, and do nothing")
    for name, usual in vars(ranking.Sizes()).items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--steps", type=int, help="steps of a super-network, in two-stage and found")
    parser.add_argument("--trials", type=int, default=60, help="trials of a search, in found")
    parser.add_argument("--only", nargs="*", default=[], help="recipes, in found")
    given = parser.parse_args()
    figures, page = EXPERIMENTS[given.experiment](given, Units(given.out))
    print(page)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
