"""Host DMA on a host's bus, beside a real engine and a memory, with the time of each transfer."""

from __future__ import annotations

import random

from amaranth import Module
from amaranth.lib import memory as amaranth_memory
from amaranth.lib import wiring
from amaranth.sim import Simulator
from lanikai.hdl.config import NicConfig
from lanikai.hdl.nic.dma.host_dma import HostDma
from lanikai.sim.models.pci_host import PciHost
from lanikai.sim.models.pci_timing import PciTiming

from support.hdl.sram_port import SramPort

HOST_BYTES = 32768


def moved_us(nic: NicConfig, timing: PciTiming, sizes: tuple[int, ...], *, to_host: bool) -> dict[int, float]:
    """Time of a transfer of each size from its start to its end, and its bytes are right."""
    word = nic.bus_bits // 8
    shift = word.bit_length() - 1
    engine = HostDma(nic)
    host = PciHost(timing, data_bits=nic.bus_bits, memory_bytes=HOST_BYTES)
    rng = random.Random(1)
    words = [rng.getrandbits(nic.bus_bits) for _ in range(HOST_BYTES // word)]
    memory = amaranth_memory.Memory(shape=nic.bus_bits, depth=HOST_BYTES // word, init=words)
    m = Module()
    m.submodules += [engine, host, memory]
    read, write, bus = memory.read_port(), memory.write_port(granularity=8), host.memory
    wiring.connect(m, engine.axi, host.dma)
    m.d.comb += [
        read.addr.eq(bus.address >> shift),
        read.en.eq(bus.read),
        bus.read_data.eq(read.data),
        write.addr.eq(bus.address >> shift),
        write.data.eq(bus.write_data),
        write.en.eq(bus.strobe & bus.write.replicate(word)),
    ]
    sram = SramPort(engine.sram, nic, rng=rng)
    content = rng.randbytes(HOST_BYTES)
    sram.memory[:HOST_BYTES] = content
    found = {}

    async def bench(ctx):
        for size in sizes:
            start = sram.cycle
            command = {"host_address": 0, "sram_address": 0, "bytes": size, "to_host": to_host}
            ctx.set(engine.start.payload, command)
            ctx.set(engine.start.valid, 1)
            await ctx.tick().until(engine.start.ready)
            ctx.set(engine.start.valid, 0)
            await ctx.tick().until(engine.done)
            found[size] = (sram.cycle - start) / nic.clock_hz * 1e6
            there = b"".join(
                ctx.get(memory.data[i]).to_bytes(word, "little") for i in range(-(-size // word))
            )
            assert sram.memory[:size] == there[:size]

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.add_testbench(sram.process, background=True)
    simulator.run()
    return found
