# amaranth: UnusedElaboratable=no
"""The send engine between a checking SRAM port and a flit sink, against `packet.packet_words`."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import LinkConfig, NicConfig, preset
from lanikai.hdl.nic.dma.send_engine import SendEngine
from lanikai.hdl.packet import Header
from support.hdl.flit_streams import Flit, FlitSink, packet
from support.hdl.sram_port import SramPort

TINY = preset(NicConfig, "tiny")
CONFIGS = [
    TINY,
    *(TINY.replace(link=LinkConfig(flit_bits=bits, vls=vls)) for bits, vls in [(64, 1), (128, 16)]),
]
FOLLOWING = [config.replace(send_queue_entries=1) for config in CONFIGS]


def send(
    config: NicConfig, packets: list[tuple[int, Header, bytes, int]], *, seed: int, stall: float = 0.0
) -> tuple[FlitSink, list[int]]:
    """Send (address, header, payload, VL) one after the other.

    Returns the flits that came, and for each packet the cycles from the one in which its command is taken to the one of
    `done`.
    """
    rng = random.Random(seed)
    dut = SendEngine(config)
    sink = FlitSink(dut.flits, rng=rng, stall=stall)
    sram = SramPort(dut.sram, config, rng=rng, stall=stall)
    took = []

    async def bench(ctx: Any) -> None:
        for address, header, payload, vl in packets:
            # Whatever stands behind the payload is not sent.
            sram.memory[:] = rng.randbytes(config.sram_bytes)
            image = header.pack().to_bytes(16, "little") + payload
            sram.memory[address : address + len(image)] = image
            command = {"sram_address": address, "bytes": len(payload), "vl": vl}
            ctx.set(dut.start.payload, command)
            ctx.set(dut.start.valid, 1)
            assert ctx.get(dut.start.ready) and not ctx.get(dut.busy)
            await ctx.tick()
            ctx.set(dut.start.payload, {"sram_address": 0, "bytes": 0, "vl": 0})
            ctx.set(dut.start.valid, 0)
            cycle, done = 0, 0
            while not done:
                assert ctx.get(dut.busy) and not ctx.get(dut.start.ready)
                _, _, done = await ctx.tick().sample(dut.done)
                cycle += 1
                assert cycle < 5000, "the packet hangs"
            took.append(cycle)
        for _ in range(5):
            await ctx.tick()
            assert not ctx.get(dut.busy) and not ctx.get(dut.flits.valid) and not ctx.get(dut.sram.valid)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.add_testbench(sink.process, background=True)
    simulator.add_testbench(sram.process, background=True)
    simulator.run()
    assert not sram.written
    return sink, took


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: f"{c.link.flit_bits}")
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    stall=st.sampled_from([0.0, 0.3, 0.7]),
    sizes=st.lists(st.one_of(st.integers(0, 40), st.integers(0, 300)), min_size=1, max_size=4),
)
def test_packets_leave_whole(config: NicConfig, seed: int, stall: float, sizes: list[int]) -> None:
    rng = random.Random(seed)
    packets, expected = [], list[Flit]()
    for size in sizes:
        header = Header(
            route=rng.getrandbits(48), flow=rng.getrandbits(12), sequence=rng.getrandbits(16), length=size
        )
        payload, vl = rng.randbytes(size), rng.randrange(config.link.vls)
        address = rng.randrange((config.sram_bytes - 512) // config.word_bytes) * config.word_bytes
        packets.append((address, header, payload, vl))
        expected += packet(header, payload, config.link, vl=vl)
    sink, _ = send(config, packets, seed=seed, stall=stall)
    assert sink.flits == expected


def test_a_flit_leaves_every_cycle() -> None:
    """4096 bytes at `lanai4`: 2 flits of header, 512 of payload and the CRC without a gap, 3 cycles after the
    command."""
    config = preset(NicConfig, "lanai4")
    header = Header(length=4096)
    sink, took = send(config, [(0, header, bytes(4096), 0), (64, header, bytes(4096), 0)], seed=1)
    assert took == [3 + 514, 3 + 514]
    assert len(sink.flits) == 2 * 515
    for begin in (0, 515):
        assert sink.cycles[begin + 514] - sink.cycles[begin] == 514


async def feed(ctx: Any, dut: SendEngine, commands: list[dict[str, int]], limit: int) -> list[int]:
    """Offer commands to the engine all the time, as a queue does, until all have ended. Returns the cycles of
    `done`."""
    todo, done = list(commands), list[int]()
    for cycle in range(limit):
        ctx.set(dut.start.valid, bool(todo))
        if todo:
            ctx.set(dut.start.payload, todo[0])
        assert ctx.get(dut.busy) == (len(done) + len(todo) < len(commands))
        _, _, taken, ended = await ctx.tick().sample(dut.start.ready, dut.done)
        if todo and taken:
            todo.pop(0)
        if ended:
            done.append(cycle)
        if len(done) == len(commands):
            break
    else:
        raise AssertionError(f"{len(done)} of {len(commands)} packets after {limit} cycles")
    return done


@pytest.mark.parametrize("config", FOLLOWING, ids=lambda c: f"{c.link.flit_bits}")
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    stalls=st.tuples(st.sampled_from([0.0, 0.3, 0.7]), st.sampled_from([0.0, 0.3, 0.7])),
    sizes=st.lists(st.one_of(st.integers(0, 40), st.integers(0, 200)), min_size=2, max_size=7),
)
def test_packets_that_follow_closely_leave_whole_each_on_its_lane(
    config: NicConfig, seed: int, stalls: tuple[float, float], sizes: list[int]
) -> None:
    rng = random.Random(seed)
    dut = SendEngine(config)
    sink = FlitSink(dut.flits, rng=rng, stall=stalls[0])
    sram = SramPort(dut.sram, config, rng=rng, stall=stalls[1])
    sram.memory[:] = rng.randbytes(config.sram_bytes)
    commands, expected = [], list[Flit]()
    for i, size in enumerate(sizes):
        header = Header(route=rng.getrandbits(48), sequence=i, length=size)
        payload, vl, address = rng.randbytes(size), rng.randrange(config.link.vls), 256 * i
        image = header.pack().to_bytes(16, "little") + payload
        sram.memory[address : address + len(image)] = image
        commands.append({"sram_address": address, "bytes": size, "vl": vl})
        expected += packet(header, payload, config.link, vl=vl)

    async def bench(ctx: Any) -> None:
        await feed(ctx, dut, commands, 5000)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.add_testbench(sink.process, background=True)
    simulator.add_testbench(sram.process, background=True)
    simulator.run()
    assert sink.flits == expected


@pytest.mark.parametrize("flit_bits", [32, 64, 128])
def test_a_packet_that_follows_closely_leaves_without_a_gap(flit_bits: int) -> None:
    """Packets of 4096 bytes: every cycle a flit from the first packet's first to the last one's last."""
    config = preset(
        NicConfig, "lanai4", link=LinkConfig(flit_bits=flit_bits), bus_bits=32, send_queue_entries=1
    )
    rng = random.Random(1)
    dut = SendEngine(config)
    sink = FlitSink(dut.flits, rng=rng)
    sram = SramPort(dut.sram, config, rng=rng)

    async def bench(ctx: Any) -> None:
        await feed(ctx, dut, [{"sram_address": 0, "bytes": 4096, "vl": 0}] * 3, 5000)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.add_testbench(sink.process, background=True)
    simulator.add_testbench(sram.process, background=True)
    simulator.run()
    flits = 3 * (config.link.header_flits + 4096 // config.link.flit_bytes + 1)
    assert len(sink.flits) == flits and sink.cycles[-1] - sink.cycles[0] == flits - 1
