"""How operations did at each place of the formulas: a heat map that can be read without its colours."""

from formwright.report.svg_canvas import element, inline, number, plain, text
from formwright.search.priorities import OperationTable

_LEFT, _TOP, _WIDE, _HIGH = 92.0, 26.0, 96.0, 34.0  # room for the names, and the size of a cell
_STRONGEST = 62  # percent of colour; more would hide the words on it


def draw_operations(table: OperationTable) -> str:
    """Draw a row for each place and a column for each operation."""
    places, operations = table.scores.shape
    tried = abs(table.scores[table.counts > 0])
    most = float(tried.max()) if len(tried) else 0.0
    heads = [
        text(_LEFT + (column + 0.5) * _WIDE, _TOP - 9, name, text_anchor="middle")
        for column, name in enumerate(table.operations)
    ]
    sides = [
        text(_LEFT - 12, _middle(row) + 4, f"{row + 1}", text_anchor="end", class_="quiet") for row in range(places)
    ]
    title = text(0, _TOP - 9, "place", class_="quiet")
    cells = [_cell(table, row, column, most) for row in range(places) for column in range(operations)]
    label = f"Scores of {operations} operations at {places} places. Every cell has its number."
    return inline(_LEFT + operations * _WIDE, _TOP + places * _HIGH, label, [title, *heads, *sides, *cells])


def _cell(table: OperationTable, row: int, column: int, most: float) -> str:
    count, score = int(table.counts[row, column]), float(table.scores[row, column])
    x, y = _LEFT + column * _WIDE, _TOP + row * _HIGH
    place: dict[str, str | float] = {"x": x + 1, "y": y + 1, "width": _WIDE - 2, "height": _HIGH - 2, "rx": 4}
    where = f"Place {row + 1}, {table.operations[column]}"
    if not count:
        title = element("title", plain(f"{where}: never tried"))
        return element("g", title + element("rect", **place, class_="untried"))
    times = "1 formula" if count == 1 else f"{count:,} formulas"
    share = _STRONGEST * abs(score) / most if most else 0.0
    colour = f"fill:color-mix(in srgb, var(--{'better' if score > 0 else 'worse'}) {number(share)}%, var(--sheet))"
    return element(
        "g",
        element("title", plain(f"{where}: {score:+.2f} in {times}"))
        + element("rect", **place, class_="cell", style=colour)
        + text(x + _WIDE / 2, y + 16, f"{score:+.2f}", text_anchor="middle", class_="figure")
        + text(x + _WIDE / 2, y + 28, f"{count:,}", text_anchor="middle", class_="quiet small"),
    )


def _middle(row: int) -> float:
    return _TOP + (row + 0.5) * _HIGH
