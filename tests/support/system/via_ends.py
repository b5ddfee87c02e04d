"""VIs between cards, set up by a plain agent of the tests: no library, no protocol between agents, no calls to pay."""

from __future__ import annotations

import random

from lanikai.firmware.via.config import ViaConfig
from lanikai.firmware.via.descriptor import STATUS_OFFSET, Descriptor, Segment
from lanikai.firmware.via.layout import (
    NOTICE_SLOT_BYTES,
    NoticeKind,
    RegionFlag,
    Reliability,
    ViaLayout,
    ViRecord,
    unpack_broken,
)
from lanikai.firmware.via.program import ViaProgram
from lanikai.hdl.nic.owners.completion_layout import STATUS_LAYOUT, CompletionStatus
from lanikai.sim.host.config import KitConfig
from lanikai.sim.host.kit.address_space import AddressSpace
from lanikai.sim.host.kit.card_driver import CardDriver
from lanikai.sim.host.kit.completion_queue import CompletionQueue
from lanikai.sim.host.kit.pages import OwnerPage
from lanikai.sim.inside.words import Fields

FREE = KitConfig(**dict.fromkeys(KitConfig.model_fields, 0))
STATUS = Fields(STATUS_LAYOUT)
ENTRIES = 8


class PlainAgent(CardDriver):
    """The agent of a node: it hears notices, `broken_vis` by channel, `packets` of other agents as (source, bytes)."""

    program = "ViaProgram"

    def __init__(self, bus, *, nic, routes, config):
        self.layout = ViaLayout(nic, config)
        self.config = config
        places = {"mailbox": self.layout.mailbox, "broken": self.layout.broken}
        super().__init__(bus, nic=nic, routes=routes, kit=FREE, **places)
        self.ring = self.pages.allocate(ENTRIES * NOTICE_SLOT_BYTES)
        self.heard = 0
        self.broken_vis, self.packets, self.processes = {}, [], []

    async def boot(self):
        self.start()
        at = self.layout.notices
        await self.bus.write_all([(at, self.ring.start), (at + 4, ENTRIES), (at + 8, 0)])

    async def _notices(self):
        while True:
            slot = self.ring.data[self.heard % ENTRIES * NOTICE_SLOT_BYTES :][:80].tobytes()
            kind, source, reason, number = (int.from_bytes(slot[i : i + 4], "little") for i in (0, 4, 8, 76))
            if number != self.heard + 1:
                break
            self.heard += 1
            if kind == NoticeKind.VI_BROKEN:
                self.broken_vis[unpack_broken(source)[0]] = CompletionStatus(reason).name
            else:
                self.packets.append((source, slot[12:76]))
            await self.bus.write(self.layout.notices + 8, self.heard)
        await self._bury()

    async def send_packet(self, node, content):
        layout = self.layout
        words = [int.from_bytes(content[i : i + 4], "little") for i in range(0, 64, 4)]
        route = self.routes[node]
        await self.bus.write_all(
            [(layout.control_route, route & 0xFFFFFFFF), (layout.control_route + 4, route >> 32 | node << 16)]
            + [(layout.control_out + 4 * i, word) for i, word in enumerate(words)]
        )
        async with self._turns:
            await self._ask([1 << 31, self._answer.start])

    async def clear(self):
        """End all processes: nothing of them is left."""
        while self.processes:
            await self.processes.pop().close()
        self.broken_vis.clear()
        self.packets.clear()

    async def allow(self, region, *, write=True, read=True):
        flags = RegionFlag.RDMA_WRITE * write | RegionFlag.RDMA_READ * read
        await self.bus.write(self.layout.region_flag(region.number), flags)


class PlainProcess:
    """A process: its page, and its memory."""

    def __init__(self, agent):
        self.agent, self.owner = agent, agent.take("owner")
        self.page = OwnerPage(agent.bus, self.owner)
        self.memory = AddressSpace(agent.pages)
        self.buffers, self.regions, self.queues, self.vis = [], [], [], []
        agent.processes.append(self)

    async def allocate(self, length, *, writable=True, rdma=True):
        self.buffers.append(self.memory.allocate(length))
        region = await self.agent.regions.register(self.owner, self.buffers[-1], writable=writable)
        self.regions.append(region)
        await self.agent.allow(region, write=rdma, read=rdma)
        return region

    async def deregister(self, region):
        self.regions.remove(region)
        await self.agent.regions.deregister(region)

    async def queue(self, entries=16):
        agent = self.agent
        ring, number = agent.pages.allocate(8 * entries), agent.take("completion queue")
        queue = CompletionQueue(agent, self.page, number, ring, entries=entries)
        await agent.make_queue(queue)
        self.queues.append(queue)
        return queue

    async def vi(self, **record):
        vi = PlainVi(self, **record)
        await vi.open()
        return vi

    async def close(self):
        agent = self.agent
        for vi in self.vis:
            await vi.close()
            agent.give_back("channel", vi.channel)
            for ring in vi.rings:
                agent.pages.release(ring)
        for queue in self.queues:
            await agent.end_queue(queue)
            agent.pages.release(queue.ring)
            agent.give_back("completion queue", queue.number)
        for region in list(self.regions):
            await agent.allow(region, write=False, read=False)
            await self.deregister(region)
        for buffer in self.buffers:
            self.memory.release(buffer)
        agent.regions.forget(self.owner)
        agent.give_back("owner", self.owner)


class PlainVi:
    """A VI of a process; `record` has what its `ViRecord` is to have beside rings and the other end."""

    def __init__(self, process, **record):
        self.process, self.agent = process, process.agent
        self.layout, self.form = self.agent.layout, self.agent.layout.form
        self.channel = self.agent.take("channel")
        size = self.form.slot_bytes * self.agent.config.queue_entries
        self.rings = [self.agent.pages.allocate(size) for _ in range(2)]
        self.watches = [self.agent.bus.watch(ring.start, size) for ring in self.rings]
        self.record = record
        self.posted = [0, 0]
        process.vis.append(self)

    async def open(self):
        self.posted = [0, 0]
        setup = {"channel": self.channel, "owner": self.process.owner, "open": 1}
        await self.agent.set_up(("DOORBELL_CHANNEL", setup))

    async def connect(self, node, channel, *, connection=1):
        record = ViRecord(
            send_ring=self.rings[0].start,
            receive_ring=self.rings[1].start,
            route=self.agent.routes.get(node, 0),
            node=node,
            channel=channel,
            connection=connection,
            **self.record,
        ).words()
        at = self.layout.record(self.channel)
        words = [(at + 4 * i, word) for i, word in enumerate(record) if i != ViRecord.OPEN_WORD]
        await self.agent.bus.write_all([*words, (at + 4 * ViRecord.OPEN_WORD, record[ViRecord.OPEN_WORD])])

    async def close(self):
        await self.agent.bus.write(self.layout.record(self.channel) + 4 * ViRecord.OPEN_WORD, 0)
        await self.agent.set_up(("DOORBELL_CHANNEL", {"channel": self.channel}))

    def slot(self, index, *, receive):
        size = self.form.slot_bytes
        return self.rings[receive].data[index % self.agent.config.queue_entries * size :][:size]

    async def post(self, descriptor, *, receive=False, ring=True):
        """Post a descriptor, or its bytes; returns its number."""
        content = descriptor if isinstance(descriptor, bytes) else descriptor.pack(self.form)
        index = self.posted[receive]
        slot = self.slot(index, receive=receive)
        slot[: len(content)] = list(content)
        self.posted[receive] += 1
        if ring:
            await self.ring(receive=receive)
        return index

    async def ring(self, *, receive=False):
        await self.process.page.ring(self.channel, self.posted[receive] % (1 << 16), receive=receive)

    async def send(self, *pieces, **fields):
        """Post to send: pieces are (region, offset, bytes)."""
        return await self.post(Descriptor(segments=segments(pieces), **fields))

    async def expect(self, *pieces):
        """Post to receive."""
        return await self.post(Descriptor(segments=segments(pieces)), receive=True)

    def status(self, index, *, receive=False):
        """(name of the status, bytes) of a descriptor that is done, else None."""
        slot = self.slot(index, receive=receive)
        word = int.from_bytes(slot[STATUS_OFFSET : STATUS_OFFSET + 4].tobytes(), "little")
        if not STATUS.get(word, "done"):
            return None
        return CompletionStatus(STATUS.get(word, "status")).name, STATUS.get(word, "bytes")

    async def done(self, index, *, receive=False):
        """Wait until a descriptor is done."""
        while (found := self.status(index, receive=receive)) is None:
            await self.watches[receive].wait()
        return found

    def immediate(self, index):
        """The immediate data of a received descriptor, by its tail."""
        slot = self.slot(index, receive=True).tobytes()
        size = int.from_bytes(slot[16:20], "little")
        return slot[32 : 32 + size] if self.form.area_bytes else slot[20:24]


def segments(pieces):
    return tuple(Segment(region.buffer.start + at, region.tag, size) for region, at, size in pieces)


def piece(region, at=0, size=None):
    return region, at, region.buffer.length - at if size is None else size


STARTED = {}


async def start(cluster, *, nodes=None, **config):
    """Programs and agents of all nodes, or of `nodes` alone.

    A second test on the same cluster has those of the first, as they began."""
    chosen = ViaConfig(**config)
    if cluster in STARTED:
        was, programs, agents = STARTED[cluster]
        assert chosen == was, "the programs have been started with another configuration"
        for agent in agents:
            await agent.clear()
        for program in programs:
            program.drops.clear()
            program.context.sent = program.context.received = 0
            program.trace.clear()
        return programs, agents
    programs, agents = [], []
    STARTED[cluster] = chosen, programs, agents
    for node in cluster.nodes if nodes is None else [cluster.nodes[number] for number in nodes]:
        others = [other.number for other in cluster.nodes if other is not node]
        routes = {other: cluster.network.source_route(node.number, other) for other in others}
        program = ViaProgram(node, node=node.number, nic=cluster.config.nic, routes=routes, config=chosen)
        program.start()
        cluster.observe(program)
        agent = PlainAgent(node.host, nic=cluster.config.nic, routes=routes, config=chosen)
        await agent.boot()
        programs.append(program)
        agents.append(agent)
    return programs, agents


async def pair(agents, *, connection=1, **record):
    """A process and a VI on nodes 0 and 1 each, connected with each other."""
    ends = []
    for agent in agents[:2]:
        process = PlainProcess(agent)
        ends.append(await process.vi(**record))
    await join(*ends, connection=connection)
    return ends


async def join(a, b, *, connection=1):
    nodes = [end.agent.bus.node for end in (a, b)]
    await a.connect(nodes[1], b.channel, connection=connection)
    await b.connect(nodes[0], a.channel, connection=connection)


async def settle(a, b):
    """Wait until all that `a` has sent has been taken in by `b`: a message on the same VI."""
    expected = await b.expect()
    await a.done(await a.send())
    await b.done(expected, receive=True)


def noise(seed, size):
    return random.Random(seed).randbytes(size)


__all__ = [
    "PlainAgent",
    "PlainProcess",
    "PlainVi",
    "Reliability",
    "join",
    "noise",
    "pair",
    "piece",
    "segments",
    "settle",
    "start",
]
