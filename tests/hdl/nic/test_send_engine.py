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
from lanikai.hdl.nic.send_engine import SendEngine
from lanikai.hdl.packet import Header

from .flit_streams import Flit, FlitSink, packet
from .sram_port import SramPort

TINY = preset(NicConfig, "tiny")
CONFIGS = [
    TINY,
    *(TINY.replace(link=LinkConfig(flit_bits=bits, vls=vls)) for bits, vls in [(64, 1), (128, 16)]),
]


def send(
    config: NicConfig, packets: list[tuple[int, Header, bytes, int]], *, seed: int, stall: float = 0.0
) -> tuple[FlitSink, list[int]]:
    """Send (address, header, payload, VL) one after the other. The flits that came, and for each packet the
    cycles from the one in which its command is taken to the one of `done`."""
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
@settings(max_examples=25, deadline=None)
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
