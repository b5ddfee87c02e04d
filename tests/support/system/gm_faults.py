"""Faults on a cluster of RTL cards, with managers: each coroutine is one history, and returns what was seen.

Firmware and managers are stopped as a crash would stop them. The rates that flows may send at are read from the cards'
registers.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from lanikai.firmware.gm import GmConfig
from lanikai.hdl.nic.nic import NIC_REGISTERS
from lanikai.hdl.nic.ports import REGISTER_BASE
from lanikai.hdl.packet import Header
from lanikai.sim.bandwidth.errors import BandwidthError
from lanikai.sim.experiments.measure.gm_hosts import start_gm
from lanikai.sim.host.errors import GmError
from lanikai.sim.host.gm.message import RemoteBuffer
from lanikai.sim.host.memory import Buffer
from lanikai.sim.manager.client import BandwidthClient
from lanikai.sim.manager.config import ManagerConfig
from lanikai.sim.manager.record import ALL_PORTS, NodeRecord
from lanikai.sim.manager.rpc import CallMemory
from lanikai.sim.manager.start import start_manager, start_managers
from lanikai.sim.units import mb_per_s

MESSAGE_BYTES = 65536
BUFFERS = 6
MANAGERS_PORT = 7
MARGIN = 4096
"""Bytes on either side of exposed memory that nobody may touch."""
PATIENCE = dict(answer_ticks=1000, retry_ticks=10_000, lease_ticks=40_000)
"""Settings of managers that wait a tenth of what they do by default: so a history is as much shorter."""


class Nodes:
    """GM and managers on the nodes of `cluster`; `gm`, `manager`: changes of their configurations."""

    def __init__(self, cluster, *, gm=None, manager=None):
        self.cluster, self.clock = cluster, cluster.clock
        self.nic = cluster.config.nic
        self.programs = []
        self.hosts = start_gm(cluster, GmConfig.for_nic(self.nic, **(gm or {})), self.programs.append)
        self.config = ManagerConfig(**{**PATIENCE, **(manager or {})})
        self.managers = []
        self.dead = set()
        for program in self.programs:
            self._filter(program)

    async def manage(self):
        self.managers = await start_managers(self.hosts, self.cluster.network, self.config)
        await self.clock.sleep(20_000)

    async def start_again(self, node):
        self.managers[node] = await start_manager(self.hosts[node], self.cluster.network, self.config)

    def _filter(self, program):
        """Take packets to and from a dead node from the wire: they go no further."""
        take = program.recv._take

        async def filtered(bits, buffer):
            header = Header.unpack(bits)
            return False if self.dead & {program.node, header.source} else await take(bits, buffer)

        program.recv._take = filtered

    def die(self, node):
        """End a node's manager and its GM at once. Packets that come are taken from the wire, and nobody answers."""
        manager = self.managers[node]
        manager.ended = manager._master.ended = True
        self.dead.add(node)

    async def halt(self, node):
        """End a node's manager, and stop its card's processor: nothing is taken from the wire."""
        manager = self.managers[node]
        manager.ended = manager._master.ended = True
        await self.programs[node].processor.lock.acquire()
        self.dead.add(node)

    async def idts(self, node):
        """IDTs by (source port, target, target port), read from the registers of a node's card."""
        program, found = self.programs[node], {}
        async with program.processor.step("dispatch"):
            for flow in program.flows.values():
                await program.processor.write("RATE_SELECT", flow=flow.number)
                ticks = (await program.processor.read("RATE_IDT"))["ticks"]
                found[flow.key.source_port, flow.connection.node, flow.key.target_port] = ticks
        return found

    async def discarded(self, node):
        """Packets that a node's card has thrown away for want of a buffer. Its processor does nothing else any more."""
        if not self.nic.receive_wait_cycles:
            return None
        register = NIC_REGISTERS["DISCARDED"]
        port = self.programs[node].processor.port
        return register.unpack(await port.read(REGISTER_BASE + register.offset))["packets"]

    async def promised_mb_per_s(self, target):
        """The bandwidth that the cards' registers let regulated flows of programs send into a node, in all."""
        total = 0.0
        for node in range(len(self.hosts)):
            if node in self.dead:
                continue
            for (port, to, _), ticks in (await self.idts(node)).items():
                if to == target and ticks and port != MANAGERS_PORT:
                    total += (
                        self.nic.mtu_bytes * self.nic.clock_hz / float(ticks * self.nic.tick_cycles) / 1e6
                    )
        return total

    def master(self):
        leading = [m.node for m in self.managers if m.master is not None and m.node not in self.dead]
        return leading[0] if len(leading) == 1 else leading


class Stream:
    """A flow that always has a message ready, and its receiver, which compares every byte. `bytes`: those that have
    come."""

    def __init__(self, nodes, source, target, port, *, buffers=BUFFERS):
        self.nodes, self.source, self.target, self.number, self.buffers = nodes, source, target, port, buffers
        self.bytes, self.wrong, self.error, self.going = 0, 0, None, False

    async def open(self):
        self.out = await self.nodes.hosts[self.source].open_port(self.number)
        self.into = await self.nodes.hosts[self.target].open_port(self.number)
        self.buffer = await self.out.dma_malloc(MESSAGE_BYTES)
        self.content = self.nodes.cluster.random.randbytes(MESSAGE_BYTES)
        self.buffer.write(self.content)
        for _ in range(self.buffers):
            await self.into.provide_receive_buffer(await self.into.dma_malloc(MESSAGE_BYTES))
        self.nodes.clock.spawn(self._receive(), f"receive {self.target}.{self.number}")
        return self

    def client(self):
        return BandwidthClient(self.nodes.managers[self.source], self.out)

    async def request(self, rate):
        return await self.client().request(self.target, self.number, rate)

    def start(self):
        self.going = True
        self.nodes.clock.spawn(self._send(), f"send {self.source}.{self.number}")

    async def _send(self):
        under_way = deque()
        try:
            while self.going:
                if len(under_way) == 3:
                    await under_way.popleft().wait()
                under_way.append(await self.out.send(self.buffer, node=self.target, port=self.number))
        except GmError as error:
            self.error = type(error).__name__

    async def _receive(self):
        while True:
            message = await self.into.receive()
            self.bytes += message.length
            self.wrong += message.read() != self.content
            await self.into.provide_receive_buffer(message.buffer)


class Rate:
    """Packets that cards dispatch: the cycles of each (source, source port)."""

    def __init__(self, nodes):
        self.nodes, self.cycles = nodes, {}
        for program in nodes.programs:
            program.dispatched = lambda cycle, node, key, source=program.node: self.cycles.setdefault(
                (source, key.source_port), []
            ).append(cycle)

    def mb_per_s(self, source, port, start, end):
        seen = [cycle for cycle in self.cycles.get((source, port), ()) if start <= cycle < end]
        if len(seen) < 3:
            return 0.0
        nic = self.nodes.nic
        return mb_per_s(nic.mtu_bytes * (len(seen) - 1), seen[-1] - seen[0], nic.clock_hz)


async def stuck(cluster, spec):
    """A flow is granted `spec["rates"]`, one after the other, beside messages to another port of the same node, which
    has no receive token. One of these is aborted; the port of the other is closed."""
    nodes = Nodes(cluster, gm={"close_ticks": 4000})
    rate = Rate(nodes)
    await nodes.manage()
    steady = await Stream(nodes, 0, 1, 1).open()
    blocked, other = await nodes.hosts[0].open_port(0), await nodes.hosts[0].open_port(2)
    await nodes.hosts[1].open_port(0)
    buffers = [await port.dma_malloc(MESSAGE_BYTES) for port in (blocked, other)]
    got = []
    for mb in spec["rates"]:
        grant = await steady.request(mb)
        handles = [
            await blocked.send(buffers[0], node=1, port=0),
            await other.send(buffers[1], node=1, port=0),
        ]
        if not steady.going:
            steady.start()
        await nodes.clock.sleep(spec["settle_cycles"])
        start = nodes.clock.cycle
        await nodes.clock.sleep(spec["window_cycles"])
        got.append(rate.mb_per_s(0, 1, start, nodes.clock.cycle))
        waiting = [not handle.done for handle in handles]
        await blocked.abort(handles[0])
        await steady.client().release(grant)
        if mb != spec["rates"][-1]:
            await other.abort(handles[1])
    ticks = float(nodes.nic.tick_cycles)
    before = nodes.clock.cycle
    await other.close()
    return {
        "mb_per_s": got,
        "waiting": waiting,
        "statuses": [handle.status.name for handle in handles],
        "close_ticks": (nodes.clock.cycle - before) / ticks,
        "wrong": steady.wrong,
        "bytes": steady.bytes,
    }


async def directed(cluster, spec):
    """Puts and gets of many lengths and places; and some that go past the bounds, whatever the library says of them."""
    nodes = Nodes(cluster)
    a, b = [await nodes.hosts[node].open_port(0) for node in range(2)]
    length = spec["bytes"]
    mine, theirs = await a.dma_malloc(length), await b.dma_malloc(length + 2 * MARGIN)
    theirs.write(cluster.random.randbytes(theirs.length))
    shadow = bytearray(theirs.read())
    inner = Buffer(theirs.start + MARGIN, length, theirs.data[MARGIN : MARGIN + length])
    remote = await b.expose(inner)
    same = 0
    for _ in range(spec["moves"]):
        size = cluster.random.randrange(1, length + 1)
        at = cluster.random.randrange(0, (length - size) // 4 + 1) * 4
        content = cluster.random.randbytes(size)
        mine.write(content)
        await (await a.put(mine, remote, size, remote_offset=at)).wait()
        shadow[MARGIN + at : MARGIN + at + size] = content
        size = cluster.random.randrange(1, length + 1)
        at = cluster.random.randrange(0, (length - size) // 4 + 1) * 4
        await (await a.get(mine, remote, size, remote_offset=at)).wait()
        same += mine.read(size) == bytes(shadow[MARGIN + at : MARGIN + at + size])
    statuses = []
    big = await a.dma_malloc(length + 4)
    for shift, more in ((-MARGIN, 0), (-4, 0), (4, 0), (0, 4)):
        # As of a library that knows no bounds: the card's own check is left.
        false = RemoteBuffer(remote.node, remote.port, remote.start + shift, remote.length + more)
        for move in (a.put, a.get):
            handle = await move(big, false, false.length)
            with suppress(GmError):
                await handle.wait()
            statuses.append(handle.status.name)
    return {"same": same, "statuses": statuses, "whole": theirs.read() == bytes(shadow)}


async def node_dies(cluster, spec):
    """Node 2, with a reservation into node 1, dies in the middle of its messages. Others want what it held."""
    nodes = Nodes(cluster, gm={"send_timeout_ticks": 20_000}, manager={"master": 0})
    rate = Rate(nodes)
    await nodes.manage()
    dying = await Stream(nodes, 2, 1, 1, buffers=1).open()
    beside = await Stream(nodes, 3, 1, 2).open()
    await dying.request(60.0)
    await beside.request(20.0)
    to_it = await Stream(nodes, 3, 2, 3).open()
    for stream in (dying, beside, to_it):
        stream.start()
    await nodes.clock.sleep(spec["before_cycles"])
    if spec["halt"]:
        await nodes.halt(2)
    else:
        nodes.die(2)
    died = nodes.clock.cycle
    # A message that is half there holds the one receive token of port 1.
    heir = await nodes.hosts[3].open_port(1)
    client = BandwidthClient(nodes.managers[3], heir)
    refusals = 0
    while True:
        try:
            await client.request(1, 1, 50.0)
            break
        except BandwidthError:
            refusals += 1
            if nodes.clock.cycle - died > spec["patience_cycles"]:
                return {"refusals": refusals, "granted_after_ticks": None}
            await nodes.clock.sleep(40_000)
    granted = nodes.clock.cycle
    buffer = await heir.dma_malloc(MESSAGE_BYTES)
    buffer.write(dying.content)
    handle = await heir.send(buffer, node=1, port=1)
    await handle.wait()
    arrived = nodes.clock.cycle
    await nodes.clock.sleep(spec["before_cycles"])
    ticks = float(nodes.nic.tick_cycles)
    return {
        "refusals": refusals,
        "granted_after_ticks": (granted - died) / ticks,
        "arrived_after_ticks": (arrived - died) / ticks,
        "premium": sorted(str(flow) for flow in nodes.managers[0].master.ledger.premium),
        "error": to_it.error,
        "beside_mb_per_s": rate.mb_per_s(3, 2, died, arrived),
        "beside_after_mb_per_s": rate.mb_per_s(3, 2, died + 100_000, nodes.clock.cycle),
        "discarded": await nodes.discarded(2),
        "wrong": beside.wrong,
        "halves": sum(node == 2 for port in nodes.programs[1].ports for node, _ in port.assemblies),
    }


async def managers_end(cluster, spec):
    """Local managers end and are started again, one and then all. The master ends for good, and another one grants.

    All the while a flow goes on. The bandwidth that cards let into node 1 is looked at. With `spec["forget"]` a manager
    that is started again knows nothing of before.
    """
    nodes = Nodes(cluster, manager={"master": 0})
    await nodes.manage()
    if spec["forget"]:
        NodeRecord.copy = lambda record: NodeRecord(
            calls=CallMemory(record.calls.incarnation + 1), untold_ports={ALL_PORTS: None}
        )
    steady, other, third = [await Stream(nodes, 5 - port, 1, port).open() for port in (3, 2, 5)]
    promised, ends, masters = [], [], [nodes.master()]

    async def look():
        while True:
            promised.append(await nodes.promised_mb_per_s(1))
            await nodes.clock.sleep(20_000)

    async def try_for(stream, rate):
        try:
            await stream.request(rate)
            ends.append("granted")
        except BandwidthError as error:
            ends.append(type(error).__name__)

    await steady.request(50.0)
    steady.start()
    nodes.clock.spawn(look(), "look")
    await nodes.managers[2].stop()
    await nodes.start_again(2)
    await try_for(other, 70.0)
    for node in range(4):
        await nodes.managers[node].stop()
    for node in range(4):
        await nodes.start_again(node)
    await try_for(other, 70.0)
    masters.append(nodes.master())
    await nodes.managers[0].stop()
    before = nodes.clock.cycle
    await try_for(other, 30.0)
    after = nodes.clock.cycle
    masters.append(nodes.master())
    other.start()
    await nodes.start_again(0)
    await try_for(third, 60.0)
    await nodes.clock.sleep(100_000)
    return {
        "ends": ends,
        "masters": masters,
        "promised_mb_per_s": max(promised),
        "answer_silences": (after - before)
        / float(nodes.nic.tick_cycles)
        / (nodes.config.answer_ticks * nodes.config.tries),
        "idts": [(await nodes.idts(2))[3, 1, 3], (await nodes.idts(3))[2, 1, 2]],
        "wrong": steady.wrong + other.wrong,
        "messages": [steady.bytes // MESSAGE_BYTES, other.bytes // MESSAGE_BYTES],
    }
