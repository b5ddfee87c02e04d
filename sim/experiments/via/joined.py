"""VIs for experiments: made and joined by the nodes' agents themselves, without the messages of a connection.

A run's VIs are set up before it begins, and set-up is not measured. So the agents write both ends at once, as they do
at the end of a connection. All else is VIPL: posts, looks, waits and their costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lanikai.firmware.via.config import ViaConfig
from lanikai.firmware.via.layout import ViRecord

from ...host.via.admission import UNLIMITED, CardAdmission
from ...host.via.attributes import MemAttributes, Quality, ViAttributes, ViState
from ...host.via.descriptor import Segment, VipDescriptor
from ...host.via.vi import Other, Vi

if TYPE_CHECKING:
    from ...host.config import KitConfig
    from ...host.via.agent import Agent
    from ...host.via.completion_queue import VipCompletionQueue
    from ...host.via.nic import Ptag, VipNic
    from ...systems.cluster import Cluster

__all__ = ["ALIGNMENT", "Memory", "Program", "declare", "join", "start_via"]

ALIGNMENT = 64


def start_via(
    cluster: Cluster,
    config: ViaConfig,
    kit: KitConfig | None = None,
    *,
    admit_all: bool = True,
    nodes: Sequence[int] | None = None,
) -> tuple[list[Any], list[Agent]]:
    """Start the program on every card and the agent on every host; programs and agents by node.

    `admit_all`: the cards promise every rate that they are asked for: for runs that overload them.
    `nodes`: these nodes alone; None for all.
    """
    from ..measure.hosts import start_hosts

    programs: list[Any] = []
    agents: list[Agent] = start_hosts(
        cluster, "via", config=config, costs=kit, started=programs.append, nodes=nodes
    )
    if admit_all:
        for agent in agents:
            agent.admission = CardAdmission(capacity=UNLIMITED, best_effort_part=0)
    return programs, agents


class Memory:
    """Registered memory of a process, given out piece by piece, each aligned to a cache line.

    The first begins a line behind a page's start: so 4 KB touch two pages, as those of via-latency do.
    """

    def __init__(self, handle: int, start: int, length: int) -> None:
        self.handle, self._at, self._end = handle, start + ALIGNMENT, start + length

    def segment(self, length: int) -> Segment:
        """A piece that nobody else has. Raises ValueError if there is none left."""
        at = -(-self._at // ALIGNMENT) * ALIGNMENT
        if at + length > self._end:
            raise ValueError(f"{length} bytes of registered memory: none are left")
        self._at = at + length
        return Segment(at, self.handle, length)


class Program:
    """A process of a node: its open NIC, its protection tag, and registered memory of `memory_bytes`.

    `piece`: memory that all its messages share, where their bytes do not matter.
    """

    agent: Agent
    nic: VipNic
    ptag: Ptag
    memory: Memory
    piece: Segment

    @classmethod
    async def open(cls, agent: Agent, memory_bytes: int) -> Program:
        """Open the NIC of a node."""
        self = cls()
        self.agent = agent
        async with agent.lock:
            self.nic = await agent.open_nic()
            self.ptag = await agent.create_ptag(self.nic)
            buffer = self.nic.allocate(memory_bytes)
            handle = await agent.register(self.nic, buffer, MemAttributes(ptag=self.ptag))
        self.memory = Memory(handle, buffer.start, memory_bytes)
        return self

    async def queue(self, entries: int) -> VipCompletionQueue:
        """A completion queue of it."""
        async with self.agent.lock:
            return await self.agent.create_queue(self.nic, entries)

    async def vi(
        self,
        *,
        most_bytes: int,
        quality: Quality | None = None,
        told: tuple[VipCompletionQueue | None, VipCompletionQueue | None] = (None, None),
    ) -> Vi:
        """A VI of it, not connected."""
        attributes = ViAttributes(ptag=self.ptag, most_bytes=most_bytes, quality=quality)
        async with self.agent.lock:
            return await self.agent.create_vi(self.nic, attributes, told)

    def descriptor(self, length: int) -> VipDescriptor:
        """A descriptor with `length` bytes of its memory that no other one has."""
        return VipDescriptor([self.memory.segment(length)])


async def join(here: Vi, there: Vi, *, connection: int = 1) -> None:
    """Connect two VIs of different nodes."""
    for mine, its in ((here, there), (there, here)):
        agent = mine.nic.driver
        await agent.open_vi(mine, Other(its.nic.node, its.channel, connection, its.attributes))  # type: ignore[attr-defined]
        mine.become(ViState.CONNECTED)


async def declare(agent: Agent, owner: int, others: Sequence[tuple[int, int]]) -> list[int]:
    """Declare VIs that are not used: connected each to (node, channel) of `others`. Returns their channels.

    Firmware and card know them as all others. They share a ring that nobody posts to: memory for hundreds of rings is
    spared.
    """
    ring = agent.pages.allocate(agent.layout.form.slot_bytes * agent.config.queue_entries)
    channels = [agent.take("channel") for _ in others]
    for first in range(0, len(channels), 15):
        await agent.set_up(
            *(
                ("DOORBELL_CHANNEL", {"channel": channel, "owner": owner, "open": 1})
                for channel in channels[first : first + 15]
            )
        )
    for channel, (node, its) in zip(channels, others, strict=True):
        words = ViRecord(
            send_ring=ring.start,
            receive_ring=ring.start,
            route=agent.routes[node],
            node=node,
            channel=its,
            connection=1,
        ).words()
        at = agent.layout.record(channel)
        order = sorted(range(len(words)), key=lambda i: i == ViRecord.OPEN_WORD)
        await agent.bus.write_all([(at + 4 * i, words[i]) for i in order])
    return channels
