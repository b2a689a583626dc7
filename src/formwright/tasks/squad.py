"""SQuAD 1.1 and 2.0, from files in the official layout or from the Hugging Face hub."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.rng import derive
from formwright.tasks.draw import shuffled
from formwright.tasks.hub import check_datasets, hub_tables
from formwright.tasks.rows import Splits
from formwright.tasks.spans import SpanRows
from formwright.tasks.squad_file import Article, read_squad, rows_of
from formwright.tasks.squad_hub import hub_articles
from formwright.tasks.task import Task

Version = Literal["1.1", "2.0"]

_SEED = 0
_NAMES = {"1.1": "squad", "2.0": "squad_v2"}
_TRAIN = {
    "1.1": ("train-v1.1", "train-v2.0", "train-v2.0-subset"),
    "2.0": ("train-v2.0", "train-v2.0-subset"),
}
_DEV = {"1.1": ("dev-v1.1",), "2.0": ("dev-v2.0", "dev-v2.0-half")}


@dataclass(frozen=True)
class SquadFile:
    """Name a file, and say whether only its questions that have answers are wanted."""

    path: Path
    answerable: bool

    def articles(self) -> tuple[Article, ...]:
        """Read the articles."""
        articles = read_squad(self.path)
        if not self.answerable:
            return articles
        kept = [replace(one, questions=tuple(found for found in one.questions if found.answers)) for one in articles]
        found = tuple(article for article in kept if article.questions)
        if not found:
            raise IllegalInput(f"{self.path} holds no question that has an answer")
        return found


@dataclass(frozen=True)
class SquadFiles:
    """Read the rows of both files, and divide the official dev set by article unless it is wanted whole."""

    train: SquadFile
    dev: SquadFile
    official_dev: bool

    def __call__(self) -> Splits[SpanRows]:
        """Return all rows."""
        train, dev = self.train.path, self.dev.path
        sources = (str(train), str(dev))
        return _splits(self.train.articles(), self.dev.articles(), dev.name, sources, self.official_dev)


@dataclass(frozen=True)
class SquadHub:
    """Fetch the rows from the Hugging Face hub, and divide its validation set as that of the files."""

    name: str
    official_dev: bool

    def __call__(self) -> Splits[SpanRows]:
        """Return all rows."""
        found = hub_tables(f"rajpurkar/{self.name}", None, "give the folder of its files with --data DIR")
        train, dev = (hub_articles(found, split) for split in ("train", "validation"))
        sources = (f"split train of {found.name}", f"split validation of {found.name}")
        return _splits(train, dev, sources[1], sources, self.official_dev)


def squad_task(version: Version, data: Path | None = None, official_dev: bool = False) -> Task:
    """Make the task `squad` (version 1.1) or `squad_v2` (2.0) from the folder of its files, or else from the hub.

    The official test set is secret, so the dev set is divided by article into validation and test; with `official_dev`
    all of it is for validation, as in publications, and there is no test. Where the training file of version 1.1 is
    missing, the questions of version 2.0 that have answers take its place.
    """
    if version not in _NAMES:
        raise UnknownName("version of SQuAD", version, _NAMES)
    if data is None:
        check_datasets()
        about = f"{_question(version)}; from the Hugging Face hub"
        return _described(version, SquadHub(_NAMES[version], official_dev), about)
    folder = _folder(data)
    train, dev = _find(folder, _TRAIN[version]), _find(folder, _DEV[version])
    answerable = version == "1.1"
    source = SquadFiles(SquadFile(train, answerable), SquadFile(dev, answerable), official_dev)
    return _described(version, source, _about(version, train, dev))


def _described(version: Version, source: SquadFiles | SquadHub, about: str) -> Task:
    return Task(
        name=_NAMES[version],
        kind="span-extraction",
        metric="span-f1",
        splits=source,
        metrics=("span-f1", "exact"),
        chance=0.0 if version == "1.1" else None,
        about=about,
    )


def _question(version: Version) -> str:
    return "find the part of a text that answers a question" + ("" if version == "1.1" else ", or that there is none")


def _about(version: Version, train: Path, dev: Path) -> str:
    borrowed = version == "1.1" and "-v2.0" in train.name
    source = f"the questions with answers in {train.name}" if borrowed else train.name
    return f"{_question(version)}; trained on {source}, judged on {dev.name}"


def _folder(data: Path) -> Path:
    folder = data.absolute()
    if not folder.is_dir():
        state = "a file" if folder.exists() else "not there"
        raise IllegalInput(f"{folder} is {state}; expected the folder that holds the files of SQuAD")
    return folder / "squad" if (folder / "squad").is_dir() else folder


def _find(folder: Path, stems: tuple[str, ...]) -> Path:
    names = [stem + suffix for stem in stems for suffix in (".json", ".json.gz")]
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    if found is None:
        raise IllegalInput(f"{folder} holds none of {', '.join(names)}; expected one of them")
    return found


def _splits(
    train: tuple[Article, ...], dev: tuple[Article, ...], name: str, sources: tuple[str, str], official_dev: bool
) -> Splits[SpanRows]:
    """Keep the dev set whole or divide it; `name` is what to call it, `sources` are those of training and dev set."""
    learned, where = rows_of(train, sources[0]), sources[1]
    if official_dev:
        whole = rows_of(dev, where)
        return Splits(learned, whole, None, division=f"all {len(whole):,} questions of {name}, and no test")
    validation, test = (rows_of(half, where) for half in _halves(dev, where))
    division = (
        f"{len(validation):,} questions of {name}, and test the other {len(test):,}, "
        f"divided by article with seed {_SEED}"
    )
    return Splits(learned, validation, test, division=division)


def _halves(articles: tuple[Article, ...], where: str) -> tuple[tuple[Article, ...], tuple[Article, ...]]:
    """Divide articles so that both halves have about as many questions, and no text is in both."""
    titles = list(dict.fromkeys(article.title for article in articles))
    if len(titles) < 2:
        raise IllegalInput(f"{where} holds one article, which cannot be divided into validation and test")
    sizes = {title: sum(len(one.questions) for one in articles if one.title == title) for title in titles}
    halves: tuple[set[str], set[str]] = (set(), set())
    for place in shuffled(derive(_SEED, "squad"), len(titles)):
        smaller = min(halves, key=lambda half: sum(sizes[title] for title in half))
        smaller.add(titles[place])
    first, second = (tuple(one for one in articles if one.title in half) for half in halves)
    return first, second
