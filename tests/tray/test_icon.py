"""The icon at every size, told apart on light and on dark panels."""

from __future__ import annotations

import pytest
from PIL import Image, ImageChops
from svcq_tray.icon import argb, draw
from svcq_tray.model import Icon

KINDS = {
    "idle": Icon("idle"),
    "running": Icon("running", False, 3, 0.5),
    "unknown progress": Icon("running", False, 3, None),
    "paused": Icon("paused"),
    "failed": Icon("idle", failed=True),
    "running and failed": Icon("running", True, 3, 0.5),
    "down": Icon("down"),
}
SIZES = (16, 22, 24, 32, 44, 48, 64, 128)
LIGHT, DARK = (246, 245, 244), (38, 40, 44)


def on(panel: tuple[int, int, int], icon: Icon, size: int) -> Image.Image:
    ground = Image.new("RGB", (size, size), panel)
    drawn = draw(icon, size)
    ground.paste(drawn, (0, 0), drawn)
    return ground


def difference(one: Image.Image, other: Image.Image) -> float:
    """From 0, the same, to 255."""
    data = ImageChops.difference(one, other).convert("L").tobytes()
    return sum(data) / len(data)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("panel", [LIGHT, DARK], ids=["light", "dark"])
def test_all_can_be_told_apart_and_from_the_panel(size: int, panel: tuple[int, int, int]) -> None:
    drawn = [on(panel, icon, size) for icon in KINDS.values()]
    bare = Image.new("RGB", (size, size), panel)
    for n, one in enumerate(drawn):
        assert one.size == (size, size)
        assert difference(one, bare) > 25
        for other in drawn[n + 1 :]:
            assert difference(one, other) > 3


def test_the_ring_fills() -> None:
    shares = [draw(Icon("running", False, 1, share), 48) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    bright = [_bright(one) for one in shares]
    assert bright[0] < bright[1] < bright[2] < bright[3] < bright[4]


def _bright(image: Image.Image) -> int:
    pixels = image.convert("RGB").tobytes()
    return sum(
        1 for r, g, b in zip(*[iter(pixels)] * 3, strict=True) if g > 190 and b > 150 and r < 120
    )


def test_the_number_shows_and_a_large_one_fits() -> None:
    assert (
        difference(
            on(LIGHT, Icon("running", False, 1), 48), on(LIGHT, Icon("running", False, 2), 48)
        )
        > 1
    )
    assert draw(Icon("running", False, 10_000, 0.5), 22).size == (22, 22)


def test_it_is_as_sharp_at_twice_the_size_as_drawn_for_it() -> None:
    """Drawn for 44 pixels, and not 22 made larger."""
    large = draw(Icon("idle"), 44)
    blown_up = draw(Icon("idle"), 22).resize((44, 44), Image.Resampling.BILINEAR)
    assert _edges(large) > 1.2 * _edges(blown_up)


def _edges(image: Image.Image) -> float:
    shifted = ImageChops.offset(image.convert("L"), 1, 0)
    return sum(
        value * value for value in ImageChops.difference(image.convert("L"), shifted).tobytes()
    )


def test_pixels_are_in_the_order_of_the_bus() -> None:
    image = Image.new("RGBA", (1, 1), (1, 2, 3, 4))
    assert argb(image) == bytes([4, 1, 2, 3])
