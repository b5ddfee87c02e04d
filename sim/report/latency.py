"""Latency distributions: each class of each point by its percentiles, to 99.99, and as a histogram."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .page import Cell, Chart, Column, Fold, Note, Part, Table, plain
from .tables import Tables
from .words import cell

__all__ = ["PERCENTILES", "distributions", "percentile"]

PERCENTILES = {"50": 0.5, "90": 0.9, "99": 0.99, "99.9": 0.999, "99.99": 0.9999}
"""The percentiles of tables and of the axis."""
MOST_LINES = 16
MOST_ROWS = 2000
WIDE = 50
"""The longest latency by the shortest from which on their axis is logarithmic."""
NAMES = ("p50", "p90", "p99", "p999", "p9999")
"""The percentiles in the table `percentiles`."""
DASHES = ("solid", "dash")
Histogram = Mapping[int, int]
"""Packets by the last latency of a bin, cycles."""


def percentile(histogram: Histogram, fraction: float) -> int:
    """The smallest latency that at least `fraction` of the packets have or are below; the histogram is not empty."""
    left = fraction * sum(histogram.values())
    for latency in sorted(histogram):
        left -= histogram[latency]
        if left <= 1e-9:
            return latency
    return max(histogram)


def distributions(tables: Tables) -> list[Part]:
    """The charts and the table, or a note that says that no distribution was measured."""
    rows = tables.read("latency", ("class", "last_cycles", "packets"))
    if not rows:
        return [Note("No distribution of latencies was measured here.", "unsure")]
    found: dict[tuple[str, int], Counter[int]] = {}
    for row in rows:
        if not row["packets"]:
            continue
        name = tables.point(row) + (" (saturated)" if tables.key(row) in tables.saturated else "")
        found.setdefault((name, row["class"]), Counter())[row["last_cycles"]] += row["packets"]
    classes = {number for _, number in found}
    named = {
        f"{point}, class {number}" if len(classes) > 1 else point: histogram
        for (point, number), histogram in found.items()
        if sum(histogram.values())
    }
    if not named:
        return [Note("No packet arrived, so there is no latency.", "unsure")]
    parts: list[Part] = [_by_percentile(named), _histogram(named), _table(named), *_of_nodes(tables)]
    if tables.saturated:
        text = "Of a saturated point only those packets are here that arrived: its latencies are too small."
        parts.insert(0, Note(text, "unsure"))
    return parts


def _trace(number: int, name: str, x: list[Any], y: list[Any], shape: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plain(name),
        "x": x,
        "y": y,
        "line": {
            "color": f"@{number % 8}",
            "dash": DASHES[number // 8 % 2],
            "shape": shape,
            "width": max(1.5, 4.5 - number),
        },
    }


def _shown(named: Mapping[str, Histogram]) -> tuple[list[tuple[str, Histogram]], str]:
    """The lines that are drawn, and a sentence if some are not."""
    shown = list(named.items())[:MOST_LINES]
    return shown, f" The first {MOST_LINES} of {len(named)} are drawn; the table has all." if len(
        named
    ) > MOST_LINES else ""


def _axis(named: Mapping[str, Histogram]) -> str:
    """The kind of the axis of latencies."""
    longest = max(max(histogram) for histogram in named.values())
    shortest = min(min(histogram) for histogram in named.values())
    return "log" if longest > WIDE * max(shortest, 1) else "linear"


def _by_percentile(named: Mapping[str, Histogram]) -> Chart:
    shown, more = _shown(named)
    traces = []
    for number, (name, histogram) in enumerate(shown):
        total = sum(histogram.values())
        above, x, y = total, [1.0], [min(histogram)]
        for latency in sorted(histogram):
            y.append(latency)
            x.append(total / above)
            above -= histogram[latency]
        # The last step: one packet is as far as the tail is known.
        x.append(float(total))
        y.append(max(histogram))
        traces.append(
            _trace(number, name, x, y, "vh") | {"hovertemplate": "%{y} cycles<extra>%{fullData.name}</extra>"}
        )
    return Chart(
        title="Latency by percentile",
        about="The part of packets that is at or below a latency, with room for the tail: each step to the right "
        f"leaves a tenth of the packets. A line ends with its last packet.{more}",
        data=traces,
        layout={
            "xaxis": {
                "type": "log",
                "title": {"text": "percentile"},
                "tickvals": [1, 2, 10, 100, 1000, 10000],
                "ticktext": ["0", *PERCENTILES],
            },
            "yaxis": {"title": {"text": "latency (cycles)"}, "rangemode": "tozero", "type": _axis(named)},
            "showlegend": True,
        },
        height=440,
    )


def _histogram(named: Mapping[str, Histogram]) -> Chart:
    shown, more = _shown(named)
    traces = []
    for number, (name, histogram) in enumerate(shown):
        total = sum(histogram.values())
        traces.append(
            _trace(
                number,
                name,
                sorted(histogram),
                [100 * histogram[one] / total for one in sorted(histogram)],
                "hvh",
            )
        )
    return Chart(
        title="Histogram of latencies",
        about=f"Percent of packets in each bin of the sinks' histogram; a bin stands at its last latency.{more}",
        data=traces,
        layout={
            "xaxis": {"title": {"text": "latency (cycles)"}, "rangemode": "tozero", "type": _axis(named)},
            "yaxis": {"title": {"text": "packets (%)"}, "rangemode": "tozero"},
            "showlegend": True,
        },
        height=380,
    )


def _table(named: Mapping[str, Histogram]) -> Table:
    return Table(
        caption="Percentiles of latencies, cycles",
        columns=[
            Column("point"),
            Column("packets", True),
            *(Column(f"{name}%", True) for name in PERCENTILES),
            Column("longest bin", True),
        ],
        rows=[
            [
                cell(name),
                cell(sum(histogram.values())),
                *(_percentile_cell(histogram, fraction) for fraction in PERCENTILES.values()),
                cell(max(histogram)),
            ]
            for name, histogram in named.items()
        ],
        note="All seeds and destinations together; a latency is the last one of its bin. A percentile that fewer than "
        "one packet is above is not shown.",
    )


def _of_nodes(tables: Tables) -> list[Part]:
    """The percentiles at each destination and, where packets were listed, from each source."""
    columns = [f"latency_{name}_cycles" for name in NAMES]
    rows = tables.read("percentiles", ("of", "class", "node", "packets", *columns)) or []
    mine = [row for row in rows if row["node"] is not None][:MOST_ROWS]
    if not mine:
        return []
    fractions = dict(zip(columns, PERCENTILES.values(), strict=True))
    table = Table(
        caption="Percentiles of latencies of each node, cycles",
        columns=[
            Column("point"),
            Column("of"),
            Column("node", True),
            Column("class", True),
            Column("seed", True),
            Column("packets", True),
            *(Column(f"{name}%", True) for name in PERCENTILES),
        ],
        rows=[
            [
                cell(tables.point(row)),
                *(cell(row[name]) for name in ("of", "node", "class")),
                cell(row.get("seed")),
                cell(row["packets"]),
                *(
                    cell(row[name]) if row["packets"] * (1 - fraction) >= 1 - 1e-9 else Cell("-")
                    for name, fraction in fractions.items()
                ),
            ]
            for row in mine
        ],
        note=f"The first {MOST_ROWS} rows; tables/percentiles.parquet has all."
        if len(mine) == MOST_ROWS
        else "",
    )
    return [Fold(name="nodes", title="Node by node", badge=f"{len(mine)} rows", tone="", parts=[table])]


def _percentile_cell(histogram: Histogram, fraction: float) -> Cell:
    """The percentile, or nothing where less than a packet is above it."""
    if sum(histogram.values()) * (1 - fraction) < 1 - 1e-9:
        return Cell("-")
    return cell(percentile(histogram, fraction))
