"""A cluster: its configuration, its model, and the object that coroutines use inside the simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self

from lanikai.firmware.programs import find_program
from lanikai.hdl.config import ConfigError, NicConfig, RouterConfig, preset
from lanikai.hdl.fault_link import FaultPlace
from lanikai.hdl.network import MAX_NODES, Network, chain, single_router
from lanikai.hdl.network_waits import require_order
from pydantic import Field, field_validator, model_validator

from ..build.card_clock import CardClock
from ..build.model import Design, Variant
from ..inside import deliveries, native_api
from ..inside.deliveries import Observed
from ..inside.session import Session
from ..inside.wakes import Wakes
from ..inside.watchdog import WATCHDOG_BITS, Probe
from ..models.host_bus import SimulatedHost
from ..models.pci_timing import PciTiming
from ..models.processor_mailbox import SimulatedProcessor, processor_ends
from .base import System, SystemConfig
from .fault_ports import check_faults
from .forwarding import write_forwarding_tables

__all__ = ["Cluster", "ClusterConfig", "Node", "cluster_preset", "cluster_preset_names", "settle_cycles"]


class ClusterConfig(SystemConfig):
    """Nodes on one router, a chain of routers or any other network (`on`), each with a host, a NIC and its firmware's
    processor. Default: profile `lanai4`."""

    title = "cluster"
    inside = "lanikai.sim.systems.cluster:Cluster"
    # The watchdog's limit is an input of the design; the other limits and the firmware are none of it.
    not_in_design = frozenset(
        {"firmware", "watchdog_cycles", "delivery_cycles", "limit_cycles", "skip_quiet", "access_lists"}
    )

    nodes: int = Field(3, ge=1, le=MAX_NODES, description="nodes; on one router node i is at port i")
    chain: tuple[int, ...] = Field(
        (),
        max_length=16,
        description="nodes on each router of a chain of routers, numbered router by router; empty: one router "
        "with all of them",
    )
    topology: Network | None = Field(
        None,
        description="any other network: its places are the nodes', its routers are `router` (`on` sets all three); "
        "None: one router or a chain",
    )
    router: RouterConfig = Field(
        default_factory=lambda: preset(RouterConfig, "lanai4"),
        description="the router; it gets a port for every node, and for its neighbours, if `ports` is less",
    )
    nic: NicConfig = Field(
        default_factory=lambda: preset(NicConfig, "lanai4"), description="every node's network interface card"
    )
    firmware: str | None = Field(
        "gm",
        description="program that the cards run (`lanikai.firmware.programs`); None: whoever measures drives the "
        "processors' ports itself",
    )
    pci: PciTiming = Field(default_factory=PciTiming, description="every host's bus")
    memory_bytes: int = Field(
        1 << 24, ge=4096, le=1 << 31, multiple_of=4096, description="memory of every host, bytes"
    )
    watchdog_cycles: int = Field(
        1_000_000,
        ge=0,
        lt=1 << WATCHDOG_BITS,
        description="cycles without any movement after which the simulation is ended; 0: never",
    )
    delivery_cycles: int = Field(
        5_000_000,
        ge=0,
        description="cycles in which messages wait and none moves on at any host, though flits do (they are "
        "refused and sent again), after which the simulation is ended; 0: never. 5 million are 0.15 s at 33 MHz",
    )
    skip_quiet: bool = Field(
        True,
        description="nodes in which nothing can happen are not evaluated, and time passes over cycles in which nothing "
        "can happen at all: the same results, sooner",
    )
    composed: bool = Field(
        True,
        description="cards and routers are compiled once each, whatever their number: the same results, sooner "
        "(in waves and with `--debug` the card of a node is `node0.nic`, not `nic0`)",
    )
    cuts: bool = Field(
        False, description="cables can be cut and joined again while the cluster runs (`Cluster.cut`)"
    )
    faults: tuple[FaultPlace, ...] = Field(
        (), description="links that fail: router, port, and whether it is the link `out` of it or `in` to it"
    )
    access_lists: bool = Field(
        True,
        description="the main loop carries out the firmware's lists of accesses: the same results, sooner than by "
        "Python, access by access",
    )
    limit_cycles: int = Field(
        0, ge=0, description="cycles after which the simulation is ended, whatever moves; 0: never"
    )

    @field_validator("firmware")
    @classmethod
    def _is_there(cls, firmware: str | None) -> str | None:
        if firmware is not None:
            find_program(firmware)
        return firmware

    @field_validator("router")
    @classmethod
    def _may_be_reset_alone(cls, router: RouterConfig) -> RouterConfig:
        """Let the links of a router at cards be reset alone, as those of the cards."""
        return (
            router.replace(link=router.link.replace(restart=True)) if router.link.restart is None else router
        )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.router.link != self.nic.link:
            raise ValueError("router.link and nic.link differ: both ends of a link are configured alike")
        require_order(self.router, "router", "hosts of cards")
        if self.chain and sum(self.chain) != self.nodes:
            raise ValueError(f"chain = {list(self.chain)}: {sum(self.chain)} nodes, but nodes = {self.nodes}")
        if self.topology is not None:
            if self.chain:
                raise ValueError("chain and topology: at most one of them")
            if len(self.topology.nodes) != self.nodes:
                raise ValueError(
                    f"topology: places for {len(self.topology.nodes)} nodes, but nodes = {self.nodes}"
                )
            if self._may_be_reset_alone(self.topology.router) != self.router:
                raise ValueError("topology.router and router differ: ClusterConfig.on takes the network's")
        if self.cuts and not self.composed:
            raise ValueError(
                "cuts = True: needs composed = True: a cluster that is one model has fixed cables"
            )
        if self.composed and (self.faults or self.router.link.guard_cycles):
            raise ValueError(
                "faults and link.guard_cycles: need composed = False, a cluster that is one model"
            )
        check_faults(self.network, self.faults)
        return self

    def design(self, variant: Variant = "fast") -> Design:
        """The design of the whole cluster. For waves it has ports and views besides, for the eye alone."""
        from .cluster_verilog import cluster_design, composed_design

        if self.composed:
            return composed_design(
                self.network,
                nic=self.nic,
                pci=self.pci,
                memory_bytes=self.memory_bytes,
                settle_cycles=settle_cycles(self),
                variant=variant,
                cuts=self.cuts,
            )
        return cluster_design(
            self.network,
            nic=self.nic,
            pci=self.pci,
            memory_bytes=self.memory_bytes,
            variant=variant,
            faults=self.faults,
        )

    def on(self, network: Network) -> Self:
        """The same nodes, as many as the `network` has places, on that network with its routers (mesh, file, ...).
        Buffers of nodes are those of the cards, whatever it says; the cards take its `link.hop_bits`. Raises
        ConfigError, also if the links are not those of the cards."""
        nic = self.nic.replace(link=self.nic.link.replace(hop_bits=network.router.link.hop_bits))
        found = {"topology": network, "nodes": len(network.nodes), "router": network.router, "nic": nic}
        return self.replace(**found, chain=())

    @cached_property
    def network(self) -> Network:
        """Routers and links."""
        if self.topology is not None:
            return self.topology.replace(router=self.router, node_buffer_flits=self.nic.input_buffer_flits)
        if self.chain:
            return chain(
                len(self.chain),
                router=self.router.replace(ports=max(self.router.ports, max(self.chain) + 2)),
                node_buffer_flits=self.nic.input_buffer_flits,
                nodes=self.chain,
            )
        ports = max(self.router.ports, self.nodes)
        return single_router(
            self.nodes,
            router=self.router.replace(ports=ports),
            node_buffer_flits=self.nic.input_buffer_flits,
        )


_PRESETS: Mapping[str, ClusterConfig] = {
    "tiny": ClusterConfig(
        nodes=2,
        router=preset(RouterConfig, "tiny"),
        nic=preset(NicConfig, "tiny"),
        memory_bytes=65536,
        watchdog_cycles=20_000,
    ),
    "lanai4": ClusterConfig(),
    # Every bus is the profile's: as wide as the card's `bus_bits`, at its clock.
    **{
        name: ClusterConfig(
            router=preset(RouterConfig, name),
            nic=preset(NicConfig, name),
            pci=PciTiming.at(preset(NicConfig, name).clock_hz),
        )
        for name in ("lanai7", "iba")
    },
    # nagar-thesis-2001 5.4: two hosts with 400 MHz Pentium Pros, whose bridges end bursts at a cache line.
    "via5": ClusterConfig(
        nodes=2,
        router=preset(RouterConfig, "via5"),
        nic=preset(NicConfig, "via5"),
        pci=PciTiming.of_cache_lines(preset(NicConfig, "via5")),
        firmware="via",
    ),
    # chun-1998 3.4: workstations with an SBus. The memory holds the staging areas of 84 endpoints and more.
    "lanai41": ClusterConfig(
        nodes=2,
        router=preset(RouterConfig, "lanai41"),
        nic=preset(NicConfig, "lanai41"),
        pci=PciTiming.of_sbus(preset(NicConfig, "lanai41")),
        firmware=None,
        memory_bytes=1 << 26,
    ),
}


def cluster_preset_names() -> list[str]:
    """Names of the cluster presets."""
    return list(_PRESETS)


def cluster_preset(name: str, **changes: Any) -> ClusterConfig:
    """The cluster preset `name`, with `changes`. Raises ConfigError for an unknown name."""
    if name not in _PRESETS:
        raise ConfigError(f"ClusterConfig: unknown preset {name!r}; valid presets: {', '.join(_PRESETS)}")
    return _PRESETS[name].replace(**changes)


def settle_cycles(config: ClusterConfig) -> int:
    """Cycles without movement after which no block of a cluster has a pause of its own left. They are the sum of three,
    each counted twice:

    - a retried access of the host's bus (`retry_idle_cycles`);
    - the next slot of a link;
    - a decision of the rate control unit (64 cycles cover the tree of 1024 flows).
    """
    link = config.nic.link
    return 2 * (config.pci.retry_idle_cycles + -(-link.rate_den // link.rate_num) + 64 + link.delay_cycles)


@dataclass(frozen=True)
class Node:
    """One node.

    - `number`: its number.
    - `processors`: the ports of its card's processors, one or two (`lanikai.firmware.ports.ProcessorPort`).
    - `host`: its host (`lanikai.sim.host.bus.HostBus`).
    """

    number: int
    processors: tuple[SimulatedProcessor, ...]
    host: SimulatedHost

    @property
    def processor(self) -> SimulatedProcessor:
        """The first, or only, processor's port."""
        return self.processors[0]


class Cluster(System[ClusterConfig]):
    """The cluster inside its simulation.

    - `network`: its network (routes: `network.source_route(source, destination)`).
    - `nodes`: its nodes.

    It has the members of every `System`, too. A watchdog ends the simulation with SimulationError in three cases:

    - nothing has moved for `config.watchdog_cycles`;
    - messages wait and no part given to `observe` has delivered anything for `config.delivery_cycles`;
    - `config.limit_cycles` are over.

    Before, it writes queues, credits and VL state, and the state of the parts, into the log.
    """

    def __init__(self, config: ClusterConfig, session: Session) -> None:
        super().__init__(config, session)
        self.network = config.network
        self._wakes = Wakes()
        self.nodes = [self._node(i) for i in range(config.nodes)]
        self.limit_watchdog(config.watchdog_cycles)
        if config.skip_quiet:
            self._skip_quiet()
        self._observed: list[Observed] = []
        self.watch()
        if config.delivery_cycles:
            self.clock.spawn(self._watch_deliveries(), "watchdog.deliveries")
        if config.limit_cycles:
            self.clock.spawn(self._watch_limit(), "watchdog.limit")

    async def prepare(self) -> None:
        """Write the routers' forwarding tables, if they go by them. The log says why they do."""
        self.say(self.network.by_destination)
        await write_forwarding_tables(self.clock, self.network, top=self._top, composed=self.config.composed)

    def _node(self, i: int) -> Node:
        signal, change = self._signal, self._wakes.change
        processors = tuple(
            SimulatedProcessor(
                self.clock,
                self._wakes,
                command=signal(i, "command", f"nic{i}_command{end}", end),
                answer=signal(i, "answer", f"nic{i}_answer{end}", end),
                event=signal(i, "pending", f"nic{i}_event{end}", end),
                lists=self.config.access_lists,
                step=self._step(i, end),
            )
            for end in processor_ends(self.config.nic)
        )
        interrupt = signal(i, "host_interrupt", f"nic{i}_interrupt")
        host = SimulatedHost(
            i,
            self.clock,
            memory_bytes=self.config.memory_bytes,
            command=signal(i, "host_command", f"host{i}_command"),
            response=signal(i, "host_response", f"host{i}_response"),
            done=change(signal(i, "host_done", f"host{i}_done")),
            write_event=change(signal(i, "host_write_event", f"host{i}_write_event")),
            interrupt=interrupt,
            interrupt_change=change(interrupt),
        )
        return Node(i, processors, host)

    def _signal(self, node: int, port: str, name: str, end: str = "") -> native_api.Signal:
        """A node's signal: `port` of its block and the processor's `end`, or `name` if the cluster is one model."""
        try:
            return native_api.signal(f"{port}{end}", f"{self._top}.node{node}")
        except KeyError:
            return native_api.signal(name)

    def _step(self, node: int, end: str) -> native_api.Signal | None:
        """The signal that shows a processor's step in waves; None if none are written of it."""
        try:
            return self._signal(node, "step", f"nic{node}_step{end}", end)
        except KeyError:
            return None

    def _skip_quiet(self) -> None:
        native_api.skip(
            nodes=self.config.nodes,
            settle_cycles=settle_cycles(self.config),
            **asdict(CardClock.of(self.config.nic)),
        )

    @property
    def skipped_cycles(self) -> int:
        """Cycles that time has passed over so far, as nothing could happen in them."""
        return native_api.skipped()

    @property
    def dropped(self) -> int:
        """Packets that routers have dropped since the start."""
        return native_api.signal("network_dropped").get()

    def cut(self, router: int, port: int) -> None:
        """Cut the cable at a port of a router (`ClusterConfig.cuts`), at both ends if it leads to another router.

        Packets that are on their way through the port go on; all that come later are dropped and counted there. So it
        is for a node's port, whose card sends on: its packets come in, and none go out to it. Raises KeyError without
        `ClusterConfig.cuts`.
        """
        self._connect(router, port, False)

    def join(self, router: int, port: int) -> None:
        """Join a cable that was cut. Raises KeyError without `ClusterConfig.cuts`."""
        self._connect(router, port, True)

    def _connect(self, router: int, port: int, on: bool) -> None:
        ends = [(router, port)]
        if (router, port) in self.network.neighbours:
            ends.append(self.network.neighbours[router, port])
        for here, bit in ends:
            signal = native_api.signal("connected", f"{self._top}.network.router{here}")
            value = signal.get() & ~(1 << bit)
            signal.set(value | 1 << bit if on else value)

    def probes(self) -> list[Probe]:
        """Queues, credits and VL state of every block."""
        from .cluster_verilog import probes

        return probes(self.network, self.config.nic)

    def state(self) -> list[str]:
        """The values that the probes show, then the state of observed software, a line each, for a log."""
        return super().state() + deliveries.describe(self._observed)

    def waiting(self) -> str:
        """The flits that wait, then the software that waits."""
        flits = self.stuck() or "no flit waits in the network"
        software = deliveries.summary(self._observed)
        return f"waiting: {flits}" + (f"; {software}" if software else "")

    def observe(self, part: Observed) -> None:
        """Have the watchdog look at a control program or a host library."""
        self._observed.append(part)

    async def _watch_deliveries(self) -> None:
        limit = self.config.delivery_cycles
        while True:
            quiet = deliveries.quiet_cycles(self._observed, self.clock.cycle) if self._observed else 0
            if quiet >= limit:
                self.end(f"nothing has been delivered for {quiet} cycles, though messages wait")
            await self.clock.sleep(limit - quiet)

    async def _watch_limit(self) -> None:
        await self.clock.sleep(self.config.limit_cycles)
        self.end(f"the limit of {self.config.limit_cycles} cycles is reached")
