"""The base of experiments on flows: messages between the nodes of a GM cluster, measured over one window.

A subclass holds its question, parameters, points, published values and claims. Its points are made by `point`, of
`Flow`s and a window. The base runs them, and makes bandwidths and shares of the measurement. A subclass that measures
otherwise names an `entry` of its own, which finds the flows of its point with `flows_of`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

from ..framework.base import Experiment, Outcome, Point
from ..framework.charts import bandwidth_bars
from .gm_flows import (
    BANDWIDTH_TOLERANCE,
    SHARE_TOLERANCE,
    Flow,
    bandwidths,
    measure_rounds,
    measure_window,
    proportions,
    shares,
)
from .gm_hosts import gm_cluster, start_gm

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.cluster import Cluster

__all__ = ["FlowsExperiment", "flows_of", "measure", "published_setting"]


class FlowsExperiment(Experiment):
    """Flows of GM messages, which share something.

    - `tolerances`: the relative error that a published result may have, by name.
    - `x_label`, `title`, `flow_names`: of the plot, a group of bars a point (`framework.charts.bandwidth_bars`).
    """

    entry = "lanikai.sim.experiments.measure.flows_experiment:measure"
    tolerances: ClassVar[Mapping[str, float]] = {
        "bandwidth_mb_per_s": BANDWIDTH_TOLERANCE,
        "share": SHARE_TOLERANCE,
    }
    x_label: ClassVar[str] = ""
    title: ClassVar[str] = ""
    flow_names: ClassVar[Sequence[str]] = ()

    def point(
        self,
        label: str,
        parameters: Mapping[str, Any],
        *,
        flows: Sequence[Flow],
        window: Mapping[str, int],
        published: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Point:
        """A point with these `flows`. Raises ValueError for a published result that has no tolerance.

        `window` is either `warm_up_cycles` and `window_cycles`, or `warm_up_packets` and `window_packets`. `more` is
        for an entry of its own.
        """
        if missing := set(published or ()) - set(self.tolerances):
            raise ValueError(f"{self.name}: no tolerance for the published {', '.join(sorted(missing))}")
        return Point(
            label=label,
            parameters=parameters,
            spec={"flows": [asdict(flow) for flow in flows], **window, **more},
            published=published,
            tolerance=published and {name: self.tolerances[name] for name in published},
        )

    def cluster(self, parameters: Any) -> Any:
        """Four nodes; those without a flow stay idle."""
        return gm_cluster()

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Bandwidth and share of each flow over the window."""
        found = bandwidths(measured)
        # The bytes of whole rounds are whole numbers, whose shares are exact.
        shared = measured["payload_bytes"] if "window_packets" in point.spec else found
        return {"bandwidth_mb_per_s": found, "share": shares(shared)}

    def bar_label(self, outcome: Outcome) -> str:
        """The label below the bars of a point: its IDTs."""
        return outcome.point.label.removeprefix("IDT ").replace(" ", ", ")

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Draw a group of bars for each point: each flow's bandwidth, the published one as a line across it."""
        bandwidth_bars(
            figure,
            outcomes,
            [self.bar_label(outcome) for outcome in outcomes],
            x_label=self.x_label,
            title=self.title,
            flow_names=self.flow_names,
        )


def published_setting(published: Mapping[str, Any], setting: Sequence[float]) -> dict[str, Any] | None:
    """The published values for one setting of IDTs, from a table of `idt_over_T` and `achieved_mb_per_s`.

    They are bandwidths, and the shares that the IDTs ask for; None if the setting is not in the table.
    """
    if setting not in published["idt_over_T"]:
        return None
    achieved = published["achieved_mb_per_s"][published["idt_over_T"].index(setting)]
    return {"bandwidth_mb_per_s": achieved, "share": proportions(setting)}


def flows_of(spec: Mapping[str, Any]) -> list[Flow]:
    """The flows of a point that `FlowsExperiment.point` made."""
    return [Flow(**one) for one in spec["flows"]]


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: all its flows, in the window that its spec has."""
    if "window_packets" in spec:
        return await measure_rounds(cluster, start_gm(cluster), flows_of(spec), spec)
    return await measure_window(cluster, flows_of(spec), spec)
