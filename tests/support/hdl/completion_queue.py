"""A bench for completion: the unit and a data port on one bus, a memory that reorders, and its consumers.

`Consumer` is how host software reads a completion queue: the plain Python model of the other side.
"""

from __future__ import annotations

import random

from amaranth import Module
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from lanikai.hdl.nic.dma.axi_join import AxiJoin
from lanikai.hdl.nic.dma.bus_fence import watch
from lanikai.hdl.nic.owners.completion import Completion
from lanikai.hdl.nic.owners.completion_layout import ENTRY_BYTES, INDEX_BITS

from support.hdl.reordering_memory import ReorderingMemory

MEMORY_BYTES = 0x4000
RINGS = 0x1000


def entry_fields(word):
    """Fields of the two words of an entry."""
    return {
        "bytes": word & 0xFFFF,
        "status": word >> 16 & 0x1F,
        "descriptor": word >> 32 & 0xFFFF,
        "work_queue": word >> 48 & 0x3FF,
        "phases": (word >> 31 & 1, word >> 63 & 1),
    }


class Consumer:
    """The reader of the ring of `2 ** entries_log2` entries at `base` of `memory`; running indices of `index_bits`."""

    def __init__(self, memory, base, entries_log2, index_bits=INDEX_BITS):
        self.memory, self.base, self.log2, self.index = memory, base, entries_log2, 0
        self.modulus = 1 << index_bits

    def look(self):
        """The next entry, or None: an entry is there when the phase is right in both of its words."""
        at = self.base + self.index % (1 << self.log2) * ENTRY_BYTES
        found = entry_fields(int.from_bytes(self.memory[at : at + ENTRY_BYTES], "little"))
        phase = 1 - (self.index >> self.log2 & 1)
        return found if found.pop("phases") == (phase, phase) else None

    def take(self):
        """Go on to the next."""
        self.index = (self.index + 1) % self.modulus


class Bench:
    """`dut` and a data port, `data`, on one bus before `memory`.

    `dut` is a `Completion`, or `component` if it is another, with `widths`.
    """

    def __init__(self, config, *, seed=0, delay=20, component=Completion, **widths):
        self.config, self.rng = config, random.Random(seed)
        self.index_bits = widths.get("index_bits", INDEX_BITS)
        m = Module()
        m.submodules.dut = self.dut = component(config, **widths)
        m.submodules.join = join = AxiJoin(managers=2, data_bits=config.bus_bits)
        connect(m, self.dut.axi, join.port_1)
        self.data = join.port_0
        watch(m, self.dut.watched, join.port_0)
        self.memory = bytearray(MEMORY_BYTES)
        self.axi = ReorderingMemory(
            join.axi, self.memory, data_bits=config.bus_bits, rng=self.rng, delay=delay
        )
        self.simulator = Simulator(m)
        self.simulator.add_clock(1e-6)
        self.simulator.add_testbench(self.axi.process, background=True)
        self.cycle = 0
        self.consuming = False
        self.simulator.add_process(self.count)

    async def count(self, ctx):
        async for _ in ctx.tick():
            self.cycle += 1

    def run(self, *scripts):
        for script in scripts:

            async def bench(ctx, script=script):
                await script(ctx)

            self.simulator.add_testbench(bench)
        self.simulator.run()

    async def hand(self, ctx, stream, payload):
        """Give a payload to one of the unit's streams."""
        ctx.set(stream.payload, payload)
        ctx.set(stream.valid, 1)
        while not ctx.get(stream.ready):
            await ctx.tick()
        await ctx.tick()
        ctx.set(stream.valid, 0)

    async def setup(self, ctx, queue, *, log2=3, batch=1, lag=0, stall=1, owner=0, base=None):
        """Make a queue, and a consumer of it."""
        base = RINGS + 0x400 * queue if base is None else base
        fields = {"queue": queue, "owner": owner, "base": base, "entries_log2": log2}
        await self.hand(ctx, self.dut.setup, {**fields, "batch": batch, "lag_cycles": lag, "stall": stall})
        return Consumer(self.memory, base, log2, self.index_bits)

    async def post(self, ctx, queue, number, **more):
        """Post a completion of descriptor `number`."""
        fields = {"queue": queue, "descriptor": number & 0xFFFF, "bytes": number * 3 & 0xFFFF, "entry": 1}
        await self.hand(ctx, self.dut.post, {**fields, "work_queue": number & 0x3FF, **more})

    async def consume(self, ctx, queue, index, *, arm=0, owner=0):
        """Tell the unit the index that is consumed. Returns whether it was refused."""
        stream = self.dut.consume
        while self.consuming:
            await ctx.tick()
        self.consuming = True
        ctx.set(stream.payload, {"queue": queue, "owner": owner, "index": index, "arm": arm})
        ctx.set(stream.valid, 1)
        while not ctx.get(stream.ready):
            await ctx.tick()
        refused = ctx.get(self.dut.refused)
        await ctx.tick()
        ctx.set(stream.valid, 0)
        self.consuming = False
        return refused
