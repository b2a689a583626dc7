"""What tasks there are, and what each of them needs."""

from dataclasses import dataclass

from formwright.tasks import FROM_DATA, TASKS
from formwright.tasks.corpora import CORPORA
from formwright.tasks.glue_specs import GLUE


@dataclass(frozen=True)
class Entry:
    """A task at a glance; `rows` says where its rows come from."""

    name: str
    kind: str
    metric: str
    rows: str
    about: str


def catalogue() -> list[Entry]:
    """List the builtin tasks and those whose rows a user gives, without making any rows."""
    builtin = [TASKS.get(name) for name in TASKS.names()]
    entries = [Entry(task.name, task.kind, task.metric, "builtin", task.about) for task in builtin]
    return entries + [_real(name) for name in FROM_DATA]


def _real(name: str) -> Entry:
    spec = GLUE.get(name.removeprefix("glue/"))
    if spec is not None:
        return Entry(name, spec.labelling.kind, spec.metrics[0], "--data DIR, or download", spec.about)
    if name in CORPORA:
        corpus = CORPORA[name]
        return Entry(name, corpus.kind, corpus.metrics[0], "--data DIR", corpus.about)
    about = "find the part of a text that answers a question"
    return Entry(
        name, "span-extraction", "span-f1", "--data DIR", about + (" or see there is none" if "2" in name else "")
    )
