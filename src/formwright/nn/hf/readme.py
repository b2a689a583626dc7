"""The model card of an exported model: what it is, what it scored, what it costs, and where it came from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from formwright.arch.card import Card
from formwright.nn.hf.config_fields import pipeline_name
from formwright.nn.hf.model_folder import replace_file

README = "README.md"
Facts = Mapping[str, object]


@dataclass(frozen=True)
class Provenance:
    """What is known of a model in addition to its design: scores by metric, costs by name, and where it came from."""

    scores: Facts
    costs: Facts
    lineage: Facts


def readme(
    card: Card, task: str | None, auto_class: str, provenance: Provenance, prepared_by: str = "", *, stock: bool = False
) -> str:
    """Write the model card of a folder; `auto_class` loads the model, and `prepared_by` what prepares its inputs."""
    title = f"{card.family.capitalize()} designed with Formwright"
    head = ["---", "library_name: transformers", "tags:", "- formwright", f"- {card.family}"]
    if task is not None:
        head.append(f"pipeline_tag: {pipeline_name(card, task)}")
    parts = ["\n".join([*head, "---", ""]), f"# {title}\n", f"Digest of the design: `{card.digest}`\n"]
    parts.append(_usage(auto_class, prepared_by, stock))
    named = {"Scores": provenance.scores, "Costs": provenance.costs, "Lineage": provenance.lineage}
    return "\n".join(parts + [_table(name, facts) for name, facts in named.items() if facts])


def put_section(folder: str | Path, title: str, lines: Sequence[str]) -> None:
    """Put a section in the place of the one with the same title in a folder's model card, or at the end."""
    body = "\n\n".join(_cell(line) for line in lines)
    _put(Path(folder) / README, title, f"## {title}\n\n{body}\n")


def replace_table(folder: Path, title: str, facts: Facts) -> None:
    """Put a table in the place of the one with the same title in a folder's model card, or at the end."""
    _put(folder / README, title, _table(title, facts))


def _put(path: Path, title: str, section: str) -> None:
    """Replace a section of a model card up to the next heading: people add sections, and those stay."""
    if not path.is_file():  # which a user may have removed
        return
    text = path.read_text(encoding="utf-8")
    before, heading, rest = text.partition(f"## {title}\n")
    following = rest.find("\n## ")
    after = rest[following + 1 :] if following >= 0 else ""
    new = section + ("\n" + after if after else "")
    replace_file(path, before + new if heading else f"{text.rstrip()}\n\n{new}")


def _usage(auto_class: str, prepared_by: str, stock: bool) -> str:
    classes = {"model": auto_class, **({"prepare": prepared_by} if prepared_by else {})}
    imports = f"from transformers import {', '.join(sorted(classes.values()))}\n"

    def load(options: str = "") -> str:
        return "".join(f"\n{name} = {one}.from_pretrained(FOLDER{options})" for name, one in classes.items())

    if stock:
        return f"```python\n{imports}{load()}\n```\n"
    return (
        f"Where formwright is installed:\n\n```python\nimport formwright\n{imports}{load()}\n```\n\n"
        "Elsewhere the code in this folder loads the model; read it first, then:\n\n"
        f"```python\n{imports}{load(', trust_remote_code=True')}\n```\n"
    )


def _table(title: str, facts: Facts) -> str:
    rows = [f"| {_cell(name)} | {_cell(value)} |" for name, value in facts.items()]
    return "\n".join([f"## {title}\n", "| | |", "|---|---|", *rows, ""])


def _cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    for mark, instead in (("\\", "\\\\"), ("|", "\\|"), ("<", "&lt;"), ("\n", " "), ("\r", " ")):
        text = text.replace(mark, instead)
    return text
