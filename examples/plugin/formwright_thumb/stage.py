"""A stage: count what the finished trials of a search are made of, and leave that as a file."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from formwright.core.files import write_whole
from formwright.core.options import Stage, option
from formwright.pipeline.conclusion import Summary
from formwright.pipeline.search import Search


@dataclass(frozen=True)
class Tally(Stage):
    """Count the operations of all finished designs."""

    NAME: ClassVar[str] = "tally"
    search: Search = option(about="the search whose trials are counted")
    most: int = option(5, "operations to name")

    def make(self, run):
        """Write the artifact; the runner records it as done, and does not make it again."""
        with run.artifact(self.search) as opened:
            cards = [trial.request.card for trial in opened.history().finished]
        counts = Counter(type(layer.mixer).__name__ for card in cards for layer in card.encoder.layers)
        run.folder.mkdir(parents=True, exist_ok=True)
        write_whole(run.folder / "tally.json", json.dumps(dict(counts.most_common(self.most))))

    def load(self, run):
        """Give the artifact as an object."""
        return json.loads((run.folder / "tally.json").read_bytes())

    def summary(self, run):
        """Say at the end of the run what came out."""
        counts = self.load(run)
        return Summary(("operation", ">layers"), [(name, str(number)) for name, number in counts.items()], data=counts)
