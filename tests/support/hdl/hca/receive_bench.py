"""A receive engine over a slow memory, beside the plain model over another one."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from amaranth import Module
from amaranth.lib.wiring import Component, Out
from amaranth.sim import Simulator
from lanikai.hdl.axi import Axi4Signature
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.receive_engine import ReceiveSide
from lanikai.hdl.monitors.axi4 import Axi4Monitor
from lanikai.hdl.nic.dma.axi_join import join_managers

from ..axi_memory import AxiMemory
from ..counting import Nearly
from ..protection_model import Region
from .receive_model import Packet, Pair, ReceiveModel
from .streams import put

__all__ = ["JoinedEngine", "ReceiveBench"]

LIMIT = 20000
"""Cycles after which a bench that does not rest has hung."""


class JoinedEngine(Component):
    """The engine with its ports joined into `axi`, and a monitor on that."""

    def __init__(self, config: HcaConfig) -> None:
        self.signature_of_bus = Axi4Signature(data_bits=128)
        super().__init__({"axi": Out(self.signature_of_bus), "violations": Out(len(Axi4Monitor.rules))})
        self.engine = ReceiveSide(config)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.engine = engine = self.engine
        m.submodules.monitor = monitor = Axi4Monitor.of(self.signature_of_bus, outstanding=16)
        join_managers(m, self.axi, [engine.data_axi, engine.ring_axi, engine.page_axi])
        m.d.comb += [
            getattr(monitor, name).eq(getattr(self.axi, name)) for name in self.axi.signature.members
        ]
        m.d.sync += self.violations.eq(self.violations | monitor.violation.as_value())
        return m


class ReceiveBench:
    """Runs a script with a `JoinedEngine`.

    Parameters: `latency`, `stall`: of the bus. `post_stall`: the chance that the completion writer is not ready.
    """

    def __init__(
        self,
        config: HcaConfig,
        *,
        seed: int,
        latency: int = 4,
        stall: float = 0.2,
        post_stall: float = 0.3,
        memory_bytes: int = 1 << 16,
        fails: Callable[[int], bool] = lambda address: False,
    ) -> None:
        print(f"seed {seed}")
        self.rng, self.config, self.now = random.Random(seed), config, 0
        self.memory = bytearray(memory_bytes)
        self.model = ReceiveModel(config, bytearray(memory_bytes), fails)
        self.dut = JoinedEngine(config)
        self.engine = self.dut.engine
        self.posts: list[tuple[int, int]] = []
        self.post_times: list[int] = []
        self.tail_times: list[int] = []
        self._post_stall = post_stall
        self.simulator = Simulator(self.dut)
        self.simulator.add_clock(1e-6)
        self.axi = AxiMemory(
            self.dut.axi,
            self.memory,
            data_bits=128,
            rng=self.rng,
            stall=stall,
            latency=latency,
            max_beats=config.burst_beats,
            fails=fails,
        )
        self.simulator.add_testbench(self.axi.process, background=True)
        self.simulator.add_testbench(self._posts, background=True)

    def run(self, script: Callable[[Any], Any]) -> None:
        """Runs the coroutine `script(ctx)`, then checks that the bus was used by its rules."""

        async def bench(ctx: Any) -> None:
            await script(ctx)
            assert ctx.get(self.dut.violations) == 0

        self.simulator.add_testbench(bench)
        self.simulator.run()

    async def _posts(self, ctx: Any) -> None:
        post, flits = self.engine.post, self.engine.flits
        while True:
            ctx.set(post.ready, self.rng.random() >= self._post_stall)
            _, _, valid, ready, payload, tail = await ctx.tick().sample(
                post.valid, post.ready, post.payload, flits.valid & flits.ready & flits.payload.tail
            )
            self.now += 1
            if valid and ready:
                self.posts.append((payload.queue, payload.entry.as_bits()))
                self.post_times.append(self.now)
            if tail:
                self.tail_times.append(self.now)

    def nearly(self, ctx: Any, steps: int) -> dict[str, Nearly]:
        """The engine's counters, some steps before their wrap."""
        engine = self.engine
        parts = {
            "packets": engine.stage,
            "length_errors": engine.stage,
            "crc_errors": engine.stage,
            "bus_errors": engine.writer._ends,
            "refusals": engine.rings,
            "violations": engine.check.protection,
        }
        return {
            name: Nearly(ctx, getattr(parts.get(name, engine.messages), name), steps)
            for name in self.model.counts
        }

    async def rest(self, ctx: Any) -> None:
        """Waits until nothing is under way."""
        await ctx.tick()
        for _ in range(LIMIT):
            if ctx.get(self.engine.quiet):
                break
            await ctx.tick()
        else:
            raise AssertionError("the engine never rests")
        await ctx.tick().repeat(2)
        assert ctx.get(self.engine.quiet)

    def fill(self, address: int, content: bytes) -> None:
        """The host writes into both memories."""
        for memory in (self.memory, self.model.memory):
            memory[address : address + len(content)] = content

    async def pair(self, ctx: Any, qp: int, pair: Pair | None) -> None:
        """Opens a queue pair, or closes it."""
        fields: dict[str, int] = {"qp": qp}
        if pair is not None:
            peer, peer_qp = pair.peer or (0, 0)
            fields |= {"open": 1, "connected": int(pair.peer is not None), "peer": peer, "peer_qp": peer_qp}
            names = ("owner", "queue", "base", "entries_log2", "life", "peer_life", "control")
            fields |= {name: int(getattr(pair, name)) for name in names}
        await put(ctx, self.engine.setup, fields)
        self.model.setup(qp, pair)

    async def region(self, ctx: Any, number: int, region: Region) -> None:
        """Sets a region, and forgets its cached pages."""
        fields = {name: int(getattr(region, name)) for name in region.__dataclass_fields__}
        await put(ctx, self.engine.region, {"region": number, **fields})
        await put(ctx, self.engine.invalidate, {"scope": 1, "region": number})
        self.model.regions[number] = region

    async def doorbell(self, ctx: Any, owner: int, qp: int, index: int) -> None:
        """A process' write."""
        await put(ctx, self.engine.doorbell, {"owner": owner, "qp": qp, "index": index})
        self.model.doorbell(owner, qp, index)

    async def packets(self, ctx: Any, packets: list[Packet], *, gap: float = 0.0) -> None:
        """Packets one after the other; `gap`: the chance of a cycle without a flit."""
        flits = self.engine.flits
        for packet in packets:
            words = packet.flits(self.config)
            for i, word in enumerate(words):
                while gap and self.rng.random() < gap:
                    ctx.set(flits.valid, 0)
                    await ctx.tick()
                ctx.set(flits.payload.data, word)
                ctx.set(flits.payload.head, i == 0)
                ctx.set(flits.payload.tail, i == len(words) - 1)
                ctx.set(flits.payload.vl, packet.vl)
                ctx.set(flits.valid, 1)
                taken = False
                while not taken:
                    _, _, taken = await ctx.tick().sample(flits.ready)
            self.model.packet(packet)
        ctx.set(flits.valid, 0)
