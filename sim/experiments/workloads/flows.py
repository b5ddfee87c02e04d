"""flow-times: flows whose sizes have a given distribution, born at random; how long each takes to complete.

Every node begins flows to other nodes, as a Poisson process. A flow is cut in packets, all of which wait at its source
at once; flows of a source share its link by the VLs that they take in turn. A flow's completion time is from its birth
to its last flit at its destination. Its slowdown is that time, divided by what it takes alone.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from lanikai.hdl.config import ConfigError, LinkConfig
from pydantic import Field, model_validator

from ...inputs.flow_sizes import WEBSEARCH, read_flow_sizes
from ...inputs.packets import Packets
from ...systems.message_config import MessageNetworkConfig
from ..framework.base import Claim, Experiment, Outcome, Point, Size
from .network_setup import NetworkSetup, lanes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.message_network import MessageNetwork

__all__ = ["FlowTimes", "FlowTimesParameters", "make_flows"]

FLOWS = {"quick": 400, "full": 10_000}
MOST_PACKETS = 2_000_000


class FlowTimesParameters(NetworkSetup):
    """Parameters of flow-times."""

    sizes: Path | None = Field(
        None,
        description="distribution of flow sizes: lines `bytes share`, percent or fractions; null: that of a web search",
        json_schema_extra={"range": "path of a file"},
    )
    size_scale: float = Field(
        0.002, gt=0, le=1000, description="flows have so many times the bytes of the distribution, 1 at least"
    )
    loads: list[float] = Field(
        [0.2, 0.5],
        min_length=1,
        max_length=16,
        description="offered loads, flits a node and cycle",
        json_schema_extra={"range": "list of 1 to 16 loads, each above 0 and at most 1"},
    )
    flows: int = Field(0, ge=0, le=1_000_000, description="flows of all nodes together; 0: those of the size")
    packet_flits: int = Field(40, ge=2, le=1023, description="longest packet, header included, flits")
    bins_bytes: list[int] = Field(
        [10_000, 100_000, 1_000_000],
        max_length=16,
        description="largest sizes of all bins but the last, bytes of the distribution, before it is scaled",
        json_schema_extra={"range": "list of at most 16 sizes, each larger than the one before"},
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for load in self.loads:
            if not 0 < load <= 1:
                raise ValueError(f"loads: {load:g}: above 0 and at most 1")
        if self.bins_bytes != sorted(set(self.bins_bytes)) or min(self.bins_bytes, default=1) < 1:
            raise ValueError(
                f"bins_bytes = {self.bins_bytes}: sizes above 0, each larger than the one before"
            )
        traffic = self.message_network().traffic
        if self.packet_flits <= traffic.link.header_flits:
            raise ConfigError(
                f"packet_flits = {self.packet_flits}: more than the header's {traffic.link.header_flits}"
            )
        mean = self.flits_of(read_flow_sizes(self.path).mean_bytes * self.size_scale)
        if (packets := mean / self.packet_flits * self.flows) > MOST_PACKETS:
            raise ConfigError(
                f"flows = {self.flows}, size_scale = {self.size_scale:g}: about {packets:.0f} packets: at most "
                f"{MOST_PACKETS}"
            )
        return self

    @property
    def path(self) -> Path:
        """The distribution's file."""
        return self.sizes or WEBSEARCH

    def flits_of(self, size_bytes: float) -> int:
        """Flits of a flow of so many bytes, headers of its packets included."""
        return sum(packet_lengths(size_bytes, self.packet_flits, self.message_network().traffic.link))


def packet_lengths(size_bytes: float, packet_flits: int, link: LinkConfig) -> list[int]:
    """The packets, in flits, that a flow of so many bytes is cut in, of `packet_flits` at most, headers included."""
    payload, room = -(-max(1, round(size_bytes)) * 8 // link.flit_bits), packet_flits - link.header_flits
    return [min(room, payload - begin) + link.header_flits for begin in range(0, payload, room)]


class FlowTimes(Experiment):
    """Completion times of flows."""

    name = "flow-times"
    asks = "How long do flows of each size take, and how many times longer than alone?"
    source = "Alizadeh et al., DCTCP, 2010 (sizes); slowdown by size as in later work on data centres"
    entry = "lanikai.sim.experiments.workloads.flows:measure"
    Parameters = FlowTimesParameters
    by_flow = ("bin_*",)
    element = "bin"

    def points(self, parameters: FlowTimesParameters, size: Size) -> list[Point]:
        """A point for each load."""
        return [
            Point(
                label=f"load {load:g}",
                parameters={
                    **parameters.model_dump(mode="json", exclude={"sizes", "loads"}),
                    "sizes": parameters.path.name,
                    "flows": parameters.flows or FLOWS[size],
                    "load": load,
                },
                spec={
                    "sizes": str(parameters.path.resolve()),
                    "size_scale": parameters.size_scale,
                    "packet_flits": parameters.packet_flits,
                    "flows": parameters.flows or FLOWS[size],
                    "load": load,
                },
            )
            for load in parameters.loads
        ]

    def system(self, parameters: FlowTimesParameters, point: Point) -> MessageNetworkConfig:
        """The network with a host at each node. Hosts have room for the packets of long flows."""
        return parameters.message_network().replace(queue_packets=1024)

    def results(
        self, parameters: FlowTimesParameters, point: Point, measured: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Completion times and slowdowns, of all flows and by size (names that begin with `bin_`)."""
        series = measured["series"]
        size, time = np.array(series["size_bytes"]), np.array(series["completion_cycles"])
        slow = np.array(series["slowdown"])
        edges = [*parameters.bins_bytes, None]
        number = np.searchsorted(np.array(parameters.bins_bytes), size, side="left")
        rows = [number == one for one in range(len(edges))]
        return {
            "flows": len(size),
            "size_mean_bytes": float(size.mean()),
            "distribution_mean_bytes": measured["distribution_mean_bytes"],
            "offered_flits_per_node_per_cycle": measured["offered"],
            "completion_mean_cycles": float(time.mean()),
            "slowdown_mean": float(slow.mean()),
            "slowdown_p99": _p99(slow),
            "least_slowdown": float(slow.min()),
            "bin_up_to_bytes": edges,
            "bin_flows": [int(row.sum()) for row in rows],
            "bin_completion_mean_cycles": [float(time[row].mean()) if row.any() else None for row in rows],
            "bin_slowdown_mean": [float(slow[row].mean()) if row.any() else None for row in rows],
            "bin_slowdown_p99": [_p99(slow[row]) if row.any() else None for row in rows],
        }

    def claims(self, parameters: FlowTimesParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """No flow is faster than alone, and more load slows flows."""
        by_load = sorted(outcomes, key=lambda one: float(one.point.parameters["load"]))
        slow = [one.results["slowdown_mean"] for one in by_load]
        return [
            Claim.every(
                "no flow completes sooner than alone",
                (one.results["least_slowdown"] >= 1 for one in outcomes),
            ),
            Claim.every(
                "the more load, the larger the mean slowdown",
                (before < after for before, after in pairwise(slow)),
                nothing="there is one load alone",
            ),
        ]

    def plot(self, parameters: FlowTimesParameters, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Draw mean and 99th percentile of the slowdown by size."""
        axes = figure.add_subplot()
        places = np.arange(len(parameters.bins_bytes) + 1)
        width = 0.8 / len(outcomes)
        for place, one in enumerate(outcomes):
            at = places + (place - (len(outcomes) - 1) / 2) * width
            load = one.point.parameters["load"]
            mean = [value or 0 for value in one.results["bin_slowdown_mean"]]
            axes.bar(at, mean, width * 0.9, color=f"C{place}", label=f"load {load:g}: mean")
            most = one.results["bin_slowdown_p99"]
            axes.plot(
                [x for x, value in zip(at, most, strict=True) if value],
                [value for value in most if value],
                "_",
                color="black",
                markersize=10,
                label="99th percentile" if place == 0 else None,
            )
        names = [f"≤ {size:,} B" for size in parameters.bins_bytes]
        axes.set_xticks(places, [*names, "longer"])
        axes.set_yscale("log")
        axes.axhline(1, color="grey", linewidth=0.8)
        axes.set_xlabel("size of the flow (before scaling)")
        axes.set_ylabel("time, alone = 1")
        axes.legend()
        axes.set_title(
            f"{parameters.path.name}, sizes times {parameters.size_scale:g} on {parameters.network}"
        )


def _p99(values: Any) -> float:
    return float(np.percentile(values, 99, method="inverted_cdf"))


def make_flows(
    spec: Mapping[str, Any], link: LinkConfig, nodes: int, load: float, draw: random.Random
) -> list[tuple[int, int, int, float]]:
    """Flows of all nodes in the order of their births: cycle, source, destination, bytes before scaling.

    Gaps of a node are exponential; their mean gives the load in flits, headers included.
    """
    sizes, scale = read_flow_sizes(Path(spec["sizes"])), spec["size_scale"]
    sample = [
        sum(packet_lengths(sizes.size((i + 0.5) / 1000) * scale, spec["packet_flits"], link))
        for i in range(1000)
    ]
    gap = sum(sample) / len(sample) / load / nodes
    flows, time = [], 0.0
    for _ in range(spec["flows"]):
        # Of nodes that are all alike the next birth of any is at one of them.
        time += draw.expovariate(1 / gap)
        source = draw.randrange(nodes)
        destination = (source + draw.randrange(1, nodes)) % nodes
        flows.append((int(time), source, destination, sizes.size(draw.random())))
    return flows


async def measure(network: MessageNetwork, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point."""
    from .play import IDLE_CYCLES, Player

    config = network.config
    nodes, link = config.traffic.nodes, config.traffic.link
    flows = make_flows(spec, link, nodes, spec["load"], random.Random(network.seed))
    count = lanes(config.network.router, 1)
    turns = [0] * nodes
    rows, vls, flow_of = [], [], []
    for number, (cycle, source, destination, size) in enumerate(flows):
        for flits in packet_lengths(size * spec["size_scale"], spec["packet_flits"], link):
            rows.append((cycle, source, destination, flits))
            vls.append(turns[source] % count)
            flow_of.append(number)
        turns[source] += 1
    columns = np.array(rows, np.int64).T
    packets = Packets(
        cycle=columns[0],
        source=columns[1],
        destination=columns[2],
        flits=columns[3],
        traffic_class=np.zeros(len(rows), np.int64),
    )
    played = await Player(network, packets, lanes=count, vls=vls).run()
    last, total = [0] * len(flows), [0] * len(flows)
    for place, number in enumerate(flow_of):
        last[number] = max(last[number], played["arrived"][place])
        total[number] += rows[place][3]
    times = [last[number] - flow[0] for number, flow in enumerate(flows)]
    alone = [
        IDLE_CYCLES
        + link.delay_cycles
        + (5 + link.delay_cycles) * len(config.network.path(source, destination))
        + total[number]
        - 1
        for number, (_, source, destination, _) in enumerate(flows)
    ]
    return {
        "offered": sum(total) / nodes / (flows[-1][0] + 1),
        "distribution_mean_bytes": read_flow_sizes(Path(spec["sizes"])).mean_bytes,
        "series": {
            "size_bytes": [flow[3] for flow in flows],
            "completion_cycles": times,
            "slowdown": [time / least for time, least in zip(times, alone, strict=True)],
        },
    }
