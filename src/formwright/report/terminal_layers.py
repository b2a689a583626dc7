"""Layers, embeddings and heads as rows of a text drawing."""

from formwright.arch.card import Card
from formwright.arch.check import branches
from formwright.arch.layers import Block, Branch, Cell, Embedding, Junction, Layer, TokenEmbedding
from formwright.arch.ops import Operation
from formwright.report.fold import Funnel, Run, inner_funnel
from formwright.report.palette import swatch
from formwright.report.terminal_boxes import Part, Row, Sheet, Span, bar, box, funnel_row, padded, tiles
from formwright.report.words import (
    brief,
    describe,
    describe_between,
    describe_branch,
    describe_embedding,
    describe_feed_forward,
    describe_funnel,
    describe_head,
    describe_layer,
    heading,
    heads_of,
)
from formwright.report.wrap import shortened

_TEXTURES = {"tokens": "░", "patches": "▦", "frames": "▂▅▇▄▆▃"}
_COMBINE = {"add": "+", "concatenate": "&", "multiply": "x"}


def embedding_rows(sheet: Sheet, embedding: Embedding, shared: bool) -> list[Row]:
    """Draw what enters a stack."""
    factorised = embedding.factorised if isinstance(embedding, TokenEmbedding) else None
    table = factorised or embedding.width
    room = sheet.inside(table)
    texture = (Span((_TEXTURES[embedding.TYPE] * room)[:room]),)
    first, second = describe_embedding(embedding, shared=shared)
    rows = box(sheet, table, [Part((texture,), first), Part((), second)], "Embedding")
    rows[0] = Row(rows[0].left, (Span(rows[0].shape[0].text.replace("┴", "─")),), rows[0].words)
    return rows + projection_rows(sheet, Funnel(table, embedding.width))


def projection_rows(sheet: Sheet, funnel: Funnel) -> list[Row]:
    """Draw a projection between unequal widths; nothing between equal ones."""
    if funnel.before == funnel.after:
        return []
    return [funnel_row(sheet, funnel, describe_funnel(funnel))]


def run_rows(sheet: Sheet, run: Run) -> list[Row]:
    """Draw the box of a layer, once for all its repetitions."""
    times = f" x {run.times}" if run.times > 1 else ""
    title = f"{heading(run.first, run.last)}{times}, {describe_layer(run.layer)}"
    parts = list(_parts(sheet, run.layer))
    if run.times > 1 and (between := inner_funnel([run])):
        parts.append(Part((), describe_between(between)))
    return box(sheet, run.layer.width, parts, title, run.times)


def run_row(sheet: Sheet, run: Run) -> Row:
    """Draw a layer in one row, for designs with very many of them."""
    layer = run.layer
    mixer = layer.mixer if isinstance(layer, Block) else layer.junctions[-1].left.operation
    filling = tiles(swatch(mixer), heads_of(mixer), sheet.inside(layer.width))
    times = f" x {run.times}" if run.times > 1 else ""
    place = f"{run.first}{times}".ljust(8) + f"{layer.width:>5}  "
    words = shortened(brief(layer), sheet.words - len(place) - 2)
    shape = (Span("│ "), *filling, Span(" │"))
    glyph = Span(swatch(mixer).glyph, swatch(mixer))
    return Row(sheet.left(layer.width), shape, (Span(place), glyph, Span(f" {words}")))


def run_row_title() -> Row:
    """Name the columns of the words beside rows that stand for layers."""
    return Row(0, (), (Span(f"{'layer':<8}{'width':>5}  feed-forward, mixer", strong=True),))


def head_rows(sheet: Sheet, card: Card) -> list[Row]:
    """Draw what stands above the last layer: pooler and classes."""
    rows = []
    for words in describe_head(card):
        filling = (Span("░" * sheet.inside(card.output_width)),)
        rows += box(sheet, card.output_width, [Part((filling,), words)], "Head")
    return rows


def norm_row(sheet: Sheet, width: int) -> Row:
    """Draw the norm above the last layer."""
    half = sheet.box(width) // 4
    return Row(sheet.area // 2 - half, (Span("╌" * half + "┼" + "╌" * half),), (Span("norm"),))


def _parts(sheet: Sheet, layer: Layer) -> list[Part]:
    return _block_parts(sheet, layer) if isinstance(layer, Block) else _cell_parts(sheet, layer)


def _block_parts(sheet: Sheet, block: Block) -> list[Part]:
    room = sheet.inside(block.width)
    parts = [_operation_part(block.mixer, room)]
    if block.cross is not None:
        parts.append(_operation_part(block.cross, room))
    if block.feed_forward:
        bars = tuple(bar(sheet, width, room) for width in block.feed_forward)
        parts.append(Part(bars, describe_feed_forward(block)))
    return parts


def _operation_part(operation: Operation, room: int) -> Part:
    return Part((tiles(swatch(operation), heads_of(operation), room),), describe(operation), swatch(operation))


def _cell_parts(sheet: Sheet, cell: Cell) -> list[Part]:
    room = sheet.inside(cell.width)
    widest = max(branch.width for _, branch in branches(cell))
    return [_junction_part(index, junction, room, widest) for index, junction in enumerate(cell.junctions, start=1)]


def _junction_part(index: int, junction: Junction, room: int, widest: int) -> Part:
    left, right = junction.left, junction.right
    half = (room - 3) // 2
    if right is None:
        alone = padded(_branch(left, half, widest), room)
        return Part((alone,), f"{index}: {describe_branch(left)}", indent=7)
    pair = (*_branch(left, half, widest), Span(f" {_COMBINE[junction.combine]} "), *_branch(right, half, widest))
    words = f"{index}: {describe_branch(left)}\n   | {junction.combine} | {describe_branch(right)}"
    return Part((pair,), words, indent=7)


def _branch(branch: Branch, room: int, widest: int) -> tuple[Span, ...]:
    length = max(1, round(room * branch.width / widest))
    return padded(tiles(swatch(branch.operation), 1, length), room)
