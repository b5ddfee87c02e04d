"""Throughput and latency over time, where a run has a time series."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from .curves import DASHES
from .page import Chart, Note, Part, plain
from .tables import Tables

__all__ = ["over_time"]

MOST_LINES = 16
MOST_POINTS = 20_000
"""Most points of all lines of a chart."""


def over_time(tables: Tables) -> list[Part]:
    """Charts of accepted flits and of latency in each window of the series, or a note."""
    rows = tables.read(
        "time_series", ("class", "first_cycle", "cycles", "accepted_flits", "latency_mean_cycles")
    )
    if not rows:
        return [
            Note(
                "No time series was measured here: network-load has one with --set series_cycles=1000.",
                "unsure",
            )
        ]
    several = len({row["class"] for row in rows}) > 1
    flits: dict[str, dict[int, list[float]]] = {}
    latency: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        name = tables.point(row) + (f", class {row['class']}" if several else "")
        if row["cycles"]:
            at = flits.setdefault(name, {}).setdefault(row["first_cycle"], [])
            at.append(row["accepted_flits"] / row["cycles"])
        if row["latency_mean_cycles"] is not None:
            latency.setdefault(name, {}).setdefault(row["first_cycle"], []).append(row["latency_mean_cycles"])
    return [
        _chart("Accepted flits over time", "accepted (flits a cycle, all nodes)", flits),
        _chart("Mean latency over time", "latency mean (cycles)", latency),
    ]


def _chart(title: str, unit: str, found: Mapping[str, Mapping[int, list[float]]]) -> Chart:
    traces: list[dict[str, Any]] = []
    room = MOST_POINTS
    for number, (name, places) in enumerate(list(found.items())[:MOST_LINES]):
        at = sorted(places)[:room]
        room -= len(at)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": plain(name),
                "x": at,
                "y": [statistics.fmean(places[one]) for one in at],
                "line": {"color": f"@{number % 8}", "dash": DASHES[number // 8 % 4], "width": 1.5},
            }
        )
    cut = (
        " Not all lines are drawn; tables/time_series.parquet has all."
        if len(found) > MOST_LINES or not room
        else ""
    )
    return Chart(
        title=title,
        about=f"A value for each window of the series, mean of the seeds. The measured window begins at cycle 0.{cut}",
        data=traces,
        layout={
            "xaxis": {"title": {"text": "cycle"}},
            "yaxis": {"title": {"text": unit}, "rangemode": "tozero"},
            "showlegend": True,
        },
    )
