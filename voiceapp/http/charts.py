"""Bar charts that the server draws as SVG, each with a table of its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

HEIGHT = 60
BAR_WIDTH = 10


@dataclass(frozen=True, slots=True)
class Bar:
    """One unit of time."""

    label: str
    cells: Sequence[str]
    """Its numbers in words, in the order of the chart's columns."""
    x: int
    height: int
    marked_height: int
    """Height of the part that failed."""

    @property
    def y(self) -> int:
        """Distance of the bar's top from that of the chart."""
        return HEIGHT - self.height

    @property
    def marked_y(self) -> int:
        """Distance of the failed part's top from that of the chart."""
        return HEIGHT - self.marked_height


@dataclass(frozen=True, slots=True)
class Chart:
    """Numbers over time."""

    title: str
    unit: str
    """Time that one bar stands for."""
    columns: Sequence[str]
    bars: Sequence[Bar]

    @property
    def width(self) -> int:
        """Width in units of the drawing."""
        return BAR_WIDTH * len(self.bars)


def chart(
    title: str, unit: str, columns: Sequence[str], points: Sequence[tuple[str, float, float, Sequence[str]]]
) -> Chart:
    """Draw points of a label, a value, its failed part and its numbers in words."""
    most = max((value for _, value, _, _ in points), default=0) or 1
    bars = [
        Bar(label, cells, place * BAR_WIDTH, _height(value / most), _height(failed / most))
        for place, (label, value, failed, cells) in enumerate(points)
    ]
    return Chart(title, unit, columns, bars)


def _height(share: float) -> int:
    return math.ceil(round(share * HEIGHT, 3))
