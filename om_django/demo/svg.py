"""The sawtooth as a picture: an SVG that reads on light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from xml.sax.saxutils import escape

from .player import Played, Sample

WIDTH, HEIGHT = 960, 460
LEFT, RIGHT, TOP, BOTTOM = 76, 24, 84, 88
_STYLE = """\
:root { --paper: #ffffff; --ink: #1f2328; --soft: #656d76; --grid: #d8dee4;
  --log: #8250df; --window: #54aeff; --line: #bc4c00; }
@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #e6edf3; --soft: #8d96a0;
  --grid: #30363d; --log: #a371f7; --window: #388bfd; --line: #f0883e; } }
text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: var(--ink); }
.soft { fill: var(--soft); font-size: 12px; } .title { font-size: 18px; font-weight: 600; }
.grid { stroke: var(--grid); stroke-width: 1; } .log { fill: var(--log); fill-opacity: .85; }
.window { fill: var(--window); fill-opacity: .6; }
.limit { stroke: var(--line); stroke-width: 1.5; stroke-dasharray: 6 4; }
.limit-text { fill: var(--line); font-size: 12px; paint-order: stroke; stroke: var(--paper);
  stroke-width: 3px; }
.observation { fill: var(--window); stroke: var(--paper); stroke-width: 1.5; }
.reflection { fill: var(--log); stroke: var(--paper); stroke-width: 1.5; }
.failure { stroke: var(--line); stroke-width: 2.5; }"""

Scale = Callable[[float], float]


def render(played: Played, *, title: str, subtitle: str) -> str:
    """Return the SVG of a run. Needs at least one sample."""
    samples = played.samples
    first, last = samples[0].at, samples[-1].at
    both = played.message_threshold + played.log_threshold
    step = _tick(max(both, *(sample.total for sample in samples)) * 1.08 / 7)
    top = step * math.ceil(max(both, *(sample.total for sample in samples)) * 1.08 / step)
    floor, width = HEIGHT - BOTTOM, WIDTH - LEFT - RIGHT

    def x(at: float) -> float:
        return LEFT + width * (at - first) / max(1, last - first)

    def y(tokens: float) -> float:
        return floor - (floor - TOP) * tokens / top

    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="t d">',
        f'<title id="t">{escape(title)}</title>',
        f'<desc id="d">{escape(subtitle)}</desc>',
        f"<style>{_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" style="fill: var(--paper)"/>',
        f'<text x="{LEFT}" y="32" class="title">{escape(title)}</text>',
        f'<text x="{LEFT}" y="54" class="soft">{escape(subtitle)}</text>',
        *_axes(x, y, first, last, step, top),
        _area("log", x, y, [(s.at, 0, s.log) for s in samples]),
        _area("window", x, y, [(s.at, s.log, s.total) for s in samples]),
        *_limits(played, y),
        *_marks(played, samples, x, y),
        *_legend(),
        "</svg>\n",
    ]
    return "\n".join(body)


def _tick(rough: float) -> int:
    """Return the next round number: 1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(max(1.0, rough)))
    return int(next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough))


def _axes(x: Scale, y: Scale, first: int, last: int, step: int, top: int) -> Iterator[str]:
    for value in range(0, top + 1, step):
        yield (
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" '
            f'y2="{y(value):.1f}"/><text class="soft" x="{LEFT - 8}" y="{y(value) + 4:.1f}" '
            f'text-anchor="end">{value:,}</text>'
        )
    each = max(1, _tick((last - first) / 8))
    marks = [first, *range((first // each + 1) * each, last + 1, each)]
    for at in marks:
        if at == first and len(marks) > 1 and x(marks[1]) - x(first) < 40:
            continue
        yield (
            f'<text class="soft" x="{x(at):.1f}" y="{HEIGHT - BOTTOM + 18}" '
            f'text-anchor="middle">{at:,}</text>'
        )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    yield (
        f'<text class="soft" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - BOTTOM + 38}" '
        'text-anchor="middle">messages of the thread</text>'
        f'<text class="soft" x="18" y="{middle}" text-anchor="middle" '
        f'transform="rotate(-90 18 {middle})">tokens in the context</text>'
    )


def _area(css: str, x: Scale, y: Scale, bands: Sequence[tuple[int, int, int]]) -> str:
    upper = " ".join(f"{x(at):.1f},{y(high):.1f}" for at, _low, high in bands)
    lower = " ".join(f"{x(at):.1f},{y(low):.1f}" for at, low, _high in reversed(bands))
    return f'<polygon class="{css}" points="{upper} {lower}"/>'


def _limits(played: Played, y: Scale) -> Iterator[str]:
    both = played.message_threshold + played.log_threshold
    for value, name in (
        (both, f"message threshold + observation threshold: {both:,}"),
        (played.log_threshold, f"observation threshold: {played.log_threshold:,}"),
    ):
        yield (
            f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" '
            f'y2="{y(value):.1f}"/><text class="limit-text" x="{WIDTH - RIGHT - 4}" '
            f'y="{y(value) - 6:.1f}" text-anchor="end">{name}</text>'
        )


def _marks(played: Played, samples: Sequence[Sample], x: Scale, y: Scale) -> Iterator[str]:
    peaks: dict[int, int] = {}
    for sample in samples:
        peaks[sample.at] = max(peaks.get(sample.at, 0), sample.total)
    for happening in played.happenings:
        at = max(samples[0].at, happening.at)
        px, py = x(at), y(peaks.get(at, 0))
        if happening.kind == "reflection":
            py = y(happening.log[1])
        note = f"<title>{happening.kind} after message {at:,}</title>"
        yield f"<g>{note}{_mark(happening.kind, px, py)}</g>"


def _mark(kind: str, x: float, y: float) -> str:
    if kind == "observation":
        return f'<circle class="observation" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
    if kind == "reflection":
        return f'<path class="reflection" d="M{x:.1f},{y - 7:.1f} l7,7 l-7,7 l-7,-7 z"/>'
    return f'<path class="failure" d="M{x - 5:.1f},{y - 5:.1f} l10,10 m0,-10 l-10,10"/>'


def _legend() -> Iterator[str]:
    y = HEIGHT - 20
    yield (
        f'<rect class="log" x="{LEFT}" y="{y - 10}" width="16" height="11"/>'
        f'<text class="soft" x="{LEFT + 22}" y="{y}">observation log</text>'
        f'<rect class="window" x="{LEFT + 140}" y="{y - 10}" width="16" height="11"/>'
        f'<text class="soft" x="{LEFT + 162}" y="{y}">unobserved messages</text>'
    )
    yield _mark("observation", LEFT + 318, y - 4)
    yield f'<text class="soft" x="{LEFT + 330}" y="{y}">observation, activated at once</text>'
    yield _mark("reflection", LEFT + 528, y - 4)
    yield f'<text class="soft" x="{LEFT + 542}" y="{y}">reflection: the log rewritten</text>'
