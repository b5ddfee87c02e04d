"""Programs of Active Messages II for experiments: clusters, endpoints, and the handlers that all of them have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lanikai.hdl.config import NicConfig, RouterConfig, preset

from ..framework.base import Size
from .topology import LARGE, SMALL, fat_tree

if TYPE_CHECKING:
    from lanikai.firmware.am.config import VirtualNetworkConfig

    from ...host.am.config import AmHostConfig
    from ...systems.cluster import Cluster, ClusterConfig

__all__ = [
    "LARGE_NODES",
    "REPLY",
    "REQUEST",
    "SILENCE_SCANS",
    "SMALL_NODES",
    "End",
    "figure_3",
    "nodes_of",
    "open_end",
    "pair_of_nodes",
    "start_am",
]

REQUEST, REPLY = 1, 2
"""Indexes of the handlers of requests and of replies."""
LARGE_NODES, SMALL_NODES = LARGE.nodes, SMALL.nodes
TAG = 0x4E4F57
SILENCE_SCANS = 10
"""Scans of 1 ms without an answer before a packet is sent again, where many packets wait for each other.

chun-1998 4.4.2 gives an endpoint up after 255 tries, "several seconds". With 10 a try takes 11 ms, and 255 take 2.8 s.
With the firmware's default of 1 they take 0.5 s. Then 91 clients of a server send copies faster than it takes packets
in."""
TARGET = 0
"""Index of the translation of an endpoint that has one destination alone."""


def pair_of_nodes(*, streaming: bool = False) -> ClusterConfig:
    """Two nodes of chun-1998 on a switch. `streaming`: their SBus has streaming buffers, else consistent ones."""
    from ...models.pci_timing import PciTiming
    from ...systems.cluster import cluster_preset

    pci = PciTiming.of_sbus(preset(NicConfig, "lanai41"), streaming=streaming)
    return cluster_preset("lanai41", firmware="am", pci=pci)


def nodes_of(size: Size, *, at_least: int = 1) -> int:
    """Nodes of the network of a size: 12 in quick runs if they are enough, else the 92 of figure 3."""
    return SMALL_NODES if size == "quick" and at_least <= SMALL_NODES else LARGE_NODES


def figure_3(nodes: int, *, streaming: bool = False) -> ClusterConfig:
    """The cluster of figure 3, or the same in small, by its nodes. `streaming` as in `pair_of_nodes`."""
    from ...models.pci_timing import PciTiming
    from ...systems.cluster import cluster_preset

    pci = PciTiming.of_sbus(preset(NicConfig, "lanai41"), streaming=streaming)
    shape = SMALL if nodes == SMALL_NODES else LARGE
    config = cluster_preset("lanai41", firmware="am", pci=pci)
    return config.on(fat_tree(shape, router=preset(RouterConfig, "lanai41")))


def start_am(
    cluster: Cluster,
    config: VirtualNetworkConfig | None = None,
    costs: AmHostConfig | None = None,
    *,
    others: VirtualNetworkConfig | None = None,
) -> tuple[list[Any], list[Any]]:
    """Start the program on every card and the driver on every host; programs and drivers by node.

    `others`: sizes of all cards but that of node 0, if they are others. No packet tells how many frames a card has.
    """
    from ..measure.hosts import start_hosts

    programs: list[Any] = []
    drivers: list[Any] = []
    for sizes, nodes in ((config, [0]), (others or config, range(1, len(cluster.nodes)))):
        drivers += start_hosts(
            cluster, "am", config=sizes, costs=costs, started=programs.append, nodes=list(nodes)
        )
    return programs, drivers


@dataclass
class End:
    """An endpoint of a process.

    - `bundle`, `endpoint`, `name`: as Active Messages II has them.
    - `replies`, `requests`: messages that its handlers were called with.
    - `sources`: name of another endpoint -> requests of its.
    - `reply_cycles`: when each reply came, if `timed`.
    """

    bundle: Any
    endpoint: Any
    name: Any
    timed: bool = False
    replies: int = 0
    requests: int = 0
    reply_cycles: list[int] = field(default_factory=list)
    sources: Counter[Any] = field(default_factory=Counter)

    @property
    def driver(self) -> Any:
        """The node's driver."""
        return self.bundle.process.driver

    async def to(self, other: End) -> None:
        """Let the endpoint's translation lead to another one."""
        from ...host.am.amii import AM_Map

        await AM_Map(self.endpoint, TARGET, other.name, TAG)

    async def load(self) -> None:
        """Have its page loaded into a frame, by a write of the process: of an event mask that is 0 already."""
        await self.endpoint.page.write_all([(self.endpoint.EVENT_MASK, 0)])

    async def request(self) -> None:
        """Send a request of 4 words; wait for a credit if there is none."""
        from ...host.am.amii import AM_Request4

        await AM_Request4(self.endpoint, TARGET, REQUEST, 1, 2, 3, 4)

    async def medium(self, data: bytes) -> None:
        """Send a medium request."""
        from ...host.am.amii import AM_RequestI

        await AM_RequestI(self.endpoint, TARGET, REQUEST, data)

    async def bulk(self, data: bytes) -> None:
        """Send a bulk request to the beginning of the other one's segment."""
        from ...host.am.amii import AM_RequestXfer

        await AM_RequestXfer(self.endpoint, TARGET, 0, REQUEST, data)

    async def poll(self) -> int:
        """Take in what has come to the bundle."""
        from ...host.am.amii import AM_Poll

        return int(await AM_Poll(self.bundle))

    async def until_credit(self) -> None:
        """Poll until there is a credit.

        A process that waits for one looks all the time, and its looks take time of the bus. The library's own wait
        looks ever more rarely, up to 20 us apart, to save time of simulation (`posting.wait`).
        """
        to = self.endpoint.translations[TARGET].destination
        while not to.credits:
            await self.poll()

    async def answered(self, count: int) -> None:
        """Poll until so many replies have come."""
        while self.replies < count:
            await self.poll()


async def open_end(
    driver: Any,
    *,
    process: Any = None,
    bundle: Any = None,
    segment_bytes: int = 0,
    timed: bool = False,
    takes: Callable[[Any], Any] | None = None,
) -> End:
    """An endpoint in a bundle that there is, in a new one of a `process`, or of a new process.

    Its handler of requests replies with 4 words. `takes` is a coroutine function that it awaits before, with the
    handler's arguments as a tuple. `segment_bytes`: of its segment; 0: none.
    """
    from ...host.am.amii import (
        AM_AllocateBundle,
        AM_AllocateEndpoint,
        AM_Init,
        AM_Reply4,
        AM_SetHandler,
        AM_SetSeg,
    )

    if bundle is None:
        bundle = await AM_AllocateBundle(process or await AM_Init(driver))
    endpoint, name = await AM_AllocateEndpoint(bundle, TAG)
    end = End(bundle, endpoint, name, timed=timed)

    async def requested(token: Any, *arguments: Any) -> None:
        if takes is not None:
            await takes(arguments)
        end.requests += 1
        end.sources[token.source] += 1
        await AM_Reply4(token, REPLY, 1, 2, 3, 4)

    def replied(token: Any, *arguments: Any) -> None:
        end.replies += 1
        if end.timed:
            end.reply_cycles.append(driver.bus.cycle)

    await AM_SetHandler(endpoint, REQUEST, requested)
    await AM_SetHandler(endpoint, REPLY, replied)
    if segment_bytes:
        await AM_SetSeg(endpoint, bundle.process.allocate(segment_bytes))
    return end
