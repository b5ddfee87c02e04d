"""The host of an adapter in a test bench: its memory, its driver, and its processes."""

from __future__ import annotations

import random
from typing import Any

from lanikai.hdl.hca.driver_port import HCA_REGISTERS
from lanikai.hdl.hca.layout import RECEIVE_WQE_LAYOUT, SEND_WQE_LAYOUT, WindowWord

from support.hdl.axi_memory import AxiMemory
from support.hdl.hca.completion_model import cqe_fields
from support.hdl.hca.streams import put

__all__ = ["AdapterHost", "pack"]

PAGE = 4096
RINGS, QUEUES, TABLES, DATA = 0x10000, 0x20000, 0x30000, 0x40000
MEMORY_BYTES = 0x80000
RING_LOG2, QUEUE_LOG2 = 4, 6
KEY = 0x5A
ACCESS_CYCLES = 20_000
"""Longest wait of the driver: a write of VL tables may have to wait for a frame's end."""


def pack(layout: Any, **fields: int) -> int:
    """The bits of a struct with these fields; others are 0. Raises ValueError for one that does not fit."""
    bits = 0
    for name, value in fields.items():
        place = layout[name]
        if not 0 <= value < 1 << place.width:
            raise ValueError(f"{name} = {value}: {place.width} bits")
        bits |= value << place.offset
    return bits


class AdapterHost:
    """Memory behind `hca.bus`, and what a driver and processes do.

    Each queue pair has a ring of `1 << ring_log2` elements and each completion queue one of 64 entries. Region r is all
    of memory from `DATA` on, at the same virtual addresses, with the key `KEY`.
    """

    def __init__(
        self,
        hca: Any,
        *,
        rng: random.Random,
        stall: float = 0.0,
        latency: int = 20,
        fails: Any = lambda address: False,
        ring_log2: int = RING_LOG2,
    ) -> None:
        self.hca, self.rng, self.ring_log2 = hca, rng, ring_log2
        self.posts = hca.config.wqe == "posted"
        self.unposted: dict[int, list[int]] = {}
        self.memory = bytearray(MEMORY_BYTES)
        self.axi = AxiMemory(
            hca.bus, self.memory, data_bits=128, rng=rng, stall=stall, latency=latency, fails=fails
        )
        self.owners: dict[int, int] = {}
        self.posted: dict[int, int] = {}
        self.received: dict[int, int] = {}
        self.read: dict[int, int] = {}
        self.completed: list[int] = []

    def add(self, simulator: Any) -> None:
        """Adds the memory, and a look at `completed`, to the simulator."""
        simulator.add_testbench(self.axi.process, background=True)
        simulator.add_testbench(self._watch, background=True)

    async def _watch(self, ctx: Any) -> None:
        while True:
            _, _, done, queue = await ctx.tick().sample(self.hca.completed, self.hca.completed_queue)
            if done:
                self.completed.append(queue)

    async def access(self, ctx: Any, address: int, value: int | None = None) -> int:
        """A driver's access of a register; a read if there is no value. Raises AssertionError if it is not taken."""
        request, response = self.hca.driver.request, self.hca.driver.response
        ctx.set(request.valid, 1)
        ctx.set(request.write, value is not None)
        ctx.set(request.address, address)
        ctx.set(request.data, value or 0)
        for _ in range(ACCESS_CYCLES):
            (ready,) = (await ctx.tick().sample(response.ready))[2:]
            if ready:
                break
        else:
            raise AssertionError(f"access of {address:#x}: not taken in {ACCESS_CYCLES} cycles")
        ctx.set(request.valid, 0)
        return int(ctx.get(response.data))

    async def set(self, ctx: Any, name: str, **fields: int) -> None:
        """Writes a register by name."""
        register = HCA_REGISTERS[name]
        await self.access(ctx, register.offset, register.pack(**fields))

    async def get(self, ctx: Any, name: str) -> dict[str, int]:
        """Reads the fields of a register."""
        register = HCA_REGISTERS[name]
        return register.unpack(await self.access(ctx, register.offset))

    async def count(self, ctx: Any, name: str) -> int:
        """Reads a register of one field."""
        (value,) = (await self.get(ctx, name)).values()
        return value

    async def set_region(self, ctx: Any, region: int, owner: int, *, writable: int = 1) -> None:
        """Region `region`: memory from DATA on, at its own addresses."""
        table = TABLES + region * PAGE
        pages = (MEMORY_BYTES - DATA) // PAGE
        for page in range(pages):
            entry = DATA + page * PAGE | 1
            self.memory[table + 4 * page : table + 4 * page + 4] = entry.to_bytes(4, "little")
        await self.set(ctx, "REGION_SELECT", region=region)
        await self.set(ctx, "REGION_START", address=DATA)
        await self.set(ctx, "REGION_BYTES", bytes=MEMORY_BYTES - DATA)
        await self.set(ctx, "REGION_TABLE", address=table)
        await self.set(ctx, "REGION_SET", valid=1, writable=writable, key=KEY, owner=owner)

    async def set_queue(self, ctx: Any, queue: int, owner: int) -> None:
        """Completion queue `queue`."""
        base = QUEUES + queue * 16 * (1 << QUEUE_LOG2)
        self.memory[base : base + (16 << QUEUE_LOG2)] = bytes(16 << QUEUE_LOG2)
        self.read[queue] = 0
        await self.set(ctx, "CQ_SELECT", queue=queue)
        await self.set(ctx, "CQ_OWNER", owner=owner)
        await self.set(ctx, "CQ_RING", base=base >> 4, entries_log2=QUEUE_LOG2)

    async def open(
        self,
        ctx: Any,
        qp: int,
        *,
        owner: int,
        traffic_class: int = 0,
        queue: int = 0,
        peer: tuple[int, int] | None = None,
        vls: int = 0xFFFF,
        life: int = 0,
        peer_life: int = 0,
    ) -> None:
        """Opens queue pair `qp`; both its ends are told in completion queue `queue`."""
        self.owners[qp], self.posted[qp], self.received[qp] = owner, 0, 0
        self.unposted[qp] = []
        await self.set(ctx, "QP_SELECT", qp=qp)
        await self.set(
            ctx,
            "QP_OWNER",
            owner=owner,
            traffic_class=traffic_class,
            send_queue=queue,
            receive_queue=queue,
        )
        await self.set(ctx, "QP_SEND_RING", base=self.ring(qp) >> 5, entries_log2=self.ring_log2)
        await self.set(ctx, "QP_RECEIVE_RING", base=self.receive_ring(qp) >> 4, entries_log2=self.ring_log2)
        node, peer_qp = peer or (0, 0)
        await self.set(
            ctx, "QP_PEER", destination=node, destination_qp=peer_qp, connected=int(peer is not None)
        )
        await self.set(ctx, "QP_VLS", vls=vls)
        await self.set(ctx, "QP_LIFE", life=life, destination_life=peer_life)
        await self.set(ctx, "QP_COMMAND", open=1)

    async def close(self, ctx: Any, qp: int) -> None:
        """Closes queue pair `qp`."""
        await self.set(ctx, "QP_SELECT", qp=qp)
        await self.set(ctx, "QP_COMMAND", open=0)

    async def route(self, ctx: Any, node: int, route: int | None = None) -> None:
        """The route to `node`; by default its number."""
        route = node if route is None else route
        await self.set(ctx, "ROUTE_SELECT", node=node)
        await self.set(ctx, "ROUTE_LOW", route=route & 0xFFFFFFFF)
        await self.set(ctx, "ROUTE_SET", route=route >> 32, known=1)

    def ring(self, qp: int) -> int:
        """Address of the send ring of `qp`."""
        return RINGS + qp * (32 << self.ring_log2)

    def receive_ring(self, qp: int) -> int:
        """Address of the receive ring of `qp`."""
        return RINGS + 0x8000 + qp * (16 << self.ring_log2)

    def element(self, qp: int, **fields: int) -> None:
        """Writes the next send work queue element of `qp`; the doorbell is yet to be rung.

        Where elements are posted it is kept until then.
        """
        fields = {"opcode": 1, "key": KEY, "signaled": 1} | fields
        if self.posts:
            self.unposted[qp].append(pack(SEND_WQE_LAYOUT, **fields))
            self.posted[qp] = (self.posted[qp] + 1) & 0xFFFF
            return
        place = self.ring(qp) + self.posted[qp] % (1 << self.ring_log2) * 32
        self.memory[place : place + 32] = pack(SEND_WQE_LAYOUT, **fields).to_bytes(32, "little")
        self.posted[qp] = (self.posted[qp] + 1) & 0xFFFF

    async def write(self, ctx: Any, page: int, word: int, data: int) -> int:
        """A write into the window; returns the cycles until it was taken."""
        return await put(ctx, self.hca.window, {"page": page, "word": word, "data": data})

    async def doorbell(self, ctx: Any, qp: int) -> int:
        """Rings the send doorbell of `qp` for all elements that are written. Returns the cycles that the last one
        waited.

        Where elements are posted each has its words and its doorbell.
        """
        page, waiting = self.owners[qp], self.unposted[qp]
        while waiting:
            element = waiting.pop(0)
            for word in range(8):
                await self.write(ctx, page, WindowWord.WQE + word, element >> 32 * word & 0xFFFFFFFF)
            if waiting:
                index = self.posted[qp] - len(waiting) & 0xFFFF
                await self.write(ctx, page, WindowWord.SEND_DOORBELL, qp | index << 16)
        return await self.write(ctx, self.owners[qp], WindowWord.SEND_DOORBELL, qp | self.posted[qp] << 16)

    async def post(self, ctx: Any, qp: int, **fields: int) -> None:
        """Posts a message."""
        self.element(qp, **fields)
        await self.doorbell(ctx, qp)

    async def post_buffer(self, ctx: Any, qp: int, **fields: int) -> None:
        """Posts a receive buffer."""
        place = self.receive_ring(qp) + self.received[qp] % (1 << self.ring_log2) * 16
        self.memory[place : place + 16] = pack(RECEIVE_WQE_LAYOUT, **{"key": KEY} | fields).to_bytes(
            16, "little"
        )
        self.received[qp] = (self.received[qp] + 1) & 0xFFFF
        await self.write(ctx, self.owners[qp], WindowWord.RECEIVE_DOORBELL, qp | self.received[qp] << 16)

    def completions(self, queue: int) -> list[dict[str, int]]:
        """Entries of a completion queue that have not been read yet."""
        found = []
        while True:
            index = self.read[queue]
            place = QUEUES + (queue * (1 << QUEUE_LOG2) + index % (1 << QUEUE_LOG2)) * 16
            fields = cqe_fields(int.from_bytes(self.memory[place : place + 16], "little"))
            if fields["phase"] != (~(index >> QUEUE_LOG2) & 1):
                return found
            self.read[queue] = (index + 1) & 0xFFFF
            found.append(fields)

    async def consume(self, ctx: Any, queue: int, owner: int) -> None:
        """Tells the adapter what has been read."""
        await self.write(ctx, owner, WindowWord.CONSUME, queue | self.read[queue] << 16)

    async def rest(self, ctx: Any, most: int = 20000) -> int:
        """Waits until the adapter is quiet; returns the cycles. Raises AssertionError if it does not become quiet."""
        for cycle in range(most):
            await ctx.tick()
            if ctx.get(self.hca.quiet):
                return cycle
        raise AssertionError(f"not quiet after {most} cycles")
