"""Processes with VIs on cards in plain Python (`via_card`), for tests of VIPL."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from lanikai.sim.host.kit.address_space import VirtualBuffer
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.agent import Agent
from lanikai.sim.host.via.attributes import MemAttributes, NetAddress, ViAttributes
from lanikai.sim.host.via.descriptor import Segment, VipDescriptor
from lanikai.sim.host.via.errors import VipError, VipReturn
from lanikai.sim.host.via.nic import Ptag, VipNic
from lanikai.sim.host.via.vi import Vi

MEMORY_BYTES = 8192


@dataclass
class End:
    """A process with a tag, memory and a VI."""

    nic: VipNic
    tag: Ptag
    memory: VirtualBuffer
    handle: int
    vi: Vi

    @classmethod
    async def open(
        cls,
        agent: Agent,
        *,
        rdma: bool = False,
        queues: tuple[Any, Any] | int = (None, None),
        **attributes: Any,
    ) -> End:
        """A process on a node. `queues`: a number of entries for one completion queue of both work queues."""
        nic = await vipl.VipOpenNic(agent)
        tag = await vipl.VipCreatePtag(nic)
        memory = nic.allocate(MEMORY_BYTES)
        allowed = MemAttributes(ptag=tag, rdma_write=rdma, rdma_read=rdma)
        handle = await vipl.VipRegisterMem(nic, memory.start, MEMORY_BYTES, allowed)
        if isinstance(queues, int):
            queue = await vipl.VipCreateCQ(nic, queues)
            queues = queue, queue
        vi = await vipl.VipCreateVi(nic, ViAttributes(ptag=tag, **attributes), *queues)
        return cls(nic, tag, memory, handle, vi)

    def piece(self, offset: int, length: int) -> Segment:
        """A part of its memory."""
        return Segment(self.memory.start + offset, self.handle, length)

    def descriptor(self, offset: int = 0, length: int = 64, **fields: Any) -> VipDescriptor:
        """A descriptor of a part of its memory."""
        return VipDescriptor([self.piece(offset, length)], **fields)

    def address(self, name: bytes = b"") -> NetAddress:
        """An address on its node."""
        return NetAddress(self.nic.node, name)

    async def close(self) -> None:
        """Give everything back."""
        await vipl.VipCloseNic(self.nic)


async def join(net: Any, a: End, b: End) -> None:
    """Connect two ends, as peers."""
    for one, other in ((a, b), (b, a)):
        await vipl.VipConnectPeerRequest(one.vi, one.address(b"p"), other.address(b"p"), 50)
    for one in (a, b):
        await vipl.VipConnectPeerWait(one.vi)


async def pair(net: Any, **settings: Any) -> tuple[End, End]:
    """Two ends on nodes 0 and 1, connected."""
    a, b = [await End.open(agent, **settings) for agent in net.agents[:2]]
    await join(net, a, b)
    return a, b


async def code_of(call: Coroutine[Any, Any, Any], says: str | None = None) -> VipReturn:
    """The code with which a call ends, VIP_SUCCESS if it returns; its line must be `says`."""
    try:
        await call
    except VipError as error:
        line = str(error)
        assert line.startswith(error.code.name + ": ") and "\n" not in line
        if says is not None:
            assert line == f"{error.code.name}: {says}"
        return error.code
    assert says is None, "the call returned"
    return VipReturn.VIP_SUCCESS


async def failed(call: Coroutine[Any, Any, Any]) -> VipDescriptor:
    """The descriptor with which a call ends, which has an error."""
    try:
        await call
    except VipError as error:
        assert error.code is VipReturn.VIP_DESCRIPTOR_ERROR
        return error.descriptor
    raise AssertionError("the call returned")


def left(net: Any) -> list[Any]:
    """All that each agent, card and driver has given away: equal before and after, unless something leaked."""
    found = []
    for agent, card in zip(net.agents, net.cards, strict=True):
        found.append(
            {
                "host bytes": agent.pages.free_bytes,
                "free": {what: agent.free(what) for what in ("owner", "channel", "completion queue")},
                "regions": (len(agent.regions._free), len(agent.regions._tables), len(agent.regions._given)),
                "vis": sorted(agent.vis),
                "nics": len(agent.nics),
                "queues": (len(agent.completion_queues), len(agent._queues)),
                "promises": (len(agent.admission), agent.admission.used_ns),
                "waiters": len(agent.connector.waiters),
                "requests": len(agent.connector.requests) + len(agent.connector.peers),
                "handles": len(agent.connector.handles),
                "rates": len(agent.connector.rates.requests),
                "card": (sorted(card.channels), sorted(card.regions), sorted(card.rings)),
                "open": [number for number in range(1, card.nic.channels) if card.record(number)],
                "flags": [
                    card.sram.get(card.layout.region_flag(region), 0) for region in range(card.nic.regions)
                ],
            }
        )
    return found


async def quiet(net: Any) -> None:
    """Wait until no agent says anything any more."""
    while not all(link.idle for agent in net.agents for link in agent.links.values()):
        await net.world.sleep(1000)
    await net.world.sleep(20_000)


def run(net: Any, test: Callable[[], Coroutine[Any, Any, Any]], *, leaks: bool = True) -> Any:
    """Run a test on a net; afterwards nothing may be left, when all processes have closed or been killed."""
    before = left(net)

    async def main() -> Any:
        found = await test()
        if leaks:
            for agent in net.agents:
                for nic in list(agent.nics):
                    await agent.kill(nic)
            await quiet(net)
        return found

    found = net.run(main())
    if leaks:
        assert left(net) == before
    return found
