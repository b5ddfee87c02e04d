"""network-trace: a packet trace played by the nodes of a network.

Every packet is sent in the cycle that the trace has for it. With dependencies (Netrace) it waits until the packets that
it depends on have been delivered, too. Latency is from the packet's birth to its last flit at its destination, time in
the source's queue included. A packet is *late* if its source did not send it at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from lanikai.hdl.config import ConfigError, LinkConfig
from pydantic import Field, model_validator

from ...inputs.packets import Packets
from ...inputs.traces import EXAMPLE, TRACE_FORMATS, Excerpt, read_trace
from ...systems.message_config import MessageNetworkConfig
from ..framework.base import Claim, Experiment, Outcome, Point, Size
from .network_setup import NetworkSetup, lanes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.message_network import MessageNetwork

__all__ = ["NetworkTrace", "NetworkTraceParameters"]

PACKETS = {"quick": 5_000, "full": 100_000}


class NetworkTraceParameters(NetworkSetup):
    """Parameters of network-trace."""

    file: Path | None = Field(
        None,
        description="the trace: lines `cycle source destination flits [class]`, the same in Parquet, or Netrace; null: "
        "an example of 4 nodes",
        json_schema_extra={"range": f"path of a file that ends with {', '.join(TRACE_FORMATS)}"},
    )
    first_cycle: int = Field(0, ge=0, description="the trace's cycle from which on it is played")
    cycles: int = Field(0, ge=0, description="cycles of the trace that are played; 0: all")
    packets: int = Field(0, ge=0, description="packets that are played at most; 0: those of the size")
    dependencies: bool = Field(
        True,
        description="a packet waits for those that the trace says it depends on; false: for its cycle alone",
    )
    scale: float = Field(
        1.0, gt=0, le=1e6, description="the trace's cycles take so many times as long: below 1 for more load"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.check(self.load(1_000_000))
        return self

    @property
    def path(self) -> Path:
        """The trace's file."""
        return self.file or EXAMPLE

    def load(self, most: int) -> Packets:
        """The packets that are played, at most so many. Raises InputError: file, line, what would be right."""
        return chosen_packets(self.choice(most), self.message_network().traffic.link)

    def choice(self, most: int) -> dict[str, Any]:
        """The part of the file that is played, at most so many packets of it, as `chosen_packets` takes it."""
        return {
            "file": str(self.path.resolve()),
            "first_cycle": self.first_cycle,
            "cycles": self.cycles,
            "packets": self.packets or most,
            "dependencies": self.dependencies,
            "scale": self.scale,
        }

    def check(self, packets: Packets) -> None:
        """Raise ConfigError for packets that the network cannot carry."""
        traffic = self.message_network().traffic
        if packets.nodes > traffic.nodes:
            raise ConfigError(
                f"network = {self.network!r} has {traffic.nodes} nodes, and the trace names node {packets.nodes - 1}: "
                f"a network of {packets.nodes} nodes at least"
            )
        lanes(self.message_network().network.router, packets.classes)
        least = traffic.link.header_flits
        if len(packets) and (short := int(packets.flits.min())) < least:
            raise ConfigError(
                f"flit_bits = {self.flit_bits}: the trace has packets of {short} flits: {least} at least, the header"
            )


def chosen_packets(choice: Mapping[str, Any], link: LinkConfig) -> Packets:
    """The packets of `NetworkTraceParameters.choice`. Raises InputError."""
    part = Excerpt(first_cycle=choice["first_cycle"], cycles=choice["cycles"], most=choice["packets"])
    packets = read_trace(Path(choice["file"]), link, part)
    changes: dict[str, Any] = {}
    if choice["scale"] != 1:
        changes["cycle"] = np.floor(packets.cycle * choice["scale"]).astype(np.int64)
    if not choice["dependencies"]:
        changes["waits_for"] = ()
    return replace(packets, **changes)


class NetworkTrace(Experiment):
    """A packet trace played on a network."""

    name = "network-trace"
    asks = (
        "How late do the packets of a trace come through a network, and how many could not be sent in time?"
    )
    source = "Hestness, Grot, Keckler, Netrace, 2010; Dally and Towles 2004, chapter 23"
    entry = "lanikai.sim.experiments.workloads.trace:measure"
    Parameters = NetworkTraceParameters
    by_flow = ("source_*",)
    element = "source"

    def points(self, parameters: NetworkTraceParameters, size: Size) -> list[Point]:
        """One point."""
        packets = parameters.load(PACKETS[size])
        return [
            Point(
                label=parameters.path.name,
                parameters={
                    **parameters.model_dump(mode="json", exclude={"file"}),
                    "file": parameters.path.name,
                    "packets": len(packets),
                },
                spec=parameters.choice(len(packets)),
            )
        ]

    def system(self, parameters: NetworkTraceParameters, point: Point) -> MessageNetworkConfig:
        """The network with a host at each node."""
        return parameters.message_network()

    def results(
        self, parameters: NetworkTraceParameters, point: Point, measured: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Loads, latencies and late packets: of all, of each class, of each source (names that begin with
        `source_`)."""
        return trace_results(measured, parameters.message_network().traffic.nodes)

    def claims(self, parameters: NetworkTraceParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """Every packet arrives, and none sooner than an idle source and link allow."""
        found = [outcome.results for outcome in outcomes]
        return [
            Claim.every(
                "every packet of the trace has arrived, with every bit as it was sent",
                (one["packets"] == one["delivered_packets"] for one in found),
            ),
            Claim.every(
                "no packet comes sooner than its flits, its source and its routers take when nothing else moves",
                (one["least_spare_cycles"] is None or one["least_spare_cycles"] >= 0 for one in found),
            ),
        ]

    def plot(self, parameters: NetworkTraceParameters, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Draw the share of packets within a latency, and the mean latency and wait of each source."""
        left, right = figure.subplots(1, 2)
        for one in outcomes:
            wait = np.array(one.series["wait_cycles"])
            # Packets to their own node do not go through the network.
            latency = np.sort(np.array(one.series["latency_cycles"])[wait >= 0])
            left.plot(latency, np.arange(1, len(latency) + 1) / len(latency), label="birth to last flit")
            wait = np.sort(wait[wait >= 0])
            left.plot(wait, np.arange(1, len(wait) + 1) / len(wait), label="of it, in the source's queue")
            sources = [i for i, number in enumerate(one.results["source_packets"]) if number]
            means = [one.results["source_latency_mean_cycles"][i] for i in sources]
            waits = [one.results["source_wait_mean_cycles"][i] or 0 for i in sources]
            right.bar(sources, means, label="latency")
            right.bar(sources, waits, label="of it, wait")
        left.set_xscale("symlog")
        left.set_xlabel("cycles")
        left.set_ylabel("share of packets")
        left.set_ylim(0, 1.02)
        left.set_xlim(left=-0.5)
        right.set_xlabel("source")
        right.set_ylabel("mean (cycles)")
        for axes in (left, right):
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)
        figure.suptitle(f"{parameters.path.name} on {parameters.network}")


def trace_results(measured: Mapping[str, Any], nodes: int) -> dict[str, Any]:
    """Results from what `measure` returned. A latency or wait is None where there is no packet."""
    series = measured["series"]
    latency, wait = np.array(series["latency_cycles"]), np.array(series["wait_cycles"])
    source, number = np.array(series["source"]), np.array(series["traffic_class"])
    flits, arrived = np.array(series["flits"]), np.array(series["arrived_cycle"])
    span = measured["span_cycles"]
    remote = wait >= 0
    classes = range(int(number.max(initial=0)) + 1)
    every = range(nodes)

    def mean(values: Any, where: Any) -> float | None:
        return float(values[where].mean()) if where.any() else None

    return {
        "packets": len(latency),
        "delivered_packets": int((arrived >= 0).sum()),
        "local_packets": int((~remote).sum()),
        "unknown_dependencies": measured["unknown_dependencies"],
        "trace_cycles": span,
        "played_cycles": int(arrived.max(initial=0)) + 1,
        "offered_flits_per_node_per_cycle": float(flits[remote].sum() / (nodes * span)),
        "accepted_flits_per_node_per_cycle": float(flits[remote & (arrived < span)].sum() / (nodes * span)),
        "latency_mean_cycles": mean(latency, remote),
        **{
            f"latency_{name}_cycles": int(np.percentile(latency[remote], share, method="inverted_cdf"))
            if remote.any()
            else None
            for name, share in (("p50", 50), ("p99", 99), ("max", 100))
        },
        "wait_mean_cycles": mean(wait, remote),
        "late_packets": int((wait > 0).sum()),
        "late_share": mean(wait > 0, remote),
        "least_spare_cycles": measured["least_spare_cycles"],
        "latency_mean_cycles_by_class": [mean(latency, remote & (number == one)) for one in classes],
        "source_packets": [int((source == one).sum()) for one in every],
        "source_latency_mean_cycles": [mean(latency, remote & (source == one)) for one in every],
        "source_wait_mean_cycles": [mean(wait, remote & (source == one)) for one in every],
        "source_late_packets": [int(((wait > 0) & (source == one)).sum()) for one in every],
    }


async def measure(network: MessageNetwork, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point."""
    from .play import IDLE_CYCLES, Player

    packets = chosen_packets(spec, network.config.traffic.link)
    player = Player(network, packets, lanes=lanes(network.config.network.router, packets.classes))
    played = await player.run()
    born, arrived = np.array(played["born"]), np.array(played["arrived"])
    delay = network.config.traffic.link.delay_cycles
    left = np.array([-1 if one is None else one for one in played["left"]])
    wait = np.where(left < 0, -1, left - born - IDLE_CYCLES)
    ways: dict[tuple[int, int], int] = {}
    spare = []
    for place in np.flatnonzero(left >= 0).tolist():
        way = int(packets.source[place]), int(packets.destination[place])
        if way not in ways:
            ways[way] = len(network.config.network.path(*way))
        hops = (5 + delay) * ways[way] + delay
        spare.append(int(arrived[place] - left[place]) - hops - int(packets.flits[place]) + 1)
    return {
        "span_cycles": packets.cycles,
        "unknown_dependencies": packets.unknown_dependencies,
        "least_spare_cycles": min(spare, default=None),
        "series": {
            "latency_cycles": (arrived - born).tolist(),
            "wait_cycles": wait.tolist(),
            "source": packets.source.tolist(),
            "traffic_class": packets.traffic_class.tolist(),
            "flits": packets.flits.tolist(),
            "arrived_cycle": arrived.tolist(),
        },
    }
