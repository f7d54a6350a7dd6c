"""Each figure is measured and reported; how large it is, is for `./dev bench` to say."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.bench.__main__ import BENCHES
from tests.bench.figures import TINY, Figure
from tests.bench.flat import SHAPES, VERBS, Curve
from tests.bench.plot import draw


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_reports_numbers(name: str, tmp_path: Path) -> None:
    figures = list(BENCHES[name](TINY, tmp_path))
    assert figures
    for figure in figures:
        assert figure.bench == name
        assert math.isfinite(figure.ratio)
        assert figure.ratio >= 0
        assert figure.what in figure.line()


def test_the_curve_becomes_a_picture(tmp_path: Path) -> None:
    curve: Curve = {(v, s): {1000: 50.0, 10**6: 55.0} for v in VERBS for s in SHAPES}
    draw(tmp_path / "new" / "flat.svg", curve)
    text = (tmp_path / "new" / "flat.svg").read_text()
    assert text.count("<polyline") == len(VERBS) * len(SHAPES)


@pytest.mark.parametrize(
    ("ratio", "target", "ok"),
    [
        (0.8, {"at_least": 0.8}, True),
        (0.79, {"at_least": 0.8}, False),
        (1.3, {"at_most": 1.3}, True),
        (1.31, {"at_most": 1.3}, False),
    ],
)
def test_a_figure_knows_whether_it_is_enough(
    ratio: float, target: dict[str, float], ok: bool
) -> None:
    figure = Figure("bench", "what", "ours", "other", ratio, **target)
    assert figure.ok is ok
    assert figure.line().endswith("ok" if ok else "SHORT")
