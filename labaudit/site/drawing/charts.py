"""Values to positions for the SVG macros: fixed decimals, so that the same run always gives the same picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]
WIDTH = 640
MARKS = 60


class Mark(NamedTuple):
    """An event on the timeline."""

    seq: int
    x: str


class Lane(NamedTuple):
    """One evidence source on the timeline."""

    source: str
    y: int
    marks: list[Mark]


class Timeline(NamedTuple):
    """Events over time, one lane per source; `left_out` counts marks that would only hide each other."""

    lanes: list[Lane]
    shown: int
    height: int
    seconds: float
    left_out: int


def fixed(value: float) -> str:
    """A coordinate with one decimal."""
    return f"{value:.1f}"


def timeline(events: Sequence[Json], sources: Sequence[str], start: float, end: float) -> Timeline | None:
    """Events as marks; each event carries `at` (seconds since the first) and `source`."""
    timed = [event for event in events if event["at"] is not None]
    if not timed:
        return None
    left, right = 130, WIDTH - 14
    span = max(end - start, 0.001)
    lanes = [Lane(source, 18 + 24 * number, []) for number, source in enumerate(sources)]
    marks = {lane.source: lane.marks for lane in lanes}
    step = max(1, -(-len(timed) // MARKS))
    chosen = timed if step == 1 else [event for place, event in enumerate(timed) if place % step == 0]
    drawn = 0
    for event in chosen:
        x = f"{left + (right - left) * (event['at'] - start) / span:.0f}"
        lane = marks[event["source"]]
        if not lane or lane[-1].x != x:
            lane.append(Mark(event["seq"], x))
            drawn += 1
    return Timeline(lanes, drawn, 24 * len(lanes) + 30, span, len(timed) - drawn)


class ForestRow(NamedTuple):
    """One comparison of a forest plot; `low`, `high` and `at` are None where there is no number."""

    label: str
    href: str
    y: str
    low: str | None
    high: str | None
    at: str | None
    favours: str
    text: str


class Forest(NamedTuple):
    """Effects with intervals on one axis."""

    rows: list[ForestRow]
    zero: str
    ticks: list[tuple[str, str]]
    height: int


def forest(items: Sequence[Json]) -> Forest | None:
    """A forest plot; each item has label, href, estimate, low, high, favours, text, all on one scale."""
    numbers = [item[key] for item in items for key in ("estimate", "low", "high") if item[key] is not None]
    if not numbers:
        return None
    low, high = min(0.0, *numbers), max(0.0, *numbers)
    pad = (high - low) * 0.06 or 0.1
    low, high = low - pad, high + pad
    left, right = 200, WIDTH - 20

    def place(value: float | None) -> str | None:
        return None if value is None else fixed(left + (right - left) * (value - low) / (high - low))

    rows = [
        ForestRow(
            item["label"],
            item["href"],
            fixed(26 + 30 * number),
            place(item["low"]),
            place(item["high"]),
            place(item["estimate"]),
            item["favours"],
            item["text"],
        )
        for number, item in enumerate(items)
    ]
    ticks = [(place(value) or "", _tick(value)) for value in _ticks(low, high)]
    return Forest(rows, place(0.0) or "", ticks, 30 * len(items) + 40)


def _ticks(low: float, high: float) -> list[float]:
    """Three to six round numbers within the range."""
    span = high - low
    step = 10.0 ** len(str(int(span)))
    while span / step < 3:
        step /= 2 if str(step).lstrip("0.").startswith(("1", "2")) else 2.5
    first = int(low / step)
    found = [number * step for number in range(first, first + 12) if low <= number * step <= high]
    return [0.0 if abs(value) < step / 100 else value for value in found][:8]


def _tick(value: float) -> str:
    return "0" if value == 0 else f"{value:+.2f}".replace("-", "\u2212")


class StripMark(NamedTuple):
    """One task's difference."""

    x: str
    y: str
    kind: str
    href: str
    label: str


class Strip(NamedTuple):
    """Differences of tasks as stacked marks on one axis."""

    marks: list[StripMark]
    zero: str
    ticks: list[tuple[str, str]]
    height: int
    left_out: int


def strip(items: Sequence[Json], limit: int = 400) -> Strip | None:
    """A strip of paired differences; each item has difference, href, label."""
    chosen = list(items[:limit])
    if not chosen:
        return None
    values = [item["difference"] for item in chosen]
    low, high = min(0.0, *values), max(0.0, *values)
    pad = (high - low) * 0.06 or 0.1
    low, high = low - pad, high + pad
    left, right = 20, WIDTH - 20
    columns: dict[int, int] = {}
    tallest = 1
    placed = []
    for item in sorted(chosen, key=lambda one: (one["difference"], one["label"])):
        x = left + (right - left) * (item["difference"] - low) / (high - low)
        column = round(x / 8)
        columns[column] = columns.get(column, 0) + 1
        tallest = max(tallest, columns[column])
        placed.append((x, columns[column], item))
    step = min(9.0, 150 / tallest)
    height = int(step * tallest) + 44
    base = height - 30
    marks = [
        StripMark(
            fixed(x),
            fixed(base - step * (rank - 0.5)),
            "up" if item["difference"] > 0 else "down" if item["difference"] < 0 else "same",
            item["href"],
            item["label"],
        )
        for x, rank, item in placed
    ]
    zero = fixed(left + (right - left) * (0.0 - low) / (high - low))
    ticks = [(fixed(left + (right - left) * (value - low) / (high - low)), _tick(value)) for value in _ticks(low, high)]
    return Strip(marks, zero, ticks, height, len(items) - len(chosen))
