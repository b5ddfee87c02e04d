# amaranth: UnusedElaboratable=no
"""The CRC logic against zlib, through `packet.crc32`, and against Amaranth's own catalogue."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import LinkConfig
from lanikai.hdl.nic.dma.crc import PacketCrc
from lanikai.hdl.packet import Header, crc32, packet_words

headers = st.builds(
    Header, route=st.integers(0, 2**48 - 1), flow=st.integers(0, 4095), sequence=st.integers(0, 65535)
)


@pytest.mark.parametrize("flit_bits", [32, 64, 128])
@settings(max_examples=20, deadline=None)
@given(
    packets=st.lists(st.tuples(headers, st.binary(max_size=90)), min_size=1, max_size=4),
    seed=st.integers(0, 2**32),
)
def test_it_is_the_packets_crc(flit_bits: int, packets: list[tuple[Header, bytes]], seed: int) -> None:
    gaps = random.Random(seed)
    link = LinkConfig(flit_bits=flit_bits)
    dut = PacketCrc(link)

    async def bench(ctx: Any) -> None:
        for header, payload in packets:
            fields = vars(header) | {"length": len(payload)}
            *words, crc = packet_words(Header(**fields), payload, link)
            for i, word in enumerate(words):
                while gaps.random() < 0.3:
                    ctx.set(dut.valid, 0)
                    ctx.set(dut.first, gaps.getrandbits(1))
                    ctx.set(dut.data, gaps.getrandbits(flit_bits))
                    await ctx.tick()
                ctx.set(dut.valid, 1)
                ctx.set(dut.first, i == 0)
                ctx.set(dut.data, word)
                await ctx.tick()
            assert ctx.get(dut.crc) == crc == crc32(Header(**fields).pack(), payload, link)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_the_definition_is_the_catalogues() -> None:
    link = LinkConfig(flit_bits=64)
    payload = bytes(range(40))
    header = Header(flow=5, length=40)
    reference = CRC32_ISO_HDLC(data_width=8)
    assert crc32(header.pack(), payload, link) == reference.compute(
        header.pack().to_bytes(16, "little") + payload
    )
