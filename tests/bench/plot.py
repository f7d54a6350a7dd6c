"""The curve as a picture: one panel a verb, one line a shape, time over rows."""

from __future__ import annotations

from collections.abc import Mapping
from math import log10
from pathlib import Path

WIDTH, HEIGHT = 190, 150  # of a panel's drawing area
LEFT, TOP, GAP = 50, 40, 60
COLOURS = ("#2f6fb0", "#c4572b", "#3a8f4d", "#8a55a8")


def draw(file: Path, curve: Mapping[tuple[str, str], Mapping[int, float]]) -> None:
    verbs = list(dict.fromkeys(verb for verb, _ in curve))
    shapes = list(dict.fromkeys(shape for _, shape in curve))
    colours = dict(zip(shapes, COLOURS, strict=True))
    parts = [
        _panel(LEFT + i * (WIDTH + GAP), verb, {s: curve[verb, s] for s in shapes}, colours)
        for i, verb in enumerate(verbs)
    ]
    parts += [
        _key(LEFT + i * 230, shape, colour) for i, (shape, colour) in enumerate(colours.items())
    ]
    width = LEFT + len(verbs) * (WIDTH + GAP)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HEIGHT + 65}" '
        'font-family="sans-serif" font-size="12" fill="#444">\n'
        '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _key(left: int, shape: str, colour: str) -> str:
    top = TOP + HEIGHT + 42
    return (
        f'<rect x="{left}" y="{top}" width="12" height="4" fill="{colour}"/>'
        f'<text x="{left + 18}" y="{top + 6}">{shape}</text>'
    )


def _panel(
    left: int,
    title: str,
    lines: Mapping[str, Mapping[int, float]],
    colours: Mapping[str, str],
) -> str:
    sizes = sorted({rows for line in lines.values() for rows in line})
    top = max(value for line in lines.values() for value in line.values()) * 1.25
    span = (log10(sizes[-1]) - log10(sizes[0])) or 1

    def x(rows: int) -> float:
        return left + (log10(rows) - log10(sizes[0])) / span * WIDTH

    def y(value: float) -> float:
        return TOP + HEIGHT * (1 - value / top)

    bottom = TOP + HEIGHT
    parts = [
        f'<text x="{left}" y="{TOP - 14}" font-weight="bold">{title}</text>',
        f'<path d="M{left} {TOP}V{bottom}H{left + WIDTH}" fill="none" stroke="#999"/>',
    ]
    for value in (0, top / 2, top):
        label = f'<text x="{left - 6}" y="{y(value) + 4:.0f}" text-anchor="end">'
        parts.append(f"{label}{_short_time(value)}</text>")
    for rows in sizes:
        label = f'<text x="{x(rows):.0f}" y="{bottom + 16}" text-anchor="middle">'
        parts.append(f"{label}{_short(rows)}</text>")
    for shape, line in lines.items():
        points = " ".join(f"{x(rows):.0f},{y(value):.1f}" for rows, value in line.items())
        stroke = f'stroke="{colours[shape]}" stroke-width="2"'
        parts.append(f'<polyline points="{points}" fill="none" {stroke}/>')
    return "\n".join(parts)


def _short(rows: int) -> str:
    if rows >= 1_000_000:
        return f"{rows / 1_000_000:g}M"
    return f"{rows / 1000:g}k"


def _short_time(us: float) -> str:
    return f"{us / 1000:.1f} ms" if us >= 1000 else f"{us:.0f} us"
