"""The common part of experiments whose points run on a traffic network: results, tables, plots of links and of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lanikai.hdl.traffic.setup import ClassSetup

from ..framework.base import Experiment, Outcome, Point
from .link_map import draw_links, draw_time_series
from .traffic_results import silent_nodes, traffic_results
from .traffic_tables import link_results, traffic_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TrafficExperiment"]


class TrafficExperiment(Experiment):
    """An experiment of which `system` gives a `TrafficNetworkConfig`, and `entry` returns what
    `traffic_results.measure` does."""

    by_flow = ("class_*",)
    element = "class"

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Throughput, latency and verdict of all classes together, and of each if there are several (names that begin
        with `class_`, lists in the classes' order). Use of links and energy, where links were counted."""
        network = self.system(parameters, point).network
        return traffic_results(measured) | link_results(measured, network)

    def tables(
        self, parameters: Any, point: Point, measured: Mapping[str, Any]
    ) -> dict[str, list[dict[str, Any]]]:
        """Latencies and percentiles; links, time series and packets where they were asked for."""
        system = self.system(parameters, point)
        return traffic_tables(measured, network=system.network, traffic=system.traffic)

    def notes(self, parameters: Any, points: Sequence[Point]) -> Sequence[str]:
        """The nodes that send nothing, as their pattern would have them send to themselves; ways that are longer than
        they need be."""
        found: dict[str, None] = {}
        for point in points:
            classes = [ClassSetup(**setup) for setup in point.spec["classes"]]
            network = self.system(parameters, point).network
            found |= dict.fromkeys(silent_nodes(classes, len(network.nodes)))
            if "up*/down*" in (why := network.by_destination):
                found[f"{why}; `lanikai topology` says how much throughput they leave"] = None
        return list(found)

    def more_plots(
        self, parameters: Any, outcomes: Sequence[Outcome]
    ) -> Mapping[str, Callable[[Figure], None]]:
        """The use of each link, drawn on the network, and the time series, where they were asked for."""
        plots: dict[str, Callable[[Figure], None]] = {}
        if any("links" in outcome.tables for outcome in outcomes):
            networks = [self.system(parameters, outcome.point).network for outcome in outcomes]
            plots["links"] = partial(draw_links, outcomes, networks)
        if any("time_series" in outcome.tables for outcome in outcomes):
            plots["time_series"] = partial(draw_time_series, outcomes)
        return plots
