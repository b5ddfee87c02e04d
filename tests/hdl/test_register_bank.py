"""The register bank against a plain model of its declaration, for both of the card's maps."""

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.nic.blocks import HOST_REGISTERS, NIC_REGISTERS
from lanikai.hdl.register_bank import RegisterBank

MAPS = {"nic": NIC_REGISTERS, "host": HOST_REGISTERS}
# Read, write or nothing: which register (the last choices are none), and the word.
ACCESSES = st.lists(
    st.tuples(st.none() | st.integers(0, 99), st.none() | st.integers(0, 99), st.integers(0, 0xFFFFFFFF)),
    min_size=1,
    max_size=40,
)


@pytest.mark.parametrize("name", MAPS)
@settings(max_examples=12, deadline=None, print_blob=True)
@given(accesses=ACCESSES, shown=st.integers(0, 0xFFFFFFFF), ahead=st.booleans())
def test_agrees_with_the_declaration(name, accesses, shown, ahead):
    registers = list(MAPS[name].values())
    offsets = [register.offset for register in registers] + [0xFF0, 0x1000, 0x80000]
    dut = RegisterBank(MAPS[name], ahead=ahead)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        stored = {register.offset: 0 for register in registers}
        for register in registers:
            ctx.set(getattr(dut, register.name).r_data.as_value(), shown)
        for read, write, word in accesses:
            r = None if read is None else offsets[read % len(offsets)]
            w = None if write is None else offsets[write % len(offsets)]
            ctx.set(dut.bus.read_offset, r or 0)
            ctx.set(dut.bus.write_offset, w or 0)
            if ahead:
                # The offsets of the cycle before count, and not those of the access's own.
                ctx.set(dut.bus.read, 0)
                ctx.set(dut.bus.write, 0)
                await ctx.tick()
                ctx.set(dut.bus.read_offset, offsets[0])
                ctx.set(dut.bus.write_offset, offsets[0])
            ctx.set(dut.bus.read, r is not None)
            ctx.set(dut.bus.write, w is not None)
            ctx.set(dut.bus.write_data, word)
            if r is not None:
                assert ctx.get(dut.bus.read_mapped) == (r in stored)
            if w is not None:
                assert ctx.get(dut.bus.write_mapped) == (w in stored)
            expected = 0
            for register in registers:
                port = getattr(dut, register.name)
                assert ctx.get(port.r_stb) == (register.offset == r)
                assert ctx.get(port.w_stb) == (register.offset == w)
                assert ctx.get(port.value.as_value()) == stored[register.offset]
                if register.offset == w:
                    assert ctx.get(port.w_data.as_value()) == word
                if register.offset == r:
                    for field in register.fields.values():
                        if field.sw_readable:
                            source = stored[register.offset] if field.stored else shown
                            expected |= source & field.mask
            await ctx.tick()
            if r is not None:
                assert ctx.get(dut.bus.read_data) == expected
            for register in registers:
                if register.offset == w:
                    mask = sum(field.mask for field in register.fields.values() if field.stored)
                    stored[register.offset] = word & mask

    simulator.add_testbench(bench)
    simulator.run()
