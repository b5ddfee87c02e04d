# amaranth: UnusedElaboratable=no
"""The receive engine between a flit source and a checking SRAM port, against a plain model of a mailbox."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import LinkConfig, NicConfig, preset
from lanikai.hdl.nic.receive_engine import ReceiveEngine
from lanikai.hdl.packet import Header

from ..counting import Nearly
from .flit_streams import Flit, FlitSource, packet
from .sram_port import SramPort

TINY = preset(NicConfig, "tiny")
CONFIGS = [
    TINY,
    *(TINY.replace(link=LinkConfig(flit_bits=bits, vls=vls)) for bits, vls in [(64, 1), (128, 16)]),
]
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
    # What routers do to the route does not matter to the CRC.
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
