"""A reset in the middle of anything: afterwards the card is as after power-on, and its bus keeps the rules."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth import Module, ResetInserter, Signal
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, NicConfig, preset
from lanikai.hdl.nic.nic import NIC_REGISTERS, Nic
from lanikai.hdl.nic.ports import REGISTER_BASE, SRAM_BASE
from lanikai.hdl.packet import Header
from support.hdl.axi_memory import AxiMemory

CONFIG = preset(
    NicConfig,
    "tiny",
    link=LinkConfig(flit_bits=64, vls=2),
    bus_bits=64,
    burst_beats=4,
    host_dma_bursts=4,
    dma_alignment_bytes=1,
    host_dma_queue_entries=3,
    host_dma_queue_order="timestamp",
    send_queue_entries=2,
    receive_queue_entries=2,
)
PAIR = CONFIG.replace(
    processors=2,
    send_queue_order="arrival",
    vl_packets=2,
    vl_arbiter="table_fast",
    vl_table_entries=2,
    input_buffer_flits=CONFIG.packet_flits,
)
"""A card with two processors, and packet buffers of each VL."""
PIPELINED = CONFIG.replace(pipelined=True, host_dma_queue_order="arrival")
STATUS = (
    "ISR", "IMR", "HOST_DMA_CONTROL", "HOST_DMA_STATUS", "HOST_DMA_QUEUE", "HOST_DMA_FINISHED", "HOST_DMA_TAG",
    "HOST_DMA_STAMP", "HOST_DMA_PROTECT", "SEND_CONTROL", "SEND_QUEUE", "SEND_FINISHED", "RECEIVE_CONTROL",
    "RECEIVE_QUEUE", "RECEIVE_FINISHED", "CRC_ERRORS", "LENGTH_ERRORS",
)  # fmt: skip
"""Registers that read as zero after a reset, except for the room of the queues."""


class Bench:
    """A card with its link looped back. A reset takes the bus's other end with it, as AXI has one reset for both
    (ARM IHI 0022, A3.1.2)."""

    def __init__(self, config: NicConfig, *, seed: int) -> None:
        self.config = config
        self.rng = random.Random(seed)
        self.reset = Signal()
        self.nic = nic = Nic(config)
        self.port = nic.processor
        m = Module()
        m.submodules.nic = ResetInserter(self.reset)(nic)
        connect(m, nic.tx, nic.rx)
        self.memory = bytearray(self.rng.randbytes(16384))
        self.axi = AxiMemory(
            nic.dma,
            self.memory,
            data_bits=config.bus_bits,
            rng=self.rng,
            stall=0.3,
            latency=4,
            max_beats=config.burst_beats,
            reset=self.reset,
        )
        self.simulator = Simulator(m)
        self.simulator.add_clock(1e-6)
        self.simulator.add_testbench(self.axi.process, background=True)
        self.stop = 0

    async def tick(self, ctx: Any) -> None:
        """A cycle; raises TimeoutError when the reset's time has come."""
        await ctx.tick()
        if self.stop:
            self.stop -= 1
            if not self.stop:
                raise TimeoutError

    async def access(self, ctx: Any, address: int, data: int | None = None) -> int:
        request, response = self.port.request, self.port.response
        ctx.set(request, {"valid": 1, "write": data is not None, "address": address, "data": data or 0})
        while not ctx.get(response.ready):
            await self.tick(ctx)
        await self.tick(ctx)
        ctx.set(request.valid, 0)
        return int(ctx.get(response.data))

    async def write(self, ctx: Any, name: str, **fields: int) -> None:
        register = NIC_REGISTERS[name]
        await self.access(ctx, REGISTER_BASE + register.offset, register.pack(**fields))

    async def read(self, ctx: Any, name: str) -> dict[str, int]:
        register = NIC_REGISTERS[name]
        return register.unpack(await self.access(ctx, REGISTER_BASE + register.offset))

    async def idle(self, ctx: Any, name: str, flag: str = "busy") -> None:
        for _ in range(2000):
            if not (await self.read(ctx, name))[flag]:
                return
        raise AssertionError(f"{name}.{flag} stays up")

    async def dma(self, ctx: Any, host: int, sram: int, size: int, to_host: int, stamp: int) -> None:
        await self.write(ctx, "HOST_DMA_STAMP", ticks=stamp)
        await self.write(ctx, "HOST_DMA_HOST", address=host)
        await self.write(ctx, "HOST_DMA_SRAM", address=sram)
        await self.write(ctx, "HOST_DMA_CONTROL", bytes=size, to_host=to_host)

    async def load(self, ctx: Any) -> None:
        """Put all engines to work and all queues to use: lists that have not ended, results that nobody takes, a packet
        in the middle of the link."""
        await self.write(ctx, "IMR", mask=7)
        await self.write(ctx, "HOST_DMA_PROTECT", entries=1)
        for name in ("HOST_DMA", "SEND", "RECEIVE"):
            await self.write(ctx, f"{name}_TAG", tag=5, notify=1)
        header = Header(length=100).pack()
        for word in range(4):
            await self.access(ctx, SRAM_BASE + 0x100 + 4 * word, header >> 32 * word & 0xFFFFFFFF)
        for i in range(12):
            await self.write(ctx, "RECEIVE_ADDRESS", address=0x400 + 0x100 * (i % 4))
            await self.write(ctx, "RECEIVE_CONTROL", bytes=128)
            await self.write(ctx, "SEND_ADDRESS", address=0x100)
            await self.write(ctx, "SEND_CONTROL", bytes=100, vl=i % 2)
            await self.write(ctx, "HOST_DMA_TAG", tag=i, notify=i % 2, more=self.rng.randrange(2))
            size, sram = self.rng.randrange(1, 300), self.rng.randrange(0x800, 0xE00)
            await self.dma(
                ctx, self.rng.randrange(8192), sram, size, self.rng.randrange(2), self.rng.randrange(999)
            )
            if self.config.processors == 2:
                await self.second(ctx, i)
        while True:
            await self.tick(ctx)

    async def second(self, ctx: Any, i: int) -> None:
        """Do the second processor's work, and what is held and written for the VLs."""
        self.port = self.nic.processor_1
        await self.write(ctx, "IMR", mask=7)
        await self.write(ctx, "LOCKS", mine=1 << i % 8)
        await self.write(ctx, "PEER", word=i + 1)
        await self.write(ctx, "TIMER", ticks=20 * i)
        await self.write(ctx, "HOST_DMA_TAG", tag=i, notify=1)
        await self.dma(ctx, self.rng.randrange(8192), 0xE00, self.rng.randrange(1, 200), i % 2, 0)
        await self.write(ctx, "VL_TABLE_ENTRY", entry=i % 2, vl=i % 2, weight=i)
        await self.write(ctx, "VL_TABLE_COMMIT", limit=255)
        await self.write(ctx, "RECEIVE_VLS", hold=i % 4)
        self.port = self.nic.processor

    async def check(self, ctx: Any) -> None:
        """Check that all is as after power-on, and that everything works, with nothing of before in it."""
        names: tuple[str, ...] = STATUS
        if self.config.processors == 2:
            names += ("LOCKS", "PEER", "RECEIVE_VLS", "SEND_VLS")
            self.port = self.nic.processor_1
            for name in (
                "ISR",
                "IMR",
                "HOST_DMA_CONTROL",
                "HOST_DMA_QUEUE",
                "HOST_DMA_FINISHED",
                "LOCKS",
                "PEER",
            ):
                found = await self.read(ctx, name)
                assert found.pop("processor", 1) == 1 and found.pop("room", 3) == 3
                assert not any(found.values()), (name, found)
            self.port = self.nic.processor
        for name in names:
            found = await self.read(ctx, name)
            room = found.pop("room", 0)
            assert not any(found.values()), (name, found)
            # With a queue a VL: each has room; which VLs have.
            lanes = {"SEND_QUEUE": 1, "SEND_VLS": 0b11} if self.config.vl_packets else {"SEND_QUEUE": 2}
            assert room == ({"HOST_DMA_QUEUE": 3, "RECEIVE_QUEUE": 2} | lanes).get(name, 0), name
        assert self.axi.quiet()
        rng, memory = self.rng, self.memory
        memory[:] = rng.randbytes(len(memory))
        expected, payload = bytearray(memory), bytes(memory[0x1003 : 0x1003 + 100])
        header = Header(length=100, sequence=3).pack()
        for word in range(4):
            await self.access(ctx, SRAM_BASE + 0x200 + 4 * word, header >> 32 * word & 0xFFFFFFFF)
        await self.write(ctx, "RECEIVE_TAG", tag=9, notify=1)
        await self.write(ctx, "RECEIVE_ADDRESS", address=0x600)
        await self.write(ctx, "RECEIVE_CONTROL", bytes=128)
        await self.write(ctx, "HOST_DMA_TAG", tag=7, notify=1)
        await self.dma(ctx, 0x1003, 0x210, 100, 0, 0)
        await self.idle(ctx, "HOST_DMA_CONTROL")
        assert await self.read(ctx, "HOST_DMA_FINISHED") == {"tag": 7, "error": 0, "status": 0, "valid": 1}
        await self.write(ctx, "SEND_ADDRESS", address=0x200)
        await self.write(ctx, "SEND_CONTROL", bytes=100, vl=1)
        await self.idle(ctx, "SEND_CONTROL")
        await self.idle(ctx, "RECEIVE_CONTROL", "armed")
        assert await self.read(ctx, "RECEIVE_FINISHED") == {"bytes": 100, "vl": 1, "tag": 9, "valid": 1}
        await self.dma(ctx, 0x2001, 0x610, 100, 1, 0)
        await self.idle(ctx, "HOST_DMA_CONTROL")
        expected[0x2001 : 0x2001 + 100] = payload
        assert memory == expected and self.axi.quiet()
        assert await self.read(ctx, "CRC_ERRORS") == await self.read(ctx, "LENGTH_ERRORS") == {"packets": 0}


@pytest.mark.parametrize("config", [CONFIG, PAIR, PIPELINED], ids=["one", "pair and VLs", "pipelined"])
@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.full), pytest.param(3, marks=pytest.mark.full)]
)
def test_a_reset_in_any_cycle_leaves_nothing_behind(config: NicConfig, seed: int) -> None:
    """Resets at random times, a few in a row; after each the card is used from the beginning."""
    bench = Bench(config, seed=seed)

    async def script(ctx: Any) -> None:
        await bench.check(ctx)
        for _ in range(6):
            bench.stop = bench.rng.randrange(40, 450)
            with pytest.raises(TimeoutError):
                await bench.load(ctx)
            ctx.set(bench.port.request.valid, 0)
            ctx.set(bench.reset, 1)
            for _ in range(bench.rng.choice([1, 1, 3])):
                await ctx.tick()
            ctx.set(bench.reset, 0)
            await bench.check(ctx)

    bench.simulator.add_testbench(script)
    bench.simulator.run()
