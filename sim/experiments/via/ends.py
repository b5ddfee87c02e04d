"""Two processes on two nodes that are connected by VIs: what the experiments on pairs of cards begin with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanikai.firmware.via.config import ViaConfig
    from lanikai.firmware.via.program import ViaProgram

    from ...host.config import KitConfig
    from ...host.via.completion_queue import VipCompletionQueue
    from ...host.via.vi import Vi
    from ...systems.cluster import Cluster

__all__ = ["End", "open_pairs"]

PAGE_BYTES = 4096
BUFFER_OFFSET = 64
"""Byte of its page at which a message's buffer begins, if it is of a page or more (as in `via-latency`)."""


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
