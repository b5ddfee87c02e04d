"""The serial line: bytes out as a receiver of the test's own sees them, bytes in from a line of the test's own."""

import random

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.board.uart import UartReceiver, UartTransmitter, bit_cycles
from lanikai.hdl.config import ConfigError
from lanikai.sim.fpga.virtual_board import SAMPLES, WireReceiver

SEED = 41


def simulate(dut, *processes):
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    for process in processes:
        sim.add_testbench(process)
    sim.run()


@pytest.mark.parametrize("cycles", [4, 8, 13])
def test_every_byte_goes_out_as_ten_bits(cycles):
    dut = UartTransmitter(bit_cycles=cycles)
    rng = random.Random(SEED)
    sent = [0, 0xFF, 0x55, *(rng.randrange(256) for _ in range(20))]
    levels, done = [], []

    async def give(ctx):
        for byte in sent:
            ctx.set(dut.data.payload, byte)
            ctx.set(dut.data.valid, 1)
            await ctx.tick().until(dut.data.ready)
            ctx.set(dut.data.valid, 0)
            if rng.random() < 0.3:
                await ctx.tick().repeat(rng.randrange(1, 3 * cycles))
        await ctx.tick().repeat(11 * cycles)
        done.append(True)

    async def look(ctx):
        while not done:
            levels.append(ctx.get(dut.tx))
            await ctx.tick()

    simulate(dut, give, look)
    found, place = [], 0
    while 0 in levels[place:]:
        start = levels.index(0, place)
        bits = [levels[start + i * cycles : start + (i + 1) * cycles] for i in range(10)]
        assert all(len(set(bit)) == 1 for bit in bits), f"seed {SEED}: a bit is not {cycles} cycles long"
        assert bits[9][0] == 1
        found.append(sum(bit[0] << i for i, bit in enumerate(bits[1:9])))
        place = start + 10 * cycles
    assert found == sent


@pytest.mark.parametrize("rate", [0.98, 1.0, 1.02])
def test_bytes_come_in_from_a_line_that_is_two_percent_off(rate):
    cycles = 16
    dut = UartReceiver(bit_cycles=cycles)
    rng = random.Random(SEED)
    sent = [rng.randrange(256) for _ in range(20)]
    found, done = [], []

    async def line(ctx):
        left = 0.0
        for byte in sent:
            for bit in [0, *(byte >> i & 1 for i in range(8)), 1]:
                ctx.set(dut.rx, bit)
                left += cycles * rate
                await ctx.tick().repeat(int(left))
                left -= int(left)
        # A start that is over before its middle, and a byte without a stop bit: neither is a byte.
        ctx.set(dut.rx, 0)
        await ctx.tick().repeat(cycles // 4)
        ctx.set(dut.rx, 1)
        await ctx.tick().repeat(12 * cycles)
        ctx.set(dut.rx, 0)
        await ctx.tick().repeat(10 * cycles)
        ctx.set(dut.rx, 1)
        await ctx.tick().repeat(12 * cycles)
        done.append(True)

    async def take(ctx):
        while not done:
            if ctx.get(dut.valid):
                found.append(ctx.get(dut.payload))
            await ctx.tick()

    simulate(dut, line, take)
    assert found == sent, f"seed {SEED}"


def test_the_receiver_in_python_takes_bytes_and_refuses_one_without_a_stop_bit():
    rng = random.Random(SEED)
    sent = [rng.randrange(256) for _ in range(50)]
    receiver, found = WireReceiver(), []
    for byte in sent:
        bits = [0, *(byte >> i & 1 for i in range(8)), 1] + [1] * rng.randrange(2)
        levels = [bit for bit in bits for _ in range(SAMPLES)] + [1] * rng.randrange(3)
        found += [whole for level in levels if (whole := receiver.look(level)) is not None]
    assert found == sent, f"seed {SEED}"
    with pytest.raises(ValueError, match="without a stop bit"):
        for _ in range(10 * SAMPLES):
            receiver.look(0)


def test_a_rate_that_the_clock_does_not_make_is_refused():
    assert bit_cycles(12_000_000, 1_000_000) == 12
    with pytest.raises(ConfigError, match="baud = 5000000: a clock of 12000000 Hz"):
        bit_cycles(12_000_000, 5_000_000)
    with pytest.raises(ConfigError, match=r"baud = 2750000: .* at most 3000000"):
        bit_cycles(12_000_000, 2_750_000)
