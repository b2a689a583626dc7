"""How long recipes take with their default budget: the times that `formwright list recipes` shows.

Each recipe runs once from the command line with one worker, in a process of its own. Processor time is that of the
command and of all its workers; unlike wall time it hardly changes when the machine is busy with other work.

Run `python benchmarks/recipe_times.py --data DIR [--out DIR] [--json FILE] [--only RECIPE ...]`. DIR has the folder
`fsdd`. What is finished is kept in the folder, so that a benchmark that was stopped goes on.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = {
    "linas": "search --recipe linas --task digits --maximise accuracy --minimise macs",
    "autoformer": "search --recipe autoformer --task digits --limit params<=20000",
    "spos": "search --recipe spos --task digits",
    "ofa": "search --recipe ofa --task digits",
    "fast-bert-search": "search --recipe fast-bert-search --task mini-glue/sst2",
    "magic": "search --recipe magic --task mini-glue/sst2",
    "autotinybert": "search --recipe autotinybert --task mini-glue/sst2",
    "lighthubert": "search --recipe lighthubert --task fsdd --data {data}/fsdd",
    "autotinybert-kd": "search --recipe autotinybert-kd --task mini-glue/sst2",
    "hat": "search --recipe hat --task translation --limit writing_30x5_ms<=25",
    "supershaper": "search --recipe supershaper --task mini-glue/sst2 --limit params<=300k",
    "evolved-transformer": "search --recipe evolved-transformer --task translation",
    "flexibert": "search --recipe flexibert --task mini-glue/sst2",
    "autobert-zero": "search --recipe autobert-zero --task mini-glue/stsb",
}


def measured(name: str, data: Path, out: Path) -> dict[str, object]:
    """Run a recipe, and give the minutes of the clock and of processors."""
    words = COMMANDS[name].format(data=data).split()
    command = [sys.executable, "-m", "formwright", *words, "--workers", "1", "--out", str(out / name), "--force"]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code:
        raise SystemExit(f"{name} ended with exit code {code}: {' '.join(command)}")
    minutes = {"wall": time.monotonic() - began, "processor": used.ru_utime + used.ru_stime}
    return {"recipe": name, "command": COMMANDS[name], **{key: round(one / 60, 2) for key, one in minutes.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with fsdd")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/recipe_times"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    kept = given.out / "times.json"
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for name in given.only:
        if name not in found:
            found[name] = measured(name, given.data, given.out)
            kept.write_text(json.dumps(found, indent=1), encoding="utf-8")
        print(f"{name}: {found[name]['processor']} minutes of one core", flush=True)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
