"""Charts that several experiments draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .base import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["LoadPanel", "bandwidth_bars", "load_panels"]

LOAD = "injection (flits a node and cycle)"
MARKERS = "os^vDP*X"
DECADE = 10
PANEL_INCHES = (3.6, 3.4)
"""Width and height of one of `load_panels`."""


@dataclass(frozen=True, kw_only=True)
class LoadPanel:
    """One result against load.

    - `result`: its name. Points where it is None are left out.
    - `label`: the axis' label, with its unit.
    - `outcomes`: the points.
    - `title`: the panel's own.
    - `log`: whether the axis is logarithmic, if the values are more than a decade apart. Other axes begin at 0.
    - `published`: by name of a line, loads and values of the source.
    - `level`: a name and a value that is the same at every load.
    """

    result: str
    label: str
    outcomes: Sequence[Outcome]
    title: str = ""
    log: bool = False
    published: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    level: tuple[str, float] | None = None


def load_panels(
    figure: Figure,
    panels: Sequence[LoadPanel],
    *,
    by: str,
    names: Sequence[str],
    title: str,
    columns: int,
    more: int = 0,
) -> list[Axes]:
    """Draw panels in rows of `columns`: a line for each of `names`, the values of the points' parameter `by`.

    A line that the source has is dotted, in its line's colour. `more` panels are left for the caller: their axes are
    returned.
    """
    rows = math.ceil((len(panels) + more) / columns)
    figure.set_size_inches(columns * PANEL_INCHES[0], rows * PANEL_INCHES[1])
    places = list(figure.subplots(rows, columns, squeeze=False).flat)
    colors = {name: f"C{number}" for number, name in enumerate(names)}
    # Hollow and unlike each other: lines that lie on each other are all seen.
    markers = {name: MARKERS[number % len(MARKERS)] for number, name in enumerate(names)}
    marks: dict[str, str] = {}
    for panel, axes in zip(panels, places, strict=False):
        drawn: list[float] = []
        for name in names:
            found = sorted(
                (one.point.parameters["load"], one.results[panel.result])
                for one in panel.outcomes
                if one.point.parameters[by] == name and one.results[panel.result] is not None
            )
            values = [value for _, value in found]
            axes.plot(
                [load for load, _ in found],
                values,
                "-",
                color=colors[name],
                marker=markers[name],
                markerfacecolor="none",
            )
            drawn += values
        for name, (loads, known) in panel.published.items():
            axes.plot(loads, known, "x:", color=colors.get(name, "black"), linewidth=0.8)
            marks["published"] = "x:"
            drawn += known
        if panel.level is not None:
            text, value = panel.level
            axes.axhline(value, color="black", linestyle="--", linewidth=0.8)
            marks[text] = "--"
            drawn.append(value)
        if panel.log and drawn and max(drawn) > DECADE * min(drawn) > 0:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlabel(LOAD)
        axes.set_ylabel(panel.label)
        axes.set_title(panel.title, fontsize="medium")
    for axes in places[len(panels) + more :]:
        axes.set_visible(False)
    first = figure.axes[0]
    lines = [
        first.plot([], [], "-", color=colors[name], marker=markers[name], markerfacecolor="none", label=name)[
            0
        ]
        for name in names
    ]
    lines += [
        line for text, style in marks.items() for line in first.plot([], [], style, color="black", label=text)
    ]
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines))
    figure.suptitle(title)
    return places[len(panels) : len(panels) + more]


def bandwidth_bars(
    figure: Figure,
    outcomes: Sequence[Outcome],
    labels: Sequence[str],
    *,
    x_label: str,
    title: str,
    flow_names: Sequence[str] = (),
) -> None:
    """Draw a group of bars for each point, with its label: the `bandwidth_mb_per_s` of each flow.

    Across a group goes a line: the published bandwidth, or the published `share` of what all flows of the point achieve
    together. `flow_names` are written on the bars.
    """
    axes = figure.add_subplot()
    ticks, position = [], 0.0
    lines: dict[str, None] = {}
    for outcome in outcomes:
        achieved = outcome.results["bandwidth_mb_per_s"]
        published = _published(outcome, achieved, lines)
        places = [position + flow for flow in range(len(achieved))]
        for flow, (place, value) in enumerate(zip(places, achieved, strict=True)):
            axes.bar(place, value, width=0.9, color=f"C{flow % 10}")
            if flow_names:
                axes.text(place, value / 2, flow_names[flow], ha="center", va="center", color="white")
            if published:
                axes.hlines(published[flow], place - 0.45, place + 0.45, colors="black", linewidth=2)
        ticks.append(sum(places) / len(places))
        position += len(achieved) + 1
    if lines:
        axes.plot([], [], color="black", linewidth=2, label=" or ".join(lines))
        axes.legend()
    # Many labels side by side: a flow a line.
    axes.set_xticks(ticks, labels if len(labels) <= 6 else [one.replace(", ", ",\n") for one in labels])
    axes.set_xlabel(x_label)
    axes.set_ylabel("bandwidth (MB/s)")
    axes.set_title(title)


def _published(outcome: Outcome, achieved: Sequence[float], lines: dict[str, None]) -> list[float]:
    """The place of each flow's line, if there are any. Their names are added to `lines`."""
    published = outcome.point.published or {}
    if "bandwidth_mb_per_s" in published:
        lines["published"] = None
        return list(published["bandwidth_mb_per_s"])
    if "share" in published:
        lines["published share"] = None
        return [share * sum(achieved) for share in published["share"]]
    return []
