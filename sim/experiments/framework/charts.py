"""Charts that several experiments draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .base import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["bandwidth_bars"]


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
