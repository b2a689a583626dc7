"""Compress a fine-tuned encoder to two sizes for a task, from Python, in about a minute.

The encoder is trained here so that nothing is downloaded; with one of your own, give its folder to `fw.compress`. So
short a training learns next to nothing: the models score like a guess, and the program shows the calls, not a result.
"""

import sys
from pathlib import Path

import formwright as fw

if __name__ == "__main__":
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "runs")
    large = fw.train("bert-tiny", "mini-glue/sst2", steps=60, batch=32, length=24, rows=600, out=out / "large")
    result = fw.compress(
        large.best.path,
        "mini-glue/sst2",
        targets=["macs=70%", "macs=40%"],
        rows=600,
        trials=12,
        settings={"teacher.epochs": 1, "teacher.accept_weak": True, "super-network.epochs": 1},
        out=out / "small",
    )
    for model in result.models:
        print(f"{model.name}: {model.scores}, {model.costs['params']:,.0f} parameters, in {model.path}")
