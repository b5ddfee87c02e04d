# amaranth: UnusedElaboratable=no
"""The receive engine between a flit source and a checking SRAM port, against a plain model of a mailbox."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import LinkConfig, NicConfig, preset
from lanikai.hdl.nic.dma.receive_engine import ReceiveEngine
from lanikai.hdl.packet import Header
from support.hdl.counting import Nearly
from support.hdl.flit_streams import Flit, FlitSource, packet
from support.hdl.sram_port import SramPort

TINY = preset(NicConfig, "tiny")
CONFIGS = [
    TINY,
    *(TINY.replace(link=LinkConfig(flit_bits=bits, vls=vls)) for bits, vls in [(64, 1), (128, 16)]),
]
WAIT = 30
"""`receive_wait_cycles`: longer than a packet of the tests is."""
FAULTS = ["none", "none", "none", "payload", "header", "crc", "short", "long", "one flit", "length"]


@dataclass(frozen=True)
class Case:
    """A packet as it goes in, and the buffer that waits for it."""

    flits: list[Flit]
    image: bytes  # what stands in the buffer if it is good
    vl: int
    room: int
    outcome: str  # good, crc or length


def make(config: NicConfig, rng: random.Random, size: int, fault: str, spare: int) -> Case:
    """A packet of `size` bytes with a fault, for a buffer with `spare` bytes of room more (or less)."""
    link, vl = config.link, rng.randrange(config.link.vls)
    header = Header(route=rng.getrandbits(48), sequence=rng.getrandbits(16), length=size)
    payload = rng.randbytes(size)
    flits = packet(header, payload, link, vl=vl)
    # Changes that routers make to the route do not matter to the CRC.
    changed = replace(header, route=rng.getrandbits(48)).pack()
    for i in range(link.header_flits):
        flits[i] = flits[i]._replace(data=changed >> i * link.flit_bits & (1 << link.flit_bits) - 1)
    image = changed.to_bytes(16, "little") + payload
    room = max(0, size + spare)
    outcome = "length" if room < size else "good"

    def flip(index: int, low: int, high: int) -> None:
        flits[index] = flits[index]._replace(data=flits[index].data ^ 1 << rng.randrange(low, high))

    bad = "length" if room < size else "crc"
    if fault == "payload" and size >= link.flit_bytes:
        flip(link.header_flits, 0, link.flit_bits)
        outcome = bad
    elif fault == "header":
        flip(link.header_flits - 1, link.flit_bits - 16, link.flit_bits)  # the sequence
        outcome = bad
    elif fault == "crc":
        flip(-1, 0, 32)
        outcome = bad
    elif fault == "short" and len(flits) > 2:
        # A flit of the payload, if there is one. Without one of the header what stands in its place could be
        # a length that fits, and only the CRC would tell.
        del flits[rng.randrange(link.header_flits, len(flits) - 1) if size else 1]
        outcome = "length"
    elif fault == "long":
        extra = [flits[-1]._replace(head=0, tail=0)] * rng.randrange(1, 40)
        flits[-1:-1] = extra
        outcome = "length"
    elif fault == "one flit":
        flits = [flits[0]._replace(tail=1)]
        outcome = "length"
    elif fault == "length":
        # A length that is one flit off, up or down, within the room.
        wrong = replace(header, length=max(0, size + rng.choice([-1, 1]) * link.flit_bytes))
        if wrong.length != size:
            top = wrong.pack() >> (link.header_flits - 1) * link.flit_bits
            flits[link.header_flits - 1] = flits[link.header_flits - 1]._replace(data=top)
            outcome = "length"
    return Case(flits, image, vl, room, outcome)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: f"{c.link.flit_bits}")
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    stalls=st.tuples(st.sampled_from([0.0, 0.5]), st.sampled_from([0.0, 0.5])),
    packets=st.lists(
        st.tuples(
            st.one_of(st.integers(0, 40), st.integers(0, 300)),
            st.sampled_from(FAULTS),
            st.one_of(st.just(0), st.integers(-40, 40)),
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_only_good_packets_end_in_the_buffer(
    config: NicConfig, seed: int, stalls: tuple[float, float], packets: list[tuple[int, str, int]]
) -> None:
    """A dropped packet leaves the engine armed with the same buffer."""
    rng = random.Random(seed)
    made = [make(config, rng, *parameters) for parameters in packets]
    dut = ReceiveEngine(config)
    source = FlitSource(dut.flits, rng=rng, stall=stalls[0])
    sram = SramPort(dut.sram, config, rng=rng, stall=stalls[1])
    sram.memory[:] = rng.randbytes(config.sram_bytes)
    counts = {"crc": 0, "length": 0}

    async def until_taken(ctx: Any) -> bool:
        """Whether the packet was good: wait until all its flits are taken and shown."""
        done, cycles = 0, 0
        while source.waiting:
            assert not done
            *_, done = await ctx.tick().sample(dut.done)
            cycles += 1
            assert cycles < 5000, "the packet hangs"
        done |= ctx.get(dut.done)
        await ctx.tick()
        return bool(done)

    async def bench(ctx: Any) -> None:
        crc_errors, length_errors = Nearly(ctx, dut.crc_errors), Nearly(ctx, dut.length_errors)
        for case in made:
            place = rng.randrange((config.sram_bytes - 512) // config.word_bytes) * config.word_bytes
            assert ctx.get(dut.start.ready) and not ctx.get(dut.armed)
            # Not armed: flits wait.
            source.waiting.extend(case.flits)
            for _ in range(rng.randrange(4)):
                await ctx.tick()
            assert len(source.waiting) == len(case.flits)
            ctx.set(dut.start.payload, {"sram_address": place, "bytes": case.room})
            ctx.set(dut.start.valid, 1)
            await ctx.tick()
            ctx.set(dut.start.valid, 0)
            sram.written.clear()
            before = bytes(sram.memory)
            good = await until_taken(ctx)
            assert good == (case.outcome == "good")
            assert sram.written <= set(range(place, place + 16 + case.room))
            if not good:
                counts[case.outcome] += 1
                assert ctx.get(dut.armed) and not ctx.get(dut.start.ready)
                # The same buffer takes an empty packet, which always fits.
                filler = make(config, rng, 0, "none", 0)
                source.waiting.extend(filler.flits)
                assert await until_taken(ctx)
                case, before = filler, bytes(sram.memory)
            assert not ctx.get(dut.armed)
            length = len(case.image)
            assert sram.memory == before[:place] + case.image + before[place + length :]
            assert (ctx.get(dut.bytes), ctx.get(dut.vl)) == (length - 16, case.vl)
            assert ctx.get(dut.crc_errors) == crc_errors(counts["crc"])
            assert ctx.get(dut.length_errors) == length_errors(counts["length"])

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.add_testbench(source.process, background=True)
    simulator.add_testbench(sram.process, background=True)
    simulator.run()


def test_a_flit_is_taken_every_cycle_and_the_next_packet_at_once() -> None:
    """4096 bytes at `lanai4`, armed again in the cycle of `done`: 515 flits and 2 cycles a packet."""
    config = preset(NicConfig, "lanai4")
    rng = random.Random(1)
    dut = ReceiveEngine(config)
    payloads = [rng.randbytes(4096) for _ in range(2)]
    flits = [flit for data in payloads for flit in packet(Header(length=4096), data, config.link, vl=0)]
    source = FlitSource(dut.flits, rng=rng, flits=flits)
    sram = SramPort(dut.sram, config, rng=rng)
    done: list[int] = []

    async def bench(ctx: Any) -> None:
        ctx.set(dut.start.payload, {"sram_address": 0, "bytes": 4096})
        ctx.set(dut.start.valid, 1)
        await ctx.tick()
        for cycle in range(1, 2000):
            ctx.set(dut.start.payload, {"sram_address": 8192, "bytes": 4096})
            if ctx.get(dut.done):
                done.append(cycle)
                # The last word was written before `done` told of it.
                assert sram.last_write < cycle
            if len(done) == 2:
                break
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.add_testbench(source.process, background=True)
    simulator.add_testbench(sram.process, background=True)
    simulator.run()
    assert done == [1 + 515, 1 + 515 + 1 + 515]
    assert [bytes(sram.memory[at + 16 :][:4096]) for at in (0, 8192)] == payloads


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("seed", range(2))
def test_without_a_buffer_packets_wait_so_long_then_are_thrown_away_whole(bits: int, seed: int) -> None:
    """Buffers come after pauses shorter and longer than the wait, in the middle of packets that are being thrown away,
    too.

    The content of a buffer is one packet, whole. All others are counted, over the counter's wrap.
    """
    rng = random.Random(seed)
    config = TINY.replace(link=LinkConfig(flit_bits=bits, vls=1), receive_wait_cycles=WAIT)
    dut = ReceiveEngine(config)
    payloads = [bytes([number]) * rng.choice([0, 1, 8, 100]) for number in range(120)]
    headers = [Header(length=len(payload), sequence=n) for n, payload in enumerate(payloads)]
    flits = [
        packet(header, payload, config.link, vl=0) for header, payload in zip(headers, payloads, strict=True)
    ]
    source = FlitSource(dut.flits, rng=rng, stall=rng.choice([0.0, 0.3]), flits=chain(*flits))
    sram = SramPort(dut.sram, config, rng=rng, stall=0.2)
    got: list[int] = []
    waits = {False: 0, True: 0}

    async def bench(ctx: Any) -> None:
        discarded = Nearly(ctx, dut.discarded, 3)
        while source.waiting:
            before, late = ctx.get(dut.discarded), rng.random() < 0.4
            # The source offers a packet, or will: the wait is over WAIT cycles after that, and not before.
            for _ in range(rng.randrange(2 * WAIT, 6 * WAIT) if late else rng.randrange(WAIT)):
                await ctx.tick()
            if not late:
                assert ctx.get(dut.discarded) == before
            ctx.set(dut.start.payload, {"sram_address": 0, "bytes": 128})
            ctx.set(dut.start.valid, 1)
            await ctx.tick()
            ctx.set(dut.start.valid, 0)
            waits[late] += 1
            done, cycles = ctx.get(dut.done), 0
            while not done and (source.waiting or cycles < 200):
                *_, done = await ctx.tick().sample(dut.done)
                cycles = 0 if source.waiting else cycles + 1
            if done:
                header = Header.unpack(int.from_bytes(sram.memory[:16], "little"))
                assert bytes(sram.memory[16:][: header.length]) == payloads[header.sequence]
                got.append(header.sequence)
        for _ in range(10 * WAIT + 50):
            await ctx.tick()
        assert got == sorted(set(got)) and ctx.get(dut.crc_errors) == ctx.get(dut.length_errors) == 0
        assert ctx.get(dut.discarded) == discarded(len(payloads) - len(got))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.add_testbench(source.process, background=True)
    simulator.add_testbench(sram.process, background=True)
    simulator.run()
    assert min(len(got), len(payloads) - len(got)) >= 10 and min(waits.values()) > 3


@pytest.mark.parametrize("late", [0, 1])
def test_the_wait_for_a_buffer_is_exact(late: int) -> None:
    """A packet whose buffer comes in the last cycle of its wait is received; one cycle later it is thrown away."""
    config = TINY.replace(receive_wait_cycles=WAIT)
    dut = ReceiveEngine(config)
    rng = random.Random(1)
    source = FlitSource(dut.flits, rng=rng, flits=packet(Header(length=8), bytes(8), config.link, vl=0))
    sram = SramPort(dut.sram, config, rng=rng)
    found = []

    async def bench(ctx: Any) -> None:
        await ctx.tick()  # a packet is there
        for _ in range(WAIT - 1):
            assert ctx.get(dut.flits.valid) and not ctx.get(dut.rests)
            await ctx.tick()
        for _ in range(late):
            await ctx.tick()
        ctx.set(dut.start.payload, {"sram_address": 0, "bytes": 128})
        ctx.set(dut.start.valid, 1)
        await ctx.tick()
        ctx.set(dut.start.valid, 0)
        for _ in range(50):
            found.append(ctx.get(dut.done))
            await ctx.tick()
        assert ctx.get(dut.discarded) == late

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.add_testbench(source.process, background=True)
    simulator.add_testbench(sram.process, background=True)
    simulator.run()
    assert sum(found) == 1 - late
