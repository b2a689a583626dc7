"""The result of a run: its trials, its front, its models, and its page."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.extras import need
from formwright.core.records import Trial
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.run_folder import REPORT
from formwright.pipeline.search import Search

if TYPE_CHECKING:
    from formwright.pipeline.delivered import Delivered


@dataclass(frozen=True, eq=False)
class FoundModel:
    """A delivered model: its scores and costs, and the model itself when it is asked for."""

    facts: "Delivered"

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def path(self) -> Path:
        """Give its folder, which loads with `import formwright`, or with transformers alone."""
        return Path(self.facts.path)

    @property
    def scores(self) -> dict[str, float]:
        """Give its scores: on test rows, where there are some."""
        return dict(self.facts.test if self.facts.test is not None else self.facts.validation)

    @property
    def costs(self) -> dict[str, float]:
        return {"params": float(self.facts.params), **self.facts.costs}

    @property
    def card(self) -> Card:
        from formwright.pipeline.delivered import card_of_model

        return card_of_model(self.facts)

    @cached_property
    def model(self) -> Any:
        """Load it as a `PreTrainedModel`, which needs transformers."""
        transformers = need("transformers", "hf")
        kind = str(json.loads((self.path / "config.json").read_bytes())["architectures"][0])
        home = transformers if hasattr(transformers, kind) else import_module("formwright.nn.hf.models")
        return getattr(home, kind).from_pretrained(self.path)

    def push_to_hub(self, repository: str, **options: Any) -> Any:
        """Upload the folder of the model to a repository of the Hugging Face hub."""
        hub = need("huggingface_hub", "hf")
        hub.create_repo(repository, exist_ok=True, **options)  # private=True, token=..., as the hub takes them
        return hub.upload_folder(repo_id=repository, folder_path=str(self.path))

    def _repr_html_(self) -> str:
        return _drawing(self.card, self.name)


class Trials(Sequence[Trial]):
    """The trials of a search, in the order in which they were asked for."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._trials = tuple(trials)

    def __len__(self) -> int:
        return len(self._trials)

    def __getitem__(self, index: Any) -> Any:
        return self._trials[index]

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._trials)

    def rows(self) -> list[dict[str, Any]]:
        """List the trials as plain rows: number, state, digest, steps, parent, seconds, reason, and every metric."""
        found = []
        for trial in self._trials:
            seen = trial.observation
            found.append(
                {
                    "number": trial.number,
                    "state": trial.state,
                    "digest": trial.request.card.digest,
                    "steps": trial.request.budget.steps,
                    "parent": trial.request.parent,
                    "seconds": None if seen is None else seen.spent.seconds,
                    "reason": trial.reason,
                    **({} if seen is None else seen.metrics),
                }
            )
        return found

    def to_pandas(self) -> Any:
        return need("pandas", "pandas").DataFrame(self.rows())

    def to_csv(self) -> str:
        """Give the trials as the text of a CSV file."""
        rows = self.rows()
        names = list(dict.fromkeys(name for row in rows for name in row))
        text = io.StringIO()
        writer = csv.DictWriter(text, names)
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a run, read from its folder when it is asked for."""

    run: PipelineRun

    @property
    def out(self) -> Path:
        return self.run.out

    @property
    def page(self) -> Path:
        return self.out / REPORT

    def _search(self) -> Search:
        found = self.run.pipeline.of_kind(Search)
        if not found:
            raise IllegalInput(f"the run in {self.out} has no search, so that it has no trials")
        return found[0]

    def opened(self) -> Any:
        """Open the study of the run; use it in a `with` statement."""
        search = self._search()
        return search.place(self.run.stage(search)).open(run=self.run)

    @property
    def trials(self) -> Trials:
        with self.opened() as opened:
            return Trials(opened.history().trials)

    def front(self) -> list[Trial]:
        """List the trials that no other one beats in every goal within the limits."""
        from formwright.search.scores import front

        with self.opened() as opened:
            history = opened.history()
            return list(front(history, opened.search.all_objectives)) if history.finished else []

    @property
    def best_trial(self) -> Trial | None:
        """Give the best trial: by the first goal, of those within the limits."""
        found = self._best_trials()
        return found[0] if found else None

    def _best_trials(self) -> tuple[Trial, ...]:
        from formwright.search.scores import best_of

        with self.opened() as opened:
            return best_of(opened.history(), opened.search.all_objectives)

    @cached_property
    def models(self) -> list[FoundModel]:
        """List the delivered models, baselines and teachers among them."""
        found = [one for stage in self.run.pipeline for one in stage.models(self.run.stage(stage))]
        return [FoundModel(one) for one in found]

    @property
    def best(self) -> FoundModel:
        """Give the best delivered model: by the first goal, of those that the search delivers."""
        found = [one for one in self.models if one.facts.role in ("best", "front")]
        if not found:
            raise IllegalInput(f"the run in {self.out} delivered no model; see {self.page}")
        if len(found) > 1 and not self.run.pipeline.of_kind(Search):
            names = ", ".join(one.name for one in found)
            raise IllegalInput(f"the run delivered models of several sizes ({names}): choose one of `.models`")
        order = [trial.number for trial in self._best_trials()] if len(found) > 1 else []
        return min(found, key=lambda one: order.index(one.facts.trial) if one.facts.trial in order else len(order))

    @property
    def model(self) -> Any:
        """Load the best delivered model as a `PreTrainedModel`."""
        return self.best.model

    def report(self, path: str | Path | None = None) -> Path:
        """Write the page of the run to an HTML file, by default into its folder, and give its path."""
        from formwright.report.page import write_run_page

        write_run_page(self.run, Path(path) if path is not None else None)
        return Path(path) if path is not None else self.page

    def to_optuna(self, target: str) -> int:
        """Copy the trials to a database that optuna-dashboard shows, such as `sqlite:///optuna.db`; give how many."""
        from formwright.pipeline.to_optuna import to_optuna

        with self.opened() as opened:
            return to_optuna(opened, target, opened.space)

    def push_to_hub(self, repository: str, **options: Any) -> Any:
        """Upload the best delivered model to a repository of the Hugging Face hub."""
        return self.best.push_to_hub(repository, **options)

    def __repr__(self) -> str:
        return f"Result({str(self.out)!r}, stages: {', '.join(self.run.pipeline.named)})"

    def _repr_html_(self) -> str:
        if not self.run.pipeline.of_kind(Search):
            rows = "".join(
                f"<p>{escape(one.name)}: {escape(_shown(one.scores | one.costs))}</p>" for one in self.models
            )
            return rows + "".join(one._repr_html_() for one in self.models[:1])
        best = self.best_trial
        if best is None:
            return f"<p>{escape(str(self.out))}: no finished trial</p>"
        metrics = best.observation.metrics if best.observation is not None else {}
        row = escape(_shown(metrics))
        drawing = _drawing(best.request.card, f"trial {best.number}") if isinstance(best.request.card, Card) else ""
        return f"<p>best of {len(self.trials)} trials: trial {best.number}, {row}</p>{drawing}{self._front_html()}"

    def _front_html(self) -> str:
        rows = [(trial.number, trial.observation) for trial in self.front()[:20]]
        cells = "".join(
            f"<tr><td>{number}</td><td>{escape(_shown(seen.metrics))}</td></tr>"
            for number, seen in rows
            if seen is not None
        )
        return f"<table><tr><th>front</th><th>scores and costs</th></tr>{cells}</table>"


def _drawing(card: Card, name: str) -> str:
    from formwright.report.svg import draw_svg

    return draw_svg(card, name)


def _shown(metrics: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())
