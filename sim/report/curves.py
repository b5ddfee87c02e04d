"""Plots of results against parameters: load curves, and the chart whose axes the reader chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..experiments.measure.traffic_results import ACCEPTED
from .measured import Line, Measured, lines, student_factors
from .page import Chart, Column, Explorer, Note, Part, Table, plain
from .words import cell, is_number, label, spoken

__all__ = ["explorer", "line_chart", "load_curves"]

LOAD = "load"
LATENCIES = ("latency_mean_cycles", "latency_p99_cycles")
FIRST = ("bandwidth_mb_per_s", ACCEPTED, "latency_mean_cycles", "latency_us", "share")
"""Results that are shown first, where they are there."""
MOST_LINES = 24
MOST_VALUES = 200_000
"""Most values behind the chart whose axes are chosen: about 1.5 MB."""
DASHES = ("solid", "dash", "dot", "dashdot")
MARKS = ("circle", "square", "diamond", "triangle-up", "x", "star")


def load_curves(measured: Measured) -> list[Part]:
    """Throughput and latency over load, if that was measured; else nothing."""
    if not {LOAD} <= {*measured.parameters} or ACCEPTED not in measured.results:
        return []
    rows = measured.together()
    by = [name for name in measured.of_points() if name != LOAD]
    found: list[Part] = []
    throughput = lines(rows, LOAD, ACCEPTED, by, spoken)
    highest = max((row[LOAD] for row in rows if is_number(row.get(LOAD))), default=1)
    found.append(
        line_chart(
            "Throughput over load",
            "Accepted against offered load, flits a node and cycle. On the thin line all that is offered arrives.",
            throughput,
            LOAD,
            "accepted (flits a node and cycle)",
            diagonal=highest,
        )
    )
    calm = [row for row in rows if not row.get("saturated")]
    for name in LATENCIES:
        if latency := lines(calm, LOAD, name, by, spoken):
            found.append(
                line_chart(
                    f"{'Mean' if 'mean' in name else '99th percentile of the'} latency over load",
                    "Packets born in the window. A saturated point has no latency, so lines end before it.",
                    latency,
                    LOAD,
                    label(name),
                )
            )
    if measured.element == "class":
        per_class = lines(measured.rows, LOAD, "class_latency_mean_cycles", [*by, "class"], spoken)
        if per_class:
            found.append(
                line_chart(
                    "Mean latency of each class",
                    "A line for each class. A class that is saturated has no latency.",
                    per_class,
                    LOAD,
                    "latency mean (cycles)",
                )
            )
    return found


def line_chart(
    title: str, about: str, found: Sequence[Line], x: str, y: str, *, diagonal: float | None = None
) -> Chart:
    """A chart of lines with their intervals, and the table of its numbers."""
    traces: list[dict[str, Any]] = []
    if diagonal is not None:
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": [0, diagonal],
                "y": [0, diagonal],
                "line": {"color": "@muted", "width": 1},
                "name": "all that is offered",
                "hoverinfo": "skip",
            }
        )
    for number, line in enumerate(found[:MOST_LINES]):
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": plain(line.name or "all"),
                "x": line.x,
                "y": line.y,
                "error_y": {
                    "type": "data",
                    "array": [half or 0 for half in line.half],
                    "thickness": 1.2,
                    "width": 4,
                },
                # Lines may lie on one another: the first ones are the wider.
                "line": {
                    "color": f"@{number % 8}",
                    "dash": DASHES[number // 8 % 4],
                    "width": max(1.5, 4.5 - number),
                },
                "marker": {
                    "color": f"@{number % 8}",
                    "symbol": MARKS[number % 6],
                    "size": max(6, 11 - 2 * number),
                },
            }
        )
    repeated = any(half is not None for line in found for half in line.half)
    if repeated:
        about += " Bars are 95% intervals of the mean over seeds."
    if len(found) > MOST_LINES:
        about += f" The first {MOST_LINES} of {len(found)} lines are shown."
    return Chart(
        title=title,
        about=about,
        data=traces,
        layout={
            "xaxis": {"title": {"text": plain(label(x))}, "rangemode": "tozero"},
            "yaxis": {"title": {"text": plain(y)}, "rangemode": "tozero"},
            "showlegend": len(traces) > 1,
        },
        height=400,
        table=Table(
            caption=f"{title}: numbers",
            columns=[
                Column("line"),
                Column(label(x), True),
                Column(y, True),
                *([Column("± (95%)", True)] if repeated else []),
            ],
            rows=[
                [cell(line.name or "all"), cell(at), cell(float(value)), *([cell(half)] if repeated else [])]
                for line in found
                for at, value, half in zip(line.x, line.y, line.half, strict=True)
            ][:2000],
        ),
    )


def explorer(measured: Measured) -> list[Part]:
    """The chart of any result against any parameter that varies; a note where nothing varies."""
    varying, results = measured.varying(), measured.numeric()
    if not varying or not results:
        return [Note("There is no chart of results against parameters, as no parameter has several values.")]
    x = _horizontal(measured, varying)
    moving = [name for name in results if len({row.get(name) for row in measured.rows}) > 1] or results
    y = next((name for name in FIRST if name in moving), moving[0])
    names = [*varying, "seed", *results]
    most = max(1, MOST_VALUES // len(names))
    rows = measured.rows[:most]
    about = "Choose what to draw. Rows that are alike in all but their seed are averaged."
    if len(rows) < len(measured.rows):
        about += f" It has the first {most} of {len(measured.rows)} rows."
    return [
        Explorer(
            title="Any result against any parameter",
            about=about,
            columns={name: [_value(row.get(name)) for row in rows] for name in names},
            parameters=varying,
            results=results,
            labels={name: label(name) for name in names},
            x=x,
            y=y,
            by="*",
            student=student_factors(),
            element=measured.element,
            first=measured.first,
            of_flows=measured.results_of_flows(),
        )
    ]


def _horizontal(measured: Measured, varying: Sequence[str]) -> str:
    """The parameter that is drawn from left to right at first: a load, else the numeric one of most values."""
    if LOAD in varying:
        return LOAD

    def rank(name: str) -> tuple[bool, bool, int]:
        values = {str(row.get(name)): row.get(name) for row in measured.rows}
        return all(is_number(value) for value in values.values()), name != measured.element, len(values)

    return max(varying, key=rank)


def _value(value: Any) -> Any:
    """A value as the script takes it: a number, text, or nothing."""
    if value is None or is_number(value):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)[:120]
