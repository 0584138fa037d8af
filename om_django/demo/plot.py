"""The sawtooth in the terminal: tokens of the context over the messages of the thread."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from .player import Happening, Played, Sample

HEIGHT = 14
LOG, WINDOW, LINE = "█", "░", "┄"
STYLES = {LOG: "magenta", WINDOW: "cyan", LINE: "dim", "●": "cyan", "◆": "magenta"}
_LABEL = 8


def draw(played: Played, width: int = 80, height: int = HEIGHT) -> list[Text]:
    """Return the lines of the plot, ``width`` or at most 80 wide. Empty without samples."""
    samples = played.samples
    if not samples:
        return []
    columns = max(10, min(width, 80) - _LABEL - 2)
    first, last = samples[0].at, samples[-1].at
    heights = _columns(samples, columns)
    both = played.message_threshold + played.log_threshold
    unit = _unit(max(both, *(sample.total for sample in samples)) + 1, height)
    rows = [value // unit for value in (both, played.log_threshold)]
    lines = [
        _row(heights, row, unit, rows)
        for row in range(max(rows[0], *(s.total // unit for s in heights)), -1, -1)
    ]
    lines.append(Text(" " * _LABEL + "└" + "─" * columns, style="dim"))
    lines.append(_ends(first, last, columns))
    for kind, mark in (("observation", "●"), ("reflection", "◆")):
        lines.append(_marks(played.happenings, kind, mark, first, last, columns))
    legend = Text(" " * (_LABEL + 1))
    legend.append(f"{LOG * 2} observation log  ", STYLES[LOG])
    legend.append(f"{WINDOW * 2} unobserved messages  ", STYLES[WINDOW])
    legend.append(f"{LINE * 2} thresholds", STYLES[LINE])
    lines.append(legend)
    return lines


def _columns(samples: Sequence[Sample], columns: int) -> list[Sample]:
    """Return the highest sample of each column; a column without one repeats the one before."""
    first, span = samples[0].at, max(1, samples[-1].at - samples[0].at)
    found: list[Sample | None] = [None] * columns
    for sample in samples:
        column = _column(sample.at, first, span, columns)
        best = found[column]
        if best is None or sample.total > best.total:
            found[column] = sample
    result: list[Sample] = []
    for entry in found:
        result.append(entry or (result[-1] if result else samples[0]))
    return result


def _column(at: int, first: int, span: int, columns: int) -> int:
    return min(columns - 1, (at - first) * columns // span)


def _unit(top: int, height: int) -> int:
    """Return a round number of tokens for one row, so that ``top`` fits."""
    power = 1
    while True:
        for factor in (10, 15, 20, 25, 30, 40, 50, 75):
            if (unit := factor * power) * height >= top:
                return unit
        power *= 10


def _label(tokens: int) -> str:
    return f"{tokens:,}" if tokens < 1_000_000 else f"{tokens / 1_000_000:.4g}M"


def _row(heights: Sequence[Sample], row: int, unit: int, lines: Sequence[int]) -> Text:
    """Return one row; ``unit`` is the number of tokens in a row, ``lines`` rows with a line."""
    text = Text(f"{_label(unit * row):>{_LABEL - 1}} " if row % 2 == 0 else " " * _LABEL, "dim")
    text.append("┤" if row % 2 == 0 else "│", "dim")
    middle = unit * (row + 0.5)
    for sample in heights:
        if sample.log >= middle:
            cell = LOG
        elif sample.total >= middle:
            cell = WINDOW
        else:
            cell = LINE if row in lines else " "
        text.append(cell, STYLES.get(cell, ""))
    return text


def _ends(first: int, last: int, columns: int) -> Text:
    left, right = f"message {first:,}", f"message {last:,}"
    return Text(" " * (_LABEL + 1) + left + right.rjust(max(0, columns - len(left))), "dim")


def _marks(
    happenings: Sequence[Happening], kind: str, mark: str, first: int, last: int, columns: int
) -> Text:
    cells = [" "] * columns
    chosen = [happening for happening in happenings if happening.kind == kind]
    for happening in chosen:
        cells[_column(max(first, happening.at), first, max(1, last - first), columns)] = mark
    label = f"{len(chosen)} {'obs' if kind == 'observation' else 'refl'}"
    return Text(f"{label:>{_LABEL - 1}}  " + "".join(cells).rstrip(), STYLES[mark])
