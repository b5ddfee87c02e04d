"""The plots of cosched: completion times, latencies, the use of a node over time, and who runs where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...host.cosched.strategies import STRATEGIES
from ..framework.base import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]

TIMELINE_OF = (5, "pb")
"""Workload and strategy of the timeline."""


def draw(figure: Figure, outcomes: Sequence[Outcome]) -> None:
    """Draw what was run: a row of panels for each kind."""
    runs = [one for one in outcomes if one.point.parameters["workload"]]
    largest = max((one.point.parameters["scale"] for one in runs), default=0.0)
    runs = [one for one in runs if one.point.parameters["scale"] == largest]
    pings = [one for one in outcomes if not one.point.parameters["workload"]]
    monitored = [one for one in runs if "shares" in one.series]
    workloads = sorted({one.point.parameters["workload"] for one in monitored})
    where = [one for one in monitored if _kind(one) == TIMELINE_OF]
    figure.set_size_inches(12, 4 + 2.4 * len(workloads) + 4 * bool(where))
    heights = [4.0, *[2.4] * len(workloads), *([4.0] if where else [])]
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    top = grid[0].subgridspec(1, 2, width_ratios=[3, 1])
    _completions(figure.add_subplot(top[0]), runs)
    _latencies(figure.add_subplot(top[1]), pings)
    for row, workload in enumerate(workloads):
        mine = [one for one in monitored if one.point.parameters["workload"] == workload]
        cells = grid[1 + row].subgridspec(1, len(mine))
        for place, one in enumerate(mine):
            _use(figure.add_subplot(cells[place]), one, named=place == 0)
    if where:
        _timeline(figure.add_subplot(grid[len(heights) - 1]), where[0])
    figure.suptitle("Strategies of coscheduling")


def _kind(one: Outcome) -> tuple[int, str]:
    return one.point.parameters["workload"], one.point.parameters["strategy"]


def _completions(axes: Any, runs: Sequence[Outcome]) -> None:
    """Completion times by workload, a colour a strategy; published ones are hollow."""
    strategies = list(dict.fromkeys(one.point.parameters["strategy"] for one in runs))
    workloads = sorted({one.point.parameters["workload"] for one in runs})
    for number, strategy in enumerate(strategies):
        mine = [one for one in runs if one.point.parameters["strategy"] == strategy]
        at = [
            workloads.index(one.point.parameters["workload"]) + (number + 0.5) / len(strategies) - 0.5
            for one in mine
        ]
        color = f"C{number % 10}"
        marker = "o" if number < 10 else "s"
        times = [one.results["completion_s"] for one in mine]
        axes.semilogy(at, times, marker, color=color, markersize=4, label=STRATEGIES[strategy].title)
        there = [(x, one.point.parameters["published_completion_s"]) for x, one in zip(at, mine, strict=True)]
        there = [(x, y) for x, y in there if y]
        axes.semilogy(
            [x for x, _ in there], [y for _, y in there], marker, color=color, markersize=6, fillstyle="none"
        )
    for place in range(1, len(workloads)):
        axes.axvline(place - 0.5, color="grey", linewidth=0.4)
    axes.set_xticks(range(len(workloads)), [str(one) for one in workloads])
    axes.set_xlabel("workload")
    axes.set_ylabel("completion time (s); hollow: published")
    if strategies:
        axes.legend(fontsize=7, ncols=2)


def _latencies(axes: Any, pings: Sequence[Outcome]) -> None:
    """Figure 6.2."""
    names = [STRATEGIES[one.point.parameters["strategy"]].title for one in pings]
    axes.barh(names, [one.results["latency_us"] for one in pings])
    axes.invert_yaxis()
    axes.tick_params(labelsize=7)
    axes.set_xlabel("one-way latency (us)")


def _use(axes: Any, one: Outcome, *, named: bool) -> None:
    """Figures 6.3 and 6.4: the part of a node's processor that each job has, over time."""
    width = one.series["probe_s"]
    shares = one.series["shares"]
    below = [0.0] * len(shares[0])
    at = [(place + 0.5) * width for place in range(len(below))]
    for job, mine in enumerate(shares):
        heights = [100 * part for part in mine]
        axes.bar(
            at,
            heights,
            width,
            bottom=below,
            color=f"C{job}",
            label=f"{one.point.parameters['programs'][job]}",
        )
        below = [a + b for a, b in zip(below, heights, strict=True)]
    workload, strategy = _kind(one)
    axes.set_title(f"workload {workload}, {STRATEGIES[strategy].title}", fontsize=8)
    axes.tick_params(labelsize=6)
    axes.set_ylim(0, 100)
    axes.set_xlabel("time (s)", fontsize=7)
    if named:
        axes.set_ylabel("use of node 0 (%)", fontsize=7)
        axes.legend(fontsize=5)


def _timeline(axes: Any, one: Outcome) -> None:
    """The job that every node runs, and the messages between them."""
    for node, turns in enumerate(one.series["timeline"]):
        for start, stop, job in turns:
            axes.barh(node, stop - start, left=start, height=0.5, color=f"C{int(job)}", alpha=0.7)
    for sent, source, arrived, to in one.series["messages"]:
        axes.plot([sent, arrived], [source, to], color="black", linewidth=0.3)
    workload, strategy = _kind(one)
    axes.set_title(
        f"who runs where: workload {workload}, {STRATEGIES[strategy].title}; lines are messages", fontsize=8
    )
    axes.set_yticks(range(len(one.series["timeline"])))
    axes.invert_yaxis()
    axes.set_xlabel("time (ms)")
    axes.set_ylabel("node")
