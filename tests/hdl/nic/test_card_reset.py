"""A reset in the middle of mixed traffic on a card that has every block.

Afterwards the card is as after power-on, except for channels, regions and windows, which a reset leaves as they are.
Both of its buses keep the rules.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth import Module, ResetInserter, Signal
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, NicConfig, preset
from lanikai.hdl.nic.blocks import nic_registers
from lanikai.hdl.nic.nic import HOST_REGISTERS, NIC_REGISTERS, Nic
from lanikai.hdl.nic.optional.completion_block import CompletionBlock
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.nic.owners.owner_page import CONSUME_WORD, DOORBELL_WORD, PagePart
from lanikai.hdl.nic.ports import DOORBELL_BASE, REGISTER_BASE, SRAM_BASE
from lanikai.hdl.packet import Header
from lanikai.sim.inside.words import Fields
from support.hdl.axi_memory import AxiMemory
from support.hdl.completion_queue import Consumer

CONFIG = preset(
    NicConfig,
    "tiny",
    link=LinkConfig(flit_bits=64, vls=2),
    bus_bits=64,
    burst_beats=4,
    host_dma_bursts=4,
    host_dma_queue_entries=3,
    host_dma_queue_order="timestamp",
    send_queue_entries=2,
    receive_queue_entries=2,
    owners=2,
    receive_doorbells="separate",
    doorbell_priorities=2,
    shadow_windows=True,
    completion_queues=2,
    completion_batch=4,
    regions=2,
    translation_entries=4,
)
REGISTERS = nic_registers(CONFIG)
CLOCK = {"RTC", "TIMER"}
"""Registers that go on by themselves."""
ROOM = {"HOST_DMA_QUEUE": 3, "SEND_QUEUE": 2, "RECEIVE_QUEUE": 2}
TABLE, RINGS, STATUS_WORDS = 0x100, 0x400, 0x300
VIRTUAL, FRAMES, KEY = 0x50000, (3, 1), 7
MEMORY_BYTES = 0x4000
DOORBELL, CONSUME = Fields(DOORBELL_WORD), Fields(CONSUME_WORD)


class Stopped(Exception):
    """The reset's time has come."""


class Bench:
    """A card with its link looped back, a processor and a host. A reset takes both buses' other ends with it, as AXI
    has one reset for both (ARM IHI 0022, A3.1.2)."""

    def __init__(self, *, seed: int, pipelined: bool) -> None:
        self.rng = random.Random(seed)
        self.reset = Signal()
        self.nic = nic = Nic(CONFIG.replace(pipelined=pipelined))
        m = Module()
        m.submodules.nic = ResetInserter(self.reset)(nic)
        connect(m, nic.tx, nic.rx)
        self.memory = bytearray(MEMORY_BYTES)
        self.axi = AxiMemory(
            nic.dma,
            self.memory,
            data_bits=CONFIG.bus_bits,
            rng=self.rng,
            stall=0.3,
            latency=4,
            max_beats=8,
            fails=lambda address: address >= MEMORY_BYTES,
            reset=self.reset,
        )
        self.simulator = Simulator(m)
        self.simulator.add_clock(1e-6)
        self.simulator.add_testbench(self.axi.process, background=True)
        self.stop = 0  # cycles until the reset at the latest; 0: none is to come
        self.target: Callable[[Any], bool] | None = (
            None  # or when this is so, some cycles after the beginning
        )
        self.after = 0
        self.loading = False

    async def tick(self, ctx: Any) -> None:
        await ctx.tick()
        if self.stop:
            self.stop -= 1
            self.after -= self.loading
            if not self.stop or (self.after < 0 and self.target and self.target(ctx)):
                self.stop, self.loading = 0, False
                raise Stopped

    def targets(self) -> dict[str, Callable[[Any], bool]]:
        """Moments that a random cycle seldom meets."""
        nic = self.nic
        completion, engine = nic.block(CompletionBlock).completion, nic.host_engine
        return {
            "an event that nobody has acknowledged": lambda ctx: ctx.get(completion.event),
            "a completion that waits for its data": lambda ctx: not ctx.get(completion._fence.clear),
            "an entry on its way": lambda ctx: (
                ctx.get(completion.axi.wvalid) and not ctx.get(completion.axi.wready)
            ),
            "a checked transfer": lambda ctx: ctx.get(engine.checked.busy) and ctx.get(nic.host_dma.busy),
            "a check beside a transfer": lambda ctx: (
                ctx.get(nic.host_dma.busy) and ctx.get(engine.checked.access.valid)
            ),
            "a post that is held": lambda ctx: (
                ctx.get(completion.post.valid) and not ctx.get(completion.post.ready)
            ),
            "doorbells that wait": lambda ctx: ctx.get(nic.doorbell.waiting) > 3,
            "a write of the host's that waits": lambda ctx: (
                ctx.get(nic.host.wvalid) and not ctx.get(nic.host.wready)
            ),
        }

    async def access(self, ctx: Any, address: int, data: int | None = None) -> int:
        request, response = self.nic.processor.request, self.nic.processor.response
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
        register = REGISTERS[name]
        return register.unpack(await self.access(ctx, REGISTER_BASE + register.offset))

    async def until(self, ctx: Any, name: str, flag: str, value: int = 0) -> dict[str, int]:
        for _ in range(3000):
            found = await self.read(ctx, name)
            if found[flag] == value:
                return found
        raise AssertionError(f"{name}.{flag} does not become {value}")

    async def host(self, ctx: Any, address: int, data: int | None = None, *, check: bool = True) -> int:
        """An access by the host; returns the data read, or the response of a write."""
        bus = self.nic.host

        async def tick() -> None:
            await ctx.tick()
            if not check and not self.loading:
                raise Stopped

        kind = "ar" if data is None else "aw"
        ctx.set(getattr(bus, f"{kind}addr"), address)
        pending = {kind} if data is None else {kind, "w"}
        if data is not None:
            ctx.set(bus.wdata, data)
            ctx.set(bus.wstrb, 0xF)
        for channel in pending:
            ctx.set(getattr(bus, f"{channel}valid"), 1)
        while pending:
            taken = [channel for channel in pending if ctx.get(getattr(bus, f"{channel}ready"))]
            await tick()
            for channel in taken:
                ctx.set(getattr(bus, f"{channel}valid"), 0)
                pending.remove(channel)
        valid, ready = (bus.rvalid, bus.rready) if data is None else (bus.bvalid, bus.bready)
        while not ctx.get(valid):
            await tick()
        for _ in range(self.rng.randrange(3)):
            await tick()
        found = int(ctx.get(bus.rdata if data is None else bus.bresp))
        ctx.set(ready, 1)
        await tick()
        ctx.set(ready, 0)
        return found

    async def page(self, ctx: Any, owner: int, part: PagePart, word: int, **more: bool) -> int:
        return await self.host(ctx, DOORBELL_BASE + 4096 * owner + part.offset, word, **more)

    async def set_up(self, ctx: Any) -> None:
        """Give channel i, completion queue i, region i and window i to owner i."""
        for i in range(2):
            for number, frame in enumerate(FRAMES):
                at = TABLE + 16 * i + 4 * number
                self.memory[at : at + 4] = (frame << 12 | 1).to_bytes(4, "little")
            await self.write(ctx, "DOORBELL_CHANNEL", channel=i, owner=i, open=1, priority=i)
            await self.write(ctx, "REGION_START", address=VIRTUAL)
            await self.write(ctx, "REGION_BYTES", bytes=0x2000)
            await self.write(ctx, "REGION_TABLE", address=TABLE + 16 * i)
            await self.write(ctx, "REGION", region=i, key=KEY, owner=i, writable=1, valid=1)
            await self.write(ctx, "SHADOW_ADDRESS", address=0xF00 + 64 * i)
            await self.write(ctx, "SHADOW_WINDOW", owner=i, bytes=64)
            await self.make_queue(ctx, i)

    async def make_queue(self, ctx: Any, i: int) -> None:
        await self.write(ctx, "COMPLETION_RING", address=RINGS + 0x40 * i)
        await self.write(ctx, "COMPLETION_LAG", cycles=30)
        await self.write(ctx, "COMPLETION_SETUP", queue=i, entries_log2=3, batch=4, owner=i, stall=i)

    async def own(self, ctx: Any, host: int, sram: int, size: int, *, to_host: int) -> None:
        await self.write(ctx, "HOST_DMA_HOST", address=host)
        await self.write(ctx, "HOST_DMA_SRAM", address=sram)
        await self.write(ctx, "HOST_DMA_CONTROL", bytes=size, to_host=to_host)

    async def checked(
        self, ctx: Any, address: int, sram: int, size: int, *, to_host: int, region: int = 0, channel: int = 0
    ) -> None:
        await self.write(ctx, "ACCESS_ADDRESS", address=address)
        await self.write(ctx, "ACCESS_TAG", region=region, key=KEY, channel=channel)
        await self.write(ctx, "ACCESS_SRAM", address=sram)
        await self.write(ctx, "ACCESS_CONTROL", bytes=size, to_host=to_host)

    async def post(self, ctx: Any, queue: int, number: int, **more: int) -> None:
        await self.write(ctx, "COMPLETION_STATUS", address=STATUS_WORDS + 4 * number)
        await self.write(ctx, "COMPLETION_OF", work_queue=5, descriptor=number)
        await self.write(ctx, "COMPLETION_POST", queue=queue, bytes=number, entry=1, **more)

    async def header(self, ctx: Any, at: int, **fields: int) -> None:
        bits = Header(**fields).pack()
        for word in range(4):
            await self.access(ctx, SRAM_BASE + at + 4 * word, bits >> 32 * word & 0xFFFFFFFF)

    async def load(self, ctx: Any) -> None:
        """Have the firmware at work on everything at once. Nothing is waited for, much is refused or lost."""
        rng = self.rng
        await self.set_up(ctx)
        await self.header(ctx, 0x100, length=100)
        await self.write(ctx, "IMR", mask=0xFFFFF & ~0x10)
        self.loading = True
        while True:
            what = rng.choice(
                [
                    "own",
                    "own",
                    "checked",
                    "checked",
                    "post",
                    "post",
                    "send",
                    "receive",
                    "forget",
                    "look",
                    "queue",
                ]
            )
            # Not where page tables and rings are: the card would be told other things than those that the test means.
            host, sram = rng.randrange(0x800, 0x3F00) & ~3, rng.randrange(0x800, 0xE00) & ~3
            size, to_host, i = rng.randrange(1, 300) & ~3, rng.randrange(2), rng.randrange(2)
            await self.write(
                ctx,
                "HOST_DMA_TAG",
                tag=rng.randrange(256),
                notify=rng.randrange(2),
                more=rng.randrange(4) == 0,
            )
            await self.write(ctx, "HOST_DMA_STAMP", ticks=rng.randrange(500))
            if what == "own":
                await self.own(ctx, host, sram, size, to_host=to_host)
            elif what == "checked":
                address = VIRTUAL + rng.choice([0x800, 0x1000 - (size // 8) * 4, 0x1F00])
                region = i ^ (rng.random() < 0.2)
                await self.checked(ctx, address, sram, size, to_host=to_host, region=region, channel=i)
            elif what == "post":
                await self.post(ctx, i, rng.randrange(8), write_back=rng.randrange(2))
            elif what == "send":
                await self.write(ctx, "SEND_TAG", tag=3, notify=1)
                await self.write(ctx, "SEND_ADDRESS", address=0x100)
                await self.write(ctx, "SEND_CONTROL", bytes=100, vl=i)
            elif what == "receive":
                await self.write(ctx, "RECEIVE_TAG", tag=4, notify=1)
                await self.write(ctx, "RECEIVE_ADDRESS", address=0x400 + 0x100 * rng.randrange(4))
                await self.write(ctx, "RECEIVE_CONTROL", bytes=128)
            elif what == "forget":
                await self.write(
                    ctx, "TRANSLATION_INVALIDATE", scope=rng.randrange(3), region=i, page=rng.randrange(2)
                )
            elif what == "look":
                for name in (
                    "DOORBELL_QUEUE",
                    "DOORBELL_RECEIVE_QUEUE",
                    "HOST_DMA_FINISHED",
                    "SEND_FINISHED",
                ):
                    await self.read(ctx, name)
            elif rng.random() < 0.3:
                await self.make_queue(ctx, i)

    async def host_load(self, ctx: Any) -> None:
        """Have both processes at work on their pages, and on each other's. The driver reads and writes besides."""
        rng, bus = self.rng, self.nic.host
        names = ("awvalid", "wvalid", "bready", "arvalid", "rready")
        while True:
            while not self.loading:
                await ctx.tick()
            owner, channel = rng.randrange(2), rng.randrange(2)
            part = rng.choice(list(PagePart))
            word = DOORBELL.pack(channel=channel, word=rng.getrandbits(20))
            if part == PagePart.COMPLETION:
                word = CONSUME.pack(queue=channel, arm=rng.randrange(2), index=rng.choice([0, 0, 1, 2, 5]))
            try:
                if rng.random() < 0.7:
                    await self.page(ctx, owner, part, word, check=False)
                elif rng.random() < 0.5:
                    await self.host(
                        ctx, REGISTER_BASE + HOST_REGISTERS["HOST_COMPLETION"].offset, check=False
                    )
                else:
                    await self.host(ctx, SRAM_BASE + 0x700 + 4 * rng.randrange(8), word, check=False)
            except Stopped:
                for name in names:
                    ctx.set(getattr(bus, name), 0)

    async def check(self, ctx: Any) -> None:
        """Check that all is as after power-on, and that everything works, with nothing of before in it."""
        nic, rng, memory = self.nic, self.rng, self.memory
        for name in ("bvalid", "rvalid"):
            assert not ctx.get(getattr(nic.host, name)), f"{name} after a reset"
        assert not ctx.get(nic.interrupt) and not ctx.get(nic.tx.valid)
        for name, register in REGISTERS.items():
            if name in CLOCK or not any(field.sw_readable for field in register.fields.values()):
                continue
            found = await self.read(ctx, name)
            assert found.pop("room", 0) == ROOM.get(name, 0), name
            assert not any(found.values()), (name, found)
        for name in ("HOST_ISR", "HOST_IMR", "HOST_VECTOR", "HOST_COMPLETION", "DOORBELLS_REFUSED"):
            assert await self.host(ctx, REGISTER_BASE + HOST_REGISTERS[name].offset) == 0, name
        assert self.axi.quiet()

        memory[:] = rng.randbytes(len(memory))
        memory[RINGS : RINGS + 0x80] = bytes(0x80)
        memory[STATUS_WORDS : STATUS_WORDS + 32] = bytes(32)
        # Before the queues are made anew nothing is consumed, and no post comes through.
        assert await self.page(ctx, 0, PagePart.COMPLETION, CONSUME.pack(queue=0, arm=1)) == 2
        await self.set_up(ctx)
        expected = bytearray(memory)
        data = bytes(memory[FRAMES[0] << 12 | 0xFC0 :][:64]) + bytes(memory[FRAMES[1] << 12 :][:36])
        # Doorbells of both kinds; the higher class first.
        for channel in range(2):
            for part, value in ((PagePart.SEND, 11), (PagePart.RECEIVE, 22)):
                word = DOORBELL.pack(channel=channel, word=value + channel)
                assert await self.page(ctx, channel, part, word) == 0
                assert await self.page(ctx, 1 - channel, part, word) == 2
        for channel in (1, 0):
            assert await self.read(ctx, "DOORBELL_QUEUE") == {
                "channel": channel,
                "value": 11 + channel,
                "valid": 1,
            }
            found = await self.read(ctx, "DOORBELL_RECEIVE_QUEUE")
            assert found == {"channel": channel, "value": 22 + channel, "valid": 1}
        assert not (await self.read(ctx, "DOORBELL_QUEUE"))["valid"]
        assert await self.page(ctx, 1, PagePart.SHADOW, 0xABCD) == 0
        assert await self.access(ctx, SRAM_BASE + 0xF40) == 0xABCD
        await self.write(ctx, "HOST_DMA_TAG", tag=5, notify=1)
        await self.own(ctx, 0x2200, 0x308, 8, to_host=0)
        assert (await self.until(ctx, "HOST_DMA_FINISHED", "valid", 1))["tag"] == 5
        # A message: data checked and over a page, with the next descriptor; over the link; checked into memory.
        await self.header(ctx, 0x200, length=100, sequence=3)
        await self.write(ctx, "RECEIVE_TAG", tag=9, notify=1)
        await self.write(ctx, "RECEIVE_ADDRESS", address=0x600)
        await self.write(ctx, "RECEIVE_CONTROL", bytes=128)
        await self.write(ctx, "HOST_DMA_TAG", tag=6, notify=1, more=1)
        await self.checked(ctx, VIRTUAL + 0xFC0, 0x210, 100, to_host=0)
        await self.write(ctx, "HOST_DMA_TAG", tag=7, notify=1)
        await self.own(ctx, 0x2100, 0x300, 8, to_host=0)
        found = await self.until(ctx, "HOST_DMA_FINISHED", "valid", 1)
        assert found == {"tag": 7, "error": 0, "status": 0, "valid": 1}
        assert (await self.read(ctx, "TRANSLATION_MISSES"))["pages"] == 2
        assert await self.access(ctx, SRAM_BASE + 0x300) == int.from_bytes(memory[0x2100:0x2104], "little")
        await self.write(ctx, "SEND_ADDRESS", address=0x200)
        await self.write(ctx, "SEND_CONTROL", bytes=100, vl=1)
        found = await self.until(ctx, "RECEIVE_FINISHED", "valid", 1)
        assert found == {"bytes": 100, "vl": 1, "tag": 9, "valid": 1}
        await self.checked(ctx, VIRTUAL + 0x100, 0x610, 100, to_host=1, region=1, channel=1)
        found = await self.until(ctx, "HOST_DMA_FINISHED", "valid", 1)
        assert found["status"] == CompletionStatus.OK
        at = FRAMES[0] << 12 | 0x100
        expected[at : at + 100] = data
        # Somebody else's region: refused, and nothing is touched.
        await self.checked(ctx, VIRTUAL + 0x100, 0x610, 100, to_host=1, region=1, channel=0)
        found = await self.until(ctx, "HOST_DMA_FINISHED", "valid", 1)
        assert found["status"] == CompletionStatus.NOT_OWNER
        assert (await self.read(ctx, "VIOLATIONS"))["accesses"] == 1
        # Completions of both queues, by interrupt.
        await self.host(ctx, REGISTER_BASE + HOST_REGISTERS["HOST_IMR"].offset, 2)
        for i in range(2):
            assert await self.page(ctx, i, PagePart.COMPLETION, CONSUME.pack(queue=i, arm=1)) == 0
            await self.post(ctx, i, 3 + i, write_back=1)
            await self.until(ctx, "COMPLETION_POST", "busy")
        told = set()
        for _ in range(2):
            for _ in range(500):
                if ctx.get(nic.interrupt):
                    break
                await ctx.tick()
            told.add(await self.host(ctx, REGISTER_BASE + HOST_REGISTERS["HOST_COMPLETION"].offset))
        assert told == {1 << 31, 1 << 31 | 1}
        for i in range(2):
            consumer = Consumer(memory, RINGS + 0x40 * i, 3)
            entry = {"bytes": 3 + i, "status": 0, "descriptor": 3 + i, "work_queue": 5}
            assert consumer.look() == entry
            consumer.take()
            assert consumer.look() is None
            status = STATUS_WORDS + 4 * (3 + i)
            assert memory[status : status + 4] == (1 << 31 | 3 + i).to_bytes(4, "little")
            for places in (slice(RINGS + 0x40 * i, RINGS + 0x40 * i + 8), slice(status, status + 4)):
                expected[places] = memory[places]
        for _ in range(100):
            await ctx.tick()
        assert memory == expected and self.axi.quiet(), "something of before the reset was written"
        assert (await self.read(ctx, "COMPLETION_DROPPED"))["entries"] == 0
        assert await self.read(ctx, "CRC_ERRORS") == await self.read(ctx, "LENGTH_ERRORS") == {"packets": 0}


@pytest.mark.parametrize(
    ("seed", "some", "pipelined"),
    [
        (1, 4, False),
        *(pytest.param(seed, 9, seed > 3, marks=pytest.mark.full) for seed in range(2, 6)),
    ],
)
def test_a_reset_of_the_whole_card_leaves_nothing_behind(seed: int, some: int, pipelined: bool) -> None:
    """Resets come in chosen moments, the first `some` of them in any order, and at a random time. After each the card
    is used from the beginning."""
    bench = Bench(seed=seed, pipelined=pipelined)
    met = set()

    async def script(ctx: Any) -> None:
        await bench.check(ctx)
        moments = list(bench.targets().items())[:some]
        bench.rng.shuffle(moments)
        for name, moment in [*moments, ("any time", None)]:
            bench.target = moment
            bench.after, bench.stop = bench.rng.randrange(20, 200), bench.rng.randrange(600, 1200)
            with pytest.raises(Stopped):
                await bench.load(ctx)
            if moment is None or moment(ctx):
                met.add(name)
            ctx.set(bench.nic.processor.request.valid, 0)
            ctx.set(bench.reset, 1)
            for _ in range(bench.rng.choice([1, 1, 3])):
                await ctx.tick()
            ctx.set(bench.reset, 0)
            await bench.check(ctx)

    bench.simulator.add_testbench(script)
    bench.simulator.add_testbench(bench.host_load, background=True)
    bench.simulator.run()
    assert len(met) >= min(some + 1, 7), f"met only {sorted(met)}"
