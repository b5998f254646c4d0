"""Line charts as SVG, without scripts, in the colors of their page."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from html import escape

from markupsafe import Markup

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 12, 44
DASHES = ("", "7 4", "2 3", "10 3 2 3")
MOST_TICKS = 8
NEAR_TICKS = 0.075
"""The least distance of ticks as a share of the axis: nearer labels touch on a narrow screen."""
COLORS = 6
"""The page defines the colors ``--series-0`` and so on."""
Coordinates = Sequence[tuple[float, float]]


def line_chart(
    series: Mapping[str, Coordinates],
    x_label: str,
    y_label: str,
    *,
    top: float | None = None,
    spread: Mapping[str, Sequence[float]] | None = None,
) -> Markup:
    """Return an SVG of some lines over a logarithmic x axis; x above 0, y from 0 to ``top`` or the largest.

    ``spread`` gives each point a bar of this length up and down.
    """
    xs = [math.log10(x) for points in series.values() for x, _ in points]
    low, high = (min(xs), max(xs)) if xs else (0.0, 1.0)
    high = high if high > low else low + 1
    most = top or max((y for points in series.values() for _, y in points), default=1.0) or 1.0

    ticks = _own_ticks(series, high - low) or _ticks(low, high)

    def across(x: float) -> float:
        return LEFT + (math.log10(x) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def down(y: float) -> float:
        return HEIGHT - BOTTOM - y / most * (HEIGHT - TOP - BOTTOM)

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(y_label)} over {escape(x_label)}">']
    for step in range(5):
        y = most * step / 4
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{down(y):.1f}" y2="{down(y):.1f}"/>')
        middle = down(y) + (4 if step else 0)  # keep the lowest label clear of the labels of x
        parts.append(f'<text x="{LEFT - 4}" y="{middle:.1f}" text-anchor="end">{y:.3g}</text>')
    parts += [f'<text x="{across(x):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:g}</text>' for x in ticks]
    centre, middle = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<text x="{centre}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(f'<text transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>')
    for number, (name, points) in enumerate(series.items()):
        wide = 6 if len(points) == 1 else 0  # a single point is a dash
        places = [(across(x) + aside, down(y)) for x, y in points for aside in ((-wide, wide) if wide else (0,))]
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        title = f"<title>{escape(name)}</title>"
        parts.append(f'<polyline class="line" style="{line_style(number)}" points="{drawn}">{title}</polyline>')
        for (x, y), more in zip(points, (spread or {}).get(name, ()), strict=False):
            high_end, low_end = down(min(y + more, most)), down(max(y - more, 0.0))
            ends = f'x1="{across(x):.1f}" x2="{across(x):.1f}" y1="{high_end:.1f}" y2="{low_end:.1f}"'
            parts.append(f'<line class="line" style="stroke: var(--series-{number % COLORS})" {ends}/>')
    return Markup("".join([*parts, "</svg>"]))  # noqa: S704 - escaped above


def line_style(number: int) -> str:
    """Return the color and the dashes of a line, by its number in the chart."""
    return f"stroke: var(--series-{number % COLORS}); stroke-dasharray: {DASHES[number // COLORS % 4] or 'none'}"


def legend(names: Sequence[str]) -> Markup:
    """Return a legend: the names of the lines with a sample of each."""
    parts = []
    for number, name in enumerate(names):
        style = line_style(number)
        line = f'<svg viewBox="0 0 28 10" class="key"><line x1="0" x2="28" y1="5" y2="5" style="{style}"/></svg>'
        parts.append(f"<li>{line} {escape(name)}</li>")
    return Markup(f'<ul class="legend">{"".join(parts)}</ul>')  # noqa: S704 - escaped above


def _own_ticks(series: Mapping[str, Coordinates], decades: float) -> list[float]:
    """Return the x of the lines' points; none if they are many, or so near that their labels would touch."""
    xs = sorted({x for points in series.values() for x, _ in points})
    near = any(math.log10(b / a) < NEAR_TICKS * decades for a, b in itertools.pairwise(xs))
    return [] if near or len(xs) > MOST_TICKS else xs


def _ticks(low: float, high: float) -> list[float]:
    values = [m * 10.0**e for e in range(math.floor(low), math.ceil(high) + 1) for m in (1, 2, 5)]
    inside = [x for x in values if low - 1e-9 <= math.log10(x) <= high + 1e-9]
    return inside if len(inside) < 9 else [x for x in inside if f"{x:e}"[0] == "1"]
