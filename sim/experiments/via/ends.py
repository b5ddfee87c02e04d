"""Two processes on two nodes that are connected by VIs: what the experiments on pairs of cards have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..framework.base import Experiment, Outcome, Point, Size
from .cards import NAMES, TITLES, via_cluster

if TYPE_CHECKING:
    from lanikai.firmware.via.config import ViaConfig
    from lanikai.firmware.via.program import ViaProgram
    from matplotlib.figure import Figure

    from ...host.config import KitConfig
    from ...host.via.completion_queue import VipCompletionQueue
    from ...host.via.vi import Vi
    from ...systems.cluster import Cluster, ClusterConfig

__all__ = ["BUFFER_OFFSET", "PAGE_BYTES", "End", "PairExperiment", "allowed_us", "key", "open_pairs"]

PAGE_BYTES = 4096
BUFFER_OFFSET = 64
"""Byte of its page at which a message's buffer begins, if it is of a page or more.

So a message of 4 KB lies in two pages, and one of 16 KB in five.
"""
RELATIVE, ABSOLUTE_US = 0.1, 2.0
"""How far a measured time may be from the published one: the larger of both."""


def allowed_us(published_us: float) -> float:
    """How far from a published time a measured one may be."""
    return max(ABSOLUTE_US, RELATIVE * published_us)


def key(outcome: Outcome) -> tuple[str, int]:
    """A point's design and size."""
    return outcome.point.parameters["design"], outcome.point.parameters["message_bytes"]


class PairExperiment(Experiment):
    """An experiment on two cards, with a point for each design and message size.

    A subclass says what was published of a point, and what else its run is told.
    """

    @abstractmethod
    def published_us(self, design: str, size: int) -> Mapping[str, float]:
        """The published times of a point, microseconds, by the names of its results; empty if there are none."""

    @abstractmethod
    def told(self, parameters: Any, size: Size) -> Mapping[str, Any]:
        """The parts of a point's spec beside design and message size."""

    def points(self, parameters: Any, size: Size) -> list[Point]:
        """A point for each design and message size."""
        found = []
        for design in parameters.designs:
            for length in parameters.message_bytes:
                published = self.published_us(design, length)
                chosen = {"design": design, "message_bytes": length}
                found.append(
                    Point(
                        label=f"{design}, {length} bytes",
                        parameters=chosen,
                        spec={**chosen, **self.told(parameters, size)},
                        published=published or None,
                        tolerance={name: allowed_us(us) / us for name, us in published.items()} or None,
                        workload=f"{length} bytes",
                    )
                )
        return found

    def system(self, parameters: Any, point: Point) -> ClusterConfig:
        """Two nodes of chapter 5 with the design's card."""
        return via_cluster(point.parameters["design"], nodes=2)

    def draw(
        self,
        figure: Figure,
        outcomes: Sequence[Outcome],
        name: str,
        there: Mapping[str, Mapping[int, float]],
    ) -> None:
        """Draw the times `name` against the size, a line a design; crosses where something was published (`there`)."""
        axes = figure.subplots()
        for design, style in zip(NAMES, ("o-", "s-", "^-"), strict=True):
            mine = sorted((key(one)[1], one.results[name]) for one in outcomes if key(one)[0] == design)
            if not mine:
                continue
            sizes, times = [max(1, at) for at, _ in mine], [us for _, us in mine]
            (line,) = axes.plot(sizes, times, style, label=TITLES[design])
            published = there[design]
            axes.plot(list(published), list(published.values()), "x", color=line.get_color(), markersize=9)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("message (bytes)")
        axes.legend()


@dataclass(frozen=True)
class End:
    """An end of a VI: its memory has places of a message's size, `places` of them, each at the same byte of a page."""

    vi: Vi
    handle: int
    start: int
    stride: int
    size: int
    write: Callable[[bytes, int], None]
    queue: VipCompletionQueue | None = None

    def descriptor(self, place: int, size: int | None = None) -> Any:
        """A descriptor of one segment: that place."""
        from lanikai.firmware.via.descriptor import Segment

        from ...host.via.descriptor import VipDescriptor

        length = self.size if size is None else size
        return VipDescriptor((Segment(self.start + self.stride * place, self.handle, length),))


async def open_pairs(
    cluster: Cluster,
    config: ViaConfig,
    costs: KitConfig,
    *,
    vis: int,
    size: int,
    places: int,
    told: int = 0,
) -> tuple[list[ViaProgram], Sequence[tuple[End, End]]]:
    """Start programs and agents; open a process on nodes 0 and 1 each, and `vis` VIs between them.

    Returns the programs, and both ends of each VI. `size`: bytes of a message. `places`: of each end's memory. `told`:
    entries of a completion queue at each node that tells all ends; 0: the descriptors alone tell them.
    """
    from ...host.via.attributes import MemAttributes, NetAddress, ViAttributes
    from ...host.via.vipl import (
        VipConnectPeerRequest,
        VipConnectPeerWait,
        VipCreateCQ,
        VipCreatePtag,
        VipCreateVi,
        VipOpenNic,
        VipRegisterMem,
    )
    from ..measure.hosts import start_hosts

    programs: list[ViaProgram] = []
    agents = start_hosts(cluster, "via", config=config, costs=costs, started=programs.append)
    offset = 0 if size < PAGE_BYTES else BUFFER_OFFSET
    stride = -(-max(size, 4) // 4) * 4 if not offset else (size // PAGE_BYTES + 1) * PAGE_BYTES
    ends: list[list[End]] = []
    for node, agent in enumerate(agents[:2]):
        nic = await VipOpenNic(agent)
        ptag = await VipCreatePtag(nic)
        queue = await VipCreateCQ(nic, told) if told else None
        mine = []
        for number in range(vis):
            vi = await VipCreateVi(nic, ViAttributes(ptag=ptag), queue, queue)
            buffer = nic.allocate(stride * places + PAGE_BYTES)
            handle = await VipRegisterMem(nic, buffer.start, buffer.length, MemAttributes(ptag=ptag))
            name = b"pair %d" % number
            await VipConnectPeerRequest(vi, NetAddress(node, name), NetAddress(1 - node, name), None)
            mine.append(End(vi, handle, buffer.start + offset, stride, size, buffer.write, queue))
        ends.append(mine)
    for mine in ends:
        for end in mine:
            await VipConnectPeerWait(end.vi)
    return programs, list(zip(*ends, strict=True))
