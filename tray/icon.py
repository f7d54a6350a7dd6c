"""Drawing the icon at any size. Each shape brings its own ground, so that it can be told on light
and on dark panels; it is drawn large and made small, so that its edges are smooth."""

from __future__ import annotations

from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

from .model import Icon

_TEAL = (11, 114, 104, 255)
_BRIGHT = (64, 224, 190, 255)
_TRACK = (5, 72, 66, 255)
_WHITE = (255, 255, 255, 255)
_RED = (214, 48, 49, 255)
_GREY = (110, 120, 128, 255)
_BLUE = (58, 96, 150, 255)
_SCALE = 8


@lru_cache(maxsize=256)
def draw(icon: Icon, size: int) -> Image.Image:
    side = size * _SCALE
    image = Image.new("RGBA", (side, side))
    pen = ImageDraw.Draw(image)
    unit = side / 32
    _KINDS[icon.kind](pen, unit, icon)
    if icon.failed:
        _failed(pen, unit, icon.kind)
    return image.resize((size, size), Image.Resampling.LANCZOS)


def _idle(pen: ImageDraw.ImageDraw, unit: float, _: Icon) -> None:
    """As the page has it: three lines, the last with its dot."""
    _box(pen, unit, _TEAL)
    for y, end in ((10, 24), (16, 20), (22, 15)):
        _line(pen, unit, (8.5, y), (end, y))
    pen.ellipse(_round(unit, 22, 22, 3), fill=_WHITE)


def _running(pen: ImageDraw.ImageDraw, unit: float, icon: Icon) -> None:
    """A ring that fills, and the number of jobs in it."""
    pen.ellipse(_round(unit, 16, 16, 16), fill=_TEAL)
    ring, width = _round(unit, 16, 16, 14.5), round(3.6 * unit)
    if icon.progress is None:
        # Nobody says how far it is: three pieces that mean no share of anything.
        for start in (-90, 30, 150):
            pen.arc(ring, start, start + 72, _BRIGHT, width)
    else:
        pen.arc(ring, 0, 360, _TRACK, width)
        pen.arc(ring, -90, -90 + 360 * icon.progress, _BRIGHT, width)
    words = str(icon.number) if icon.number < 100 else "99"
    font = _font(round((17 if len(words) == 1 else 14) * unit))
    pen.text((16 * unit, 16 * unit), words, _WHITE, font, anchor="mm",
             stroke_width=round(0.5 * unit), stroke_fill=_WHITE)  # fmt: skip


def _paused(pen: ImageDraw.ImageDraw, unit: float, _: Icon) -> None:
    _box(pen, unit, _BLUE)
    for x in (9, 18):
        pen.rounded_rectangle(_at(unit, x, 8, x + 5, 24), 1.5 * unit, fill=_WHITE)


def _down(pen: ImageDraw.ImageDraw, unit: float, _: Icon) -> None:
    """The service is not there: no colour, and a line through it."""
    _box(pen, unit, _GREY)
    for y, end in ((10, 24), (16, 20), (22, 15)):
        _line(pen, unit, (8.5, y), (end, y))
    _line(pen, unit, (5, 27), (27, 5), 7.0, _GREY)
    _line(pen, unit, (4, 28), (28, 4), 3.4)


def _failed(pen: ImageDraw.ImageDraw, unit: float, kind: str) -> None:
    """While jobs run, in the corner; otherwise it is what there is to see."""
    if kind == "running":
        pen.ellipse(_round(unit, 25.5, 6.5, 6.5), fill=_WHITE)
        pen.ellipse(_round(unit, 25.5, 6.5, 5.3), fill=_RED)
        return
    _box(pen, unit, _RED)
    pen.rounded_rectangle(_at(unit, 13.6, 6, 18.4, 19), 2 * unit, fill=_WHITE)
    pen.ellipse(_round(unit, 16, 24, 2.7), fill=_WHITE)


_KINDS = {"idle": _idle, "running": _running, "paused": _paused, "down": _down}


def _box(pen: ImageDraw.ImageDraw, unit: float, colour: tuple[int, ...]) -> None:
    pen.rounded_rectangle(_at(unit, 0.5, 0.5, 31.5, 31.5), 8 * unit, fill=colour)


def _line(
    pen: ImageDraw.ImageDraw,
    unit: float,
    start: tuple[float, float],
    end: tuple[float, float],
    width: float = 3.2,
    colour: tuple[int, ...] = _WHITE,
) -> None:
    ends = [(start[0] * unit, start[1] * unit), (end[0] * unit, end[1] * unit)]
    pen.line(ends, colour, round(width * unit))
    for x, y in (start, end):
        pen.ellipse(_round(unit, x, y, width / 2), fill=colour)


def _round(unit: float, x: float, y: float, radius: float) -> tuple[float, ...]:
    return _at(unit, x - radius, y - radius, x + radius, y + radius)


def _at(unit: float, *places: float) -> tuple[float, ...]:
    return tuple(place * unit for place in places)


@lru_cache(maxsize=32)
def _font(size: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    return ImageFont.load_default(size)


def argb(image: Image.Image) -> bytes:
    """The pixels as StatusNotifierItem wants them: in network byte order, alpha first."""
    red, green, blue, alpha = image.convert("RGBA").split()
    return Image.merge("RGBA", (alpha, red, green, blue)).tobytes()
