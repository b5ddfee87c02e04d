"""network-load: latency and accepted throughput of a network against the load that is offered to it.

Every node offers the same load, made and measured in RTL (`lanikai.sim.systems`): warm-up, window, drain. Packets born
in the window count for latencies, flits that arrive in it for throughput. A point whose drain does not end within
`limit_cycles` is *saturated*. It has no latencies: those of the packets that did arrive would be too small.

**The limit.** If a network accepts the fraction a of the load, the last packet of the window is late by (1 - a) / a of
warm-up and window. The limit is 1/20 of them and `DRAIN_PACKETS` packet lengths, for the way of a packet without a
queue at its source. So a below 0.95 is called saturated. Above it the verdict depends on the window's length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

from lanikai.hdl.config import Config, ConfigError, RouterConfig, preset
from lanikai.hdl.router.allocators import ALLOCATORS
from lanikai.hdl.router.routing import AUTO, ROUTING
from lanikai.hdl.traffic.setup import ClassSetup
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS
from pydantic import Field, FiniteFloat, model_validator

from ..systems.traffic_config import TrafficNetworkConfig
from ..systems.watch.watching import Watching
from .framework.base import Claim, Curve, Outcome, Point, Size
from .measure.named_networks import NETWORKS, named_network
from .measure.traffic_experiment import TrafficExperiment
from .measure.traffic_results import ACCEPTED, MEASURE, OFFERED, check_traffic
from .measure.weighted import WEIGHTED, check_weights, weight_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NetworkLoad", "NetworkLoadParameters"]

PATTERNS = Literal[
    "uniform",
    "hot_spot",
    "table",
    "transpose",
    "bit_complement",
    "bit_reverse",
    "shuffle",
    "neighbour",
    "tornado",
]
ROUTER = "yum2006"
"""The preset of the routers. With the allocator `wavefront` it is `high_throughput`."""
LOADS = {
    "quick": [0.2, 0.5, 0.7, 1.0],
    "full": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0],
}
WARMUP_CYCLES = {"quick": 20_000, "full": 50_000}
"""Warm-up. At full load a source's queues must fill before every VL always has a packet.

Where 0.1 flits a cycle are not accepted, 20,000 cycles leave 3 packets of 40 flits for each of 16 VLs.
"""
WINDOW_CYCLES = {"quick": 20_000, "full": 100_000}
DRAIN_PACKETS = 40
"""Packet lengths of drain. A packet that shares its link with 15 others takes 16 of its lengths, and may wait for one
or two more."""
TARGETS = {"router8": 0.90, "mesh4x4": 0.75}
"""Flits a node and cycle that the wavefront allocator must accept at full load.

The traffic is uniform, with 16 VLs, 10-flit buffers and 40-flit packets. An input-queued router with as many VLs and
buffers accepts 0.55 and 0.59 (BookSim 2.0).
"""
TARGET_SETTINGS = {
    "pattern": "uniform",
    "vls": 16,
    "buffer_flits": 10,
    "packet_flits": 40,
    "class_shares": [1.0],
    "class_packet_flits": [],
    "class_patterns": [],
    "vl_arbiter": "round_robin",
    "process": "random",
}
ROUTINGS = [AUTO, *sorted(ROUTING)]
"""Routing functions that need nobody to write tables at run time."""
SAME = 0.03
"""Relative: the load that an unsaturated network accepts in the window against the load that was born in it. Packets
under way at the window's ends make the difference."""


class NetworkLoadParameters(Config):
    """Parameters of network-load."""

    network: str = Field(
        "mesh4x4", description="routers and their links", json_schema_extra={"range": NETWORKS}
    )
    pattern: PATTERNS = Field("uniform", description="where a node's packets go")
    allocator: str = Field(
        "separable,wavefront",
        description="switch allocators to compare",
        json_schema_extra={"range": f"one or more of {', '.join(sorted(ALLOCATORS))}, separated by commas"},
    )
    vl_arbiter: str = Field(
        "round_robin",
        description="of links, crossbar outputs and inputs; all VLs have equal weights, earlier classes the lower VLs",
        json_schema_extra={"range": f"one of {', '.join(sorted(VL_ARBITERS))}"},
    )
    weights: list[int] = Field(
        [],
        max_length=4,
        description="weight of each class at links and crossbars: every VL of a class has it; empty: what `vl_arbiter` "
        "has after reset",
        json_schema_extra={
            "range": f"list of weights, each 1 to 255; vl_arbiter one of {', '.join(WEIGHTED)}"
        },
    )
    pipelined: bool = Field(
        False,
        description="routers with registers between the choices of their stage 4, the crossbar, and so another clock; "
        "with the allocator separable, round_robin and packets that keep their VL, and in no torus",
    )
    routing: str = Field(
        AUTO,
        description="who knows the way: the source, the routers of a mesh or torus by coordinates, or routers by "
        "tables; auto: the routers where source routes do not fit, or could deadlock in a torus, else the source",
        json_schema_extra={"range": f"one of {', '.join(ROUTINGS)}"},
    )
    vls: int = Field(16, ge=1, le=16, description="virtual lanes; of 16 the last one is for control packets")
    buffer_flits: int = Field(
        10,
        ge=2,
        le=1024,
        description="input and output buffer of each VL, flits; pipelined: twice as many at the input alone",
    )
    flit_bits: int = Field(
        128, description="payload bits of a flit", json_schema_extra={"range": "32, 64, 128"}
    )
    vl_selection: Literal["same", "any", "routing"] = Field(
        "same",
        description="output VL of a packet: its input VL, any free one of its class, or what the routing function says "
        "(`torus`)",
    )
    packet_flits: int = Field(40, ge=1, le=1023, description="packet length, header included, flits")
    loads: list[FiniteFloat] = Field(
        [],
        max_length=64,
        description="offered loads, flits a node and cycle; empty: those of the size",
        json_schema_extra={"range": "list of loads, each above 0 and at most 1"},
    )
    class_shares: list[FiniteFloat] = Field(
        [1.0],
        min_length=1,
        max_length=4,
        description="classes: the share of the load of each; each has an equal number of VLs to itself",
        json_schema_extra={"range": "list of 1 to 4 shares above 0, whose sum is 1"},
    )
    class_packet_flits: list[int] = Field(
        [],
        max_length=4,
        description="packet length of each class, flits; empty: `packet_flits` for all",
        json_schema_extra={"range": "list of lengths, each 1 to 1023"},
    )
    class_patterns: list[PATTERNS] = Field(
        [],
        max_length=4,
        description="pattern of each class; empty: `pattern` for all",
        json_schema_extra={"range": "list of patterns"},
    )
    hot_node: int = Field(0, ge=0, le=1023, description="pattern `hot_spot`: the node")
    hot_fraction: float = Field(
        0.1,
        ge=0,
        le=1,
        description="pattern `hot_spot`: packets that go to that node; the others are uniform",
    )
    destinations: list[int] = Field(
        [],
        max_length=1024,
        description="pattern `table`: the destination of each node",
        json_schema_extra={"range": "list of nodes"},
    )
    process: Literal["random", "periodic", "on_off"] = Field("random", description="how packets are born")
    on_cycles: int = Field(
        1000, ge=1, le=(1 << 24) - 1, description="process `on_off`: mean ON period, cycles"
    )
    off_cycles: int = Field(
        1000, ge=1, le=(1 << 24) - 1, description="process `on_off`: mean OFF period, cycles"
    )

    count_links: bool = Field(
        False,
        description="count the flits of every link and the routers' events: use of links, energy a flit",
    )
    series_cycles: int = Field(
        0, ge=0, description="windows of a time series (accepted flits, mean latency), cycles; 0: none"
    )
    packet_list: bool = Field(
        False, description="keep a list of all packets, and so percentiles of each source"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for load in self.loads:
            if not 0 < load <= 1:
                raise ValueError(f"loads: {load:g}: above 0 and at most 1")
        if not all(share > 0 for share in self.class_shares) or abs(sum(self.class_shares) - 1) > 1e-6:
            raise ValueError(f"class_shares = {self.class_shares}: each above 0, their sum 1")
        for name in self.allocators:
            if name not in ALLOCATORS:
                raise ValueError(f"allocator = {self.allocator!r}: some of {', '.join(sorted(ALLOCATORS))}")
        if self.vl_arbiter not in VL_ARBITERS:
            raise ValueError(f"vl_arbiter = {self.vl_arbiter!r}: one of {', '.join(sorted(VL_ARBITERS))}")
        for name, given in (("packet_flits", self.class_packet_flits), ("patterns", self.class_patterns)):
            if given and len(given) != len(self.class_shares):
                raise ValueError(f"class_{name} has {len(given)} entries: one for each of class_shares")
        if self.routing not in ROUTINGS:
            raise ValueError(f"routing = {self.routing!r}: one of {', '.join(ROUTINGS)}")
        if self.pipelined and self.allocators != ["separable"]:
            raise ValueError(f"pipelined = True, allocator = {self.allocator!r}: set allocator=separable")
        check_weights(
            self.weights,
            classes=len(self.class_shares),
            vl_arbiter=self.vl_arbiter,
            packet_flits=self.longest_packet_flits,
        )
        if self.pipelined and self.count_links:
            raise ValueError("pipelined = True, count_links = True: pipelined routers have no counters")
        if len(set(self.allocators)) < len(self.allocators):
            raise ValueError(f"allocator = {self.allocator!r}: one is named twice")
        system = self.system(self.allocators[0])
        system.network.check_routes()
        if self.hot_node >= system.traffic.nodes:
            raise ValueError(f"hot_node = {self.hot_node}: nodes are 0 to {system.traffic.nodes - 1}")
        for load in self.loads or [self.duty]:
            for setup in self.classes(load):
                for node in range(system.traffic.nodes):
                    setup.words(node, system.traffic)
        return self

    @cached_property
    def allocators(self) -> list[str]:
        """The names in `allocator`."""
        return [name.strip() for name in self.allocator.split(",")]

    @cached_property
    def duty(self) -> float:
        """The largest mean load of the process. It is 1 for `on_off`: the load while it is ON."""
        return self.on_cycles / (self.on_cycles + self.off_cycles) if self.process == "on_off" else 1.0

    @cached_property
    def longest_packet_flits(self) -> int:
        """The longest packet of all classes, flits."""
        return max(self.class_packet_flits, default=self.packet_flits)

    def design(self, allocator: str) -> str:
        """The routers with one of the allocators, in a word or two."""
        return f"{allocator}, pipelined" if self.pipelined else allocator

    def system(self, allocator: str) -> TrafficNetworkConfig:
        """The network with one of the allocators, and its traffic nodes. Raises ConfigError."""
        base = preset(RouterConfig, ROUTER)
        router = base.replace(
            link=base.link.replace(flit_bits=self.flit_bits, vls=self.vls),
            vl_arbiter=self.vl_arbiter,
            routing=self.routing,
            input_buffer_flits=self.buffer_flits * (2 if self.pipelined else 1),
            allocator=allocator,
            pipelined=self.pipelined,
            activity_counters=self.count_links,
            # A pipelined router has none.
            **({} if self.pipelined else {"output_buffer_flits": self.buffer_flits}),
        )
        classes = len(self.class_shares)
        if self.vl_selection == "any":
            lanes = self._lanes(router)
            numbers = [min(vl // lanes, classes - 1) for vl in range(router.data_vls)]
            router = router.replace(vl_selection="any", vl_classes=tuple(numbers))
        else:
            router = router.replace(vl_selection=self.vl_selection)
        return TrafficNetworkConfig(
            network=named_network(self.network, router),
            classes=classes,
            agents=bool(self.weights),
            watched=bool(self.series_cycles or self.packet_list),
        )

    def table(self) -> list[tuple[int, int]]:
        """Rows (VL, weight) of every VL arbiter; none where they keep what reset gave them."""
        return weight_rows(
            self.weights,
            lanes=self._lanes(self.system(self.allocators[0]).network.router),
            vl_arbiter=self.vl_arbiter,
            packet_flits=self.longest_packet_flits,
        )

    def _lanes(self, router: RouterConfig) -> int:
        """VLs of each class. Raises ConfigError if there are fewer VLs than classes."""
        classes = len(self.class_shares)
        if classes > router.data_vls:
            raise ConfigError(
                f"class_shares: {classes} classes need as many VLs: there are {router.data_vls} for data"
            )
        return router.data_vls // classes

    def classes(self, load: float) -> list[ClassSetup]:
        """The classes of every node at a load; class c has service level c. Raises ConfigError."""
        lanes = self._lanes(self.system(self.allocators[0]).network.router)
        if load > self.duty * (1 + 1e-9):
            raise ConfigError(
                f"loads: {load:g}: at most {self.duty:g}, all of the time that the sources are ON"
            )
        return [
            ClassSetup(
                mode=self.process,
                load=min(1.0, load * share / self.duty),
                packet_flits=(self.class_packet_flits or [self.packet_flits] * 4)[number],
                pattern=(self.class_patterns or [self.pattern] * 4)[number],
                node=self.hot_node,
                hot_fraction=self.hot_fraction,
                table=tuple(self.destinations),
                on_cycles=self.on_cycles,
                off_cycles=self.off_cycles,
                vl_first=number * lanes,
                vl_count=lanes,
                service_level=number,
            )
            for number, share in enumerate(self.class_shares)
        ]


class NetworkLoad(TrafficExperiment):
    """Latency and accepted throughput against offered load."""

    name = "network-load"
    asks = "How much of the load that is offered does a network accept, and how late does it come?"
    source = "Dally and Towles, Principles and Practices of Interconnection Networks, 2004, chapter 23"
    entry = MEASURE
    Parameters = NetworkLoadParameters
    curves = tuple(
        Curve(by="load", x=OFFERED, y=y, x_label="offered load (flits a node and cycle)", y_label=label)
        for y, label in (
            ("latency_mean_cycles", "mean latency (cycles), where not saturated"),
            ("latency_p99_cycles", "99th percentile of latency (cycles), where not saturated"),
            (ACCEPTED, "accepted load (flits a node and cycle)"),
        )
    )

    def points(self, parameters: NetworkLoadParameters, size: Size) -> list[Point]:
        """A point for each allocator and load. Raises ConfigError for traffic that the window is too short for."""
        warmup, window = WARMUP_CYCLES[size], WINDOW_CYCLES[size]
        watching = Watching(
            links=parameters.count_links,
            series_cycles=parameters.series_cycles,
            packets=parameters.packet_list,
        )
        watching.check(warmup_cycles=warmup, window_cycles=window)
        loads = parameters.loads or [round(load * parameters.duty, 6) for load in LOADS[size]]
        traffic = parameters.system(parameters.allocators[0]).traffic
        for load in loads:
            check_traffic(parameters.classes(load), traffic, window_cycles=window)
        return [
            Point(
                label=f"{parameters.design(allocator)} {load:g}",
                parameters={
                    **parameters.model_dump(mode="json", exclude={"loads"}),
                    "allocator": allocator,
                    "load": load,
                },
                spec={
                    "classes": [setup.model_dump(mode="json") for setup in parameters.classes(load)],
                    "watch": asdict(watching),
                    "table": parameters.table(),
                    "warmup_cycles": warmup,
                    "window_cycles": window,
                    "limit_cycles": (warmup + window) // 20 + DRAIN_PACKETS * parameters.longest_packet_flits,
                },
                workload=f"load {load:g}",
            )
            for allocator in parameters.allocators
            for load in loads
        ]

    def system(self, parameters: NetworkLoadParameters, point: Point) -> TrafficNetworkConfig:
        """The network with the point's allocator."""
        return parameters.system(point.parameters["allocator"])

    def claims(self, parameters: NetworkLoadParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims. Up to saturation the accepted load is the offered one. At full load the better allocators accept
        what they must, and no less than the separable one."""
        open_points = [outcome.results for outcome in outcomes if not outcome.results["saturated"]]
        claims = [
            Claim.every(
                f"a network that is not saturated accepts what is offered, within {SAME:.0%}",
                (
                    bool(one[OFFERED]) and abs(one[ACCEPTED] - one[OFFERED]) <= SAME * one[OFFERED]
                    for one in open_points
                ),
                nothing="no point is below saturation",
            )
        ]
        full = {
            outcome.point.parameters["allocator"]: outcome.results[ACCEPTED]
            for outcome in outcomes
            if outcome.point.parameters["load"] == 1
        }
        settings = parameters.model_dump(mode="json")
        target = TARGETS.get(parameters.network)
        missing = [name for name in ("wavefront", "separable") if name not in full]
        if target:
            others = [
                f"it is about {name} = {value}, and here it is {settings[name]}"
                for name, value in TARGET_SETTINGS.items()
                if settings[name] != value
            ]
            claims.append(
                Claim(
                    text=f"with the wavefront allocator {parameters.network} accepts at least {target:.2f} flits "
                    "a node and cycle at full load",
                    holds=full.get("wavefront", 0.0) >= target,
                ).unless(
                    "no point has the wavefront allocator at full load"
                    if "wavefront" in missing
                    else others[0]
                    if others
                    else ""
                )
            )
        claims.append(
            Claim(
                text="at full load the wavefront allocator accepts no less than the separable one",
                holds=full.get("wavefront", 0.0) >= full.get("separable", 0.0) * (1 - SAME) > 0,
            ).unless(f"no point has the {missing[0]} allocator at full load" if missing else "")
        )
        return claims

    def plot(self, parameters: NetworkLoadParameters, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Draw mean latency, and accepted throughput, against offered load; a line for each allocator. Hollow points
        are saturated, and a dotted line stands at the first of them."""
        left, right = figure.subplots(1, 2)
        for number, allocator in enumerate(parameters.allocators):
            # Lines may lie on one another: points of each have a shape of their own.
            color, mark = f"C{number}", "osD^vP"[number % 6]
            mine = [one.results for one in outcomes if one.point.parameters["allocator"] == allocator]
            mine.sort(key=lambda one: float(one[OFFERED]))
            design = parameters.design(allocator)
            calm = [one for one in mine if not one["saturated"]]
            full = [one for one in mine if one["saturated"]]
            left.plot(
                [one[OFFERED] for one in calm],
                [one["latency_mean_cycles"] for one in calm],
                f"{mark}-",
                color=color,
                markersize=9 - 4 * (number > 0),
                label=design,
            )
            right.plot([one[OFFERED] for one in mine], [one[ACCEPTED] for one in mine], "-", color=color)
            right.plot(
                [one[OFFERED] for one in calm],
                [one[ACCEPTED] for one in calm],
                mark,
                color=color,
                markersize=9 - 4 * (number > 0),
                label=design,
            )
            right.plot(
                [one[OFFERED] for one in full],
                [one[ACCEPTED] for one in full],
                mark,
                color=color,
                markersize=9 - 4 * (number > 0),
                markerfacecolor="none",
            )
            if full:
                left.axvline(full[0][OFFERED], color=color, linestyle=":", linewidth=1)
        right.plot([], [], "o", color="grey", markerfacecolor="w", label="saturated")
        left.plot([], [], color="grey", linestyle=":", linewidth=1, label="saturated from here")
        right.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        left.set_ylabel("mean latency (cycles), where not saturated")
        left.set_ylim(bottom=0)
        right.set_ylabel("accepted load (flits a node and cycle)")
        for axes in (left, right):
            axes.set_xlabel("offered load (flits a node and cycle)")
            axes.set_xlim(0, 1.05)
            axes.legend()
        lengths = parameters.class_packet_flits or [parameters.packet_flits]
        patterns = parameters.class_patterns or [parameters.pattern]
        figure.suptitle(
            f"{parameters.network}{' of pipelined routers' if parameters.pipelined else ''}, "
            f"{' and '.join(dict.fromkeys(patterns))}, packets of "
            f"{' and '.join(map(str, dict.fromkeys(lengths)))} flits"
        )
