"""The CRC of a trailer against zlib, in both forms."""

import random
import zlib

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.trailer_crc import REST_BITS, TrailerCrc, trailer_crc
from lanikai.hdl.packet import crc32

LINK = preset(HcaConfig, "tiny").link


def test_it_is_the_crc_of_header_payload_and_the_rest_of_the_trailer():
    print("seed 1")
    rng = random.Random(1)
    header, payload, trailer = 0xB << 60, rng.randbytes(32), rng.getrandbits(128)
    assert header.to_bytes(16, "little")[7] == 0xB0
    found = trailer_crc(header, payload, trailer, LINK)
    assert found == trailer_crc(header, payload, trailer ^ 0xFFFFFFFF, LINK)
    # The route, bits 8 to 55 of the header, counts as zero.
    whole = header.to_bytes(16, "little") + payload + (trailer >> 32).to_bytes(12, "little")
    assert found == zlib.crc32(whole)
    for bit in range(32, 128):
        assert trailer_crc(header, payload, trailer ^ 1 << bit, LINK) != found


@pytest.mark.parametrize("early", [False, True])
def test_the_step_in_hardware(early):
    print("seed 2")
    rng = random.Random(2)
    dut = TrailerCrc(early=early)

    async def bench(ctx):
        for _ in range(40):
            header, payload, trailer = rng.getrandbits(128), rng.randbytes(16), rng.getrandbits(128)
            ctx.set(dut.rest, trailer >> 32)
            if early:
                ctx.set(dut.crc, rng.getrandbits(32))
                await ctx.tick()
                ctx.set(dut.rest, rng.getrandbits(REST_BITS))
            ctx.set(dut.crc, crc32(header, payload, LINK))
            assert ctx.get(dut.whole) == trailer_crc(header, payload, trailer, LINK)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6, if_exists=True)
    simulator.add_testbench(bench)
    simulator.run()
