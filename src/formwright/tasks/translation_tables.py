"""Translation from a user's own tables: one column holds the texts, another their translations."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from formwright.core.errors import IllegalInput
from formwright.tasks.kind import KINDS
from formwright.tasks.metrics import check_bleu
from formwright.tasks.own_files import NamedSplits, ReadFiles
from formwright.tasks.rows import TranslationRows
from formwright.tasks.splitting import divided
from formwright.tasks.tables import read_table
from formwright.tasks.task import Task
from formwright.tasks.text_files import Faults
from formwright.tasks.user_tables import table_files

_KIND = "seq2seq-lm"


@dataclass(frozen=True)
class ReadTranslations:
    """Read the texts of the column `source` and their translations in the column `target`."""

    source: str
    target: str

    def __call__(self, files: Mapping[str, Path], official_dev: bool) -> NamedSplits:
        rows = {split: _rows(file, self.source, self.target) for split, file in files.items()}
        return NamedSplits((), divided(rows, official_dev, by_class=False))


def own_translations(path: Path | str, text: tuple[str, ...] = (), label: str = "", official_dev: bool = False) -> Task:
    """Make a task of a CSV, TSV or JSON file, or of a folder with one file each for train, validation and test.

    `text` names the column of texts in the first language, and `label` that of their translations. Files are found and
    divided as for other tables; rows with the same text in the first language stay together.
    """
    if len(text) != 1 or not label or label in text:
        raise IllegalInput(
            f"a translation of {path} needs two columns: name that of the texts with --text COLUMN, and that of their "
            "translations with --label COLUMN"
        )
    check_bleu()
    files = table_files(Path(path), (label,))
    source = ReadFiles.of(files, ReadTranslations(text[0], label), official_dev)
    source()  # what cannot be read is refused before anything is planned
    metrics = KINDS.get(_KIND).metrics
    about = f"column {label} from {text[0]} of {', '.join(file.name for _, file in files)}"
    return Task(str(path), _KIND, metrics[0], source, metrics, about=about)


def _rows(file: Path, source: str, target: str) -> TranslationRows:
    table, faults = read_table(file, (source, target)), Faults(str(file))
    for line, row in zip(table.lines, table.rows, strict=True):
        for column, text in zip((source, target), row, strict=True):
            if not text.strip():
                faults.add(line, f"an empty text in column {column!r}; expected a sentence and its translation")
    faults.end()
    sources, targets = (tuple(row[place].strip() for row in table.rows) for place in (0, 1))
    return TranslationRows(sources, targets, numbers=tuple(range(len(table))), source=str(file))
